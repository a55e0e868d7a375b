/* SPDX-License-Identifier: MIT */
#include "adapter.h"

#include <errno.h>
#include <limits.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/error.h"
#include "proto/rng.h"

#define QUEUE_MAX 4096
#define IDS_MAX 8192
#define QPS_MAX 32768
#define TROUBLES_MAX 16384
#define SRQ_MAX 32768
#define RMA_MAX 64
#define HELD_MAX 256

struct queue {
	struct ibv_wc wc[QUEUE_MAX];
	int at, count;
};
struct fake_cq {
	struct ibv_cq cq; /* first */
	struct queue q;
	bool armed;
	int events;
};
struct receive {
	uint64_t id, addr;
	uint32_t len;
};
struct receives {
	struct receive *r; /* [SRQ_MAX], or [QUEUE_MAX] of a queue pair's own */
	int room, at, count;
};
struct fake_srq {
	struct ibv_srq srq;
	struct receives receives;
};
struct fake_mr {
	struct ibv_mr mr; /* first */
	int access;
	struct fake_mr *next;
	char *stale; /* what the pages held that are mapped here no more */
};
struct fake_id;
struct fake_qp {
	struct ibv_qp qp;
	struct receives own;
	struct fake_id *id;
	uint32_t dest, psn[2]; /* connected by hand: to which queue pair; of our sends and of theirs */
	enum ibv_qp_state state;
	bool error;
	uint32_t room, outstanding, max_inline;
	struct {
		struct ibv_wc wc[HELD_MAX];
		int count;
	} held;
	struct {
		struct ibv_send_wr wr;
		struct ibv_sge sge;
	} rma[RMA_MAX]; /* adapter_faults.hold_rma: under way */
	int rma_count;
	struct {
		uint32_t len;
		unsigned char bytes[8192];
	} * overlooked; /* adapter_faults.overlook: what lies in the socket, unread */
	int overlooked_count;
};
struct fake_event {
	struct fake_event *next;
	struct rdma_cm_event e;
	unsigned char data[64];
};
struct fake_channel {
	struct rdma_event_channel c;
	struct fake_event *head, **tail;
	int number;
};
struct fake_id {
	struct rdma_cm_id id;
	struct fake_channel *channel;
	struct fake_qp *qp;
	struct fake_id *other;    /* the end at the other side */
	void *far;                /* or what the test knows it by (adapter_far) */
	struct fake_id *listener; /* an incoming one whose request lies unread in this one's backlog */
	int backlog, waiting;     /* requests that a listener may leave unread, and those that it has */
	uint16_t port, target;
	bool listening, connected, hollow;
};

struct adapter_faults adapter_faults;
int (*adapter_hollow)(uint16_t port, void *data);
const struct adapter_far *adapter_far;
struct adapter_weather adapter_weather;
unsigned adapter_inlined, adapter_reads, adapter_writes, adapter_requests, adapter_troubles;
struct adapter_path adapter_path;
unsigned adapter_pkey_index;
uint64_t adapter_rma_bytes;

/* The GID entry of 127.0.0.2, and how often the addresses were asked for. */
#define RAIL_GID 3
static int rails_seen;
static struct ibv_device device = {.name = "fake0", .dev_name = "uverbs9"};
static struct ibv_context context = {.device = &device, .async_fd = -1};
static struct fake_id *ids[IDS_MAX];
static struct fake_qp *qps[QPS_MAX];
static struct fake_mr *mrs;
static int qp_count, live;
bool adapter_locked;
static uint16_t next_port;
static struct ibv_async_event async_event;
static bool async_pending;
static int channel_count;
static struct rng weather_rng;
static struct {
	int channel, count;
	uint16_t port;
} troubles[TROUBLES_MAX];
static struct fake_event *late, **late_tail = &late; /* events on their way: adapter_deliver() */

int adapter_live(void)
{
	return live;
}

static void signal_fd(int fd)
{
	uint64_t one = 1;

	if (write(fd, &one, sizeof(one)) < 0)
		perror("eventfd");
}

static void drain_fd(int fd)
{
	uint64_t n;

	while (read(fd, &n, sizeof(n)) > 0)
		;
}

void adapter_reset(void)
{
	adapter_faults = (struct adapter_faults){.max_inline = 220};
	adapter_hollow = NULL;
	adapter_far = NULL;
	adapter_set_weather((struct adapter_weather){.seed = 0});
	memset(troubles, 0, sizeof(troubles));
	adapter_inlined = adapter_reads = adapter_writes = adapter_requests = adapter_troubles = 0;
	adapter_rma_bytes = 0;
	memset(ids, 0, sizeof(ids));
	memset(qps, 0, sizeof(qps));
	qp_count = 0;
	live = 0;
	adapter_locked = false;
	next_port = 100;
	rails_seen = 0;
	async_pending = false;
	if (context.async_fd < 0)
		context.async_fd = eventfd(0, EFD_NONBLOCK);
	drain_fd(context.async_fd);
}

/* Enters the kernel, and may take its time. */
static void slow(const char *name)
{
	if (!adapter_locked)
		return;
	fprintf(stderr, "adapter: %s is called with the core's lock held\n", name);
	abort();
}

/* Every creation call asks; true: fail. */
static bool fails(const char *name)
{
	if (strncmp(name, "post_", 5) != 0)
		slow(name);
	adapter_faults.calls++;
	if (adapter_faults.fail_call == 0 || --adapter_faults.fail_call > 0)
		return false;
	adapter_faults.failed = name;
	errno = adapter_faults.fail_errno ? adapter_faults.fail_errno : EIO;
	return true;
}

static void *make(size_t size)
{
	live++;
	return calloc(1, size);
}

static void unmake(void *p)
{
	live--;
	free(p);
}

/* --- devices --- */

static int fake_available(bool cm)
{
	return cm && adapter_faults.no_cm ? error_set(-ENOENT, "no RDMA CM") : 0;
}

static struct ibv_device **fake_get_devices(int *count)
{
	static struct ibv_device *list[2] = {&device, NULL};

	device.transport_type = adapter_faults.iwarp ? IBV_TRANSPORT_IWARP : IBV_TRANSPORT_IB;
	*count = 1;
	return fails("get_device_list") ? NULL : list;
}

static void fake_free_devices(struct ibv_device **list)
{
	(void)list;
}

static struct ibv_context *fake_open(struct ibv_device *d)
{
	(void)d;
	return fails("open_device") ? NULL : &context;
}

static int fake_close(struct ibv_context *c)
{
	(void)c;
	return 0;
}

static int fake_getifaddrs(struct ifaddrs **list)
{
	static struct sockaddr_in addr[2];
	static struct ifaddrs entry[2];

	for (unsigned i = 0; i < 2; i++) {
		addr[i] = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK + i)};
		entry[i] = (struct ifaddrs){.ifa_name = (char *)"fake", .ifa_flags = IFF_UP, .ifa_addr = (struct sockaddr *)&addr[i]};
	}
	entry[1].ifa_next = &entry[0];
	*list = &entry[adapter_faults.rails && ++rails_seen == 2];
	return fails("getifaddrs") ? -1 : 0;
}

static void fake_freeifaddrs(struct ifaddrs *list)
{
	(void)list;
}

static int fake_query_device(struct ibv_context *c, struct ibv_device_attr *a)
{
	(void)c;
	*a = (struct ibv_device_attr){.max_cqe = QUEUE_MAX,
				      .max_srq = adapter_faults.no_srq ? 0 : 10,
				      .max_srq_wr = SRQ_MAX,
				      .max_qp_rd_atom = 4,
				      .max_qp_init_rd_atom = 4,
				      .phys_port_cnt = 1};
	return fails("query_device") ? EIO : 0;
}

static bool fake_has_paging(struct ibv_context *c)
{
	(void)c;
	return adapter_faults.paging;
}

static int fake_query_port(struct ibv_context *c, uint8_t port, struct ibv_port_attr *a)
{
	slow("query_port");
	(void)c;
	(void)port;
	*a = (struct ibv_port_attr){.state = IBV_PORT_ACTIVE,
				    .active_mtu = IBV_MTU_1024,
				    .lid = 3,
				    .gid_tbl_len = RAIL_GID + 1,
				    .pkey_tbl_len = 4,
				    .link_layer = adapter_faults.infiniband ? IBV_LINK_LAYER_INFINIBAND : IBV_LINK_LAYER_ETHERNET,
				    .max_msg_sz = adapter_faults.no_copy ? 1u << 31 : 10000};
	return 0;
}

/* A limited member of the default partition, an empty entry, a full and a limited member of two others. */
static int fake_query_pkey(struct ibv_context *c, uint8_t port, int index, __be16 *pkey)
{
	static const uint16_t keys[] = {0x7fff, 0, 0x8001, 0x0002};

	(void)c;
	(void)port;
	if (index < 0 || index > 3)
		return -1;
	*pkey = htons(keys[index]);
	return 0;
}

static int fake_query_gid(struct ibv_context *c, uint8_t port, int index, union ibv_gid *gid)
{
	static const uint8_t loopback[16] = {[10] = 0xff, 0xff, 127, 0, 0, 1};

	slow("query_gid");
	(void)c;
	(void)port;
	memset(gid, 0, sizeof(*gid));
	if (index >= 1)
		memcpy(gid->raw, loopback, 16);
	if (index == RAIL_GID)
		gid->raw[15] = 2;
	return 0;
}

/* The address twice: RoCE v1 in entry 1, v2 in entry 2; the other rail's behind them. */
static int fake_query_gid_ex(struct ibv_context *c, uint32_t port, uint32_t index, struct ibv_gid_entry *e)
{
	*e = (struct ibv_gid_entry){
		.gid_index = index, .port_num = port, .gid_type = index >= 2 ? IBV_GID_TYPE_ROCE_V2 : IBV_GID_TYPE_ROCE_V1};
	return fake_query_gid(c, (uint8_t)port, (int)index, &e->gid);
}

static int fake_get_async(struct ibv_context *c, struct ibv_async_event *e)
{
	(void)c;
	drain_fd(context.async_fd);
	if (!async_pending) {
		errno = EAGAIN;
		return -1;
	}
	async_pending = false;
	*e = async_event;
	return 0;
}

static void fake_ack_async(struct ibv_async_event *e)
{
	(void)e;
}

void adapter_async(enum ibv_event_type type, int port)
{
	async_event = (struct ibv_async_event){.event_type = type};
	if (type == IBV_EVENT_QP_FATAL)
		async_event.element.qp = adapter_qp(0);
	else
		async_event.element.port_num = port;
	async_pending = true;
	signal_fd(context.async_fd);
}

/* --- objects --- */

static struct ibv_pd *fake_alloc_pd(struct ibv_context *c)
{
	struct ibv_pd *pd = fails("alloc_pd") ? NULL : make(sizeof(*pd));

	if (pd)
		pd->context = c;
	return pd;
}

static int fake_dealloc_pd(struct ibv_pd *pd)
{
	slow("dealloc_pd");
	unmake(pd);
	return 0;
}

static struct ibv_comp_channel *fake_create_channel(struct ibv_context *c)
{
	struct ibv_comp_channel *ch = fails("create_comp_channel") ? NULL : make(sizeof(*ch));

	if (ch) {
		ch->context = c;
		ch->fd = eventfd(0, EFD_NONBLOCK);
	}
	return ch;
}

static int fake_destroy_channel(struct ibv_comp_channel *ch)
{
	close(ch->fd);
	unmake(ch);
	return 0;
}

static struct ibv_cq *fake_create_cq(struct ibv_context *c, int n, void *arg, struct ibv_comp_channel *ch, int vector)
{
	struct fake_cq *cq = fails("create_cq") ? NULL : make(sizeof(*cq));

	(void)arg;
	(void)vector;
	if (!cq)
		return NULL;
	cq->cq.context = c;
	cq->cq.channel = ch;
	cq->cq.cqe = n;
	return &cq->cq;
}

static int fake_destroy_cq(struct ibv_cq *cq)
{
	slow("destroy_cq");
	unmake(cq);
	return 0;
}

static int fake_get_cq_event(struct ibv_comp_channel *ch, struct ibv_cq **cq, void **arg)
{
	uint64_t n;

	(void)cq;
	(void)arg;
	return read(ch->fd, &n, sizeof(n)) > 0 ? 0 : -1;
}

static void fake_ack_cq(struct ibv_cq *cq, unsigned n)
{
	(void)cq;
	(void)n;
}

static struct ibv_srq *fake_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *a)
{
	struct fake_srq *s = fails("create_srq") ? NULL : make(sizeof(*s));

	(void)a;
	if (!s)
		return NULL;
	s->srq.pd = pd;
	s->receives = (struct receives){.r = calloc(SRQ_MAX, sizeof(struct receive)), .room = SRQ_MAX};
	return &s->srq;
}

static int fake_destroy_srq(struct ibv_srq *s)
{
	slow("destroy_srq");
	free(((struct fake_srq *)s)->receives.r);
	unmake(s);
	return 0;
}

static struct ibv_mr *fake_reg(struct ibv_pd *pd, void *addr, size_t len, int access)
{
	static uint32_t key;
	struct fake_mr *mr;

	slow("reg_mr");
	if (adapter_faults.refuse_reg > 0) {
		adapter_faults.refuse_reg--;
		errno = ENOMEM;
		return NULL;
	}
	mr = fails("reg_mr") ? NULL : make(sizeof(*mr));
	if (!mr)
		return NULL;
	key++;
	*mr = (struct fake_mr){{.pd = pd, .addr = addr, .length = len, .lkey = key, .rkey = key}, access, mrs, NULL};
	mrs = mr;
	return &mr->mr;
}

static int fake_dereg(struct ibv_mr *mr)
{
	struct fake_mr **at = &mrs;

	slow("dereg_mr");
	while (&(*at)->mr != mr)
		at = &(*at)->next;
	*at = (*at)->next;
	free(((struct fake_mr *)mr)->stale);
	unmake(mr);
	return 0;
}

/* The registration with this key, if it covers the range and allows this access. */
static const struct fake_mr *registered(uint32_t key, uint64_t addr, uint64_t len, int access)
{
	for (const struct fake_mr *m = mrs; m; m = m->next) {
		uint64_t at = (uint64_t)(uintptr_t)m->mr.addr;

		if (m->mr.lkey != key)
			continue;
		if (addr < at || len > m->mr.length || addr - at > m->mr.length - len || (m->access & access) != access)
			return NULL;
		return m;
	}
	return NULL;
}

/* Where an access through the registration goes: to the pages that were there when it was made. */
static void *pages(const struct fake_mr *m, uint64_t addr)
{
	return m->stale ? m->stale + (addr - (uint64_t)(uintptr_t)m->mr.addr) : (void *)(uintptr_t)addr;
}

int adapter_remap(void *addr, size_t len)
{
	int count = 0;

	for (struct fake_mr *m = mrs; m; m = m->next) {
		if ((char *)m->mr.addr >= (char *)addr + len || (char *)m->mr.addr + m->mr.length <= (char *)addr || m->stale)
			continue;
		m->stale = malloc(m->mr.length);
		memcpy(m->stale, m->mr.addr, m->mr.length);
		count++;
	}
	return count;
}

int adapter_registrations(void)
{
	int count = 0;

	for (const struct fake_mr *m = mrs; m; m = m->next)
		count++;
	return count;
}

int adapter_access(void)
{
	return mrs ? mrs->access : 0;
}

/* --- work --- */

static void complete(struct ibv_cq *base, const struct ibv_wc *wc)
{
	struct fake_cq *cq = (struct fake_cq *)base;

	cq->q.wc[(cq->q.at + cq->q.count++) % QUEUE_MAX] = *wc;
	if (!cq->armed)
		return;
	cq->armed = false;
	signal_fd(base->channel->fd);
}

static int fake_poll(struct ibv_cq *base, int n, struct ibv_wc *wc)
{
	struct fake_cq *cq = (struct fake_cq *)base;
	int got = 0;

	for (; got < n && cq->q.count > 0; got++, cq->q.count--)
		wc[got] = cq->q.wc[cq->q.at++ % QUEUE_MAX];
	cq->q.at %= QUEUE_MAX;
	return got;
}

static int fake_notify_cq(struct ibv_cq *base, int solicited)
{
	(void)solicited;
	((struct fake_cq *)base)->armed = true;
	return 0;
}

static struct receives *receives_of(struct fake_qp *q)
{
	return q->qp.srq ? &((struct fake_srq *)q->qp.srq)->receives : &q->own;
}

static void receive_add(struct receives *rs, const struct ibv_recv_wr *wr)
{
	rs->r[(rs->at + rs->count++) % rs->room] = (struct receive){wr->wr_id, wr->sg_list->addr, wr->sg_list->length};
}

static bool receive_take(struct receives *rs, struct receive *r)
{
	if (rs->count == 0)
		return false;
	*r = rs->r[rs->at++ % rs->room];
	rs->at %= rs->room;
	rs->count--;
	return true;
}

/* Bytes arrive at q: false if no receive was posted. */
static bool deliver(struct fake_qp *q, const void *bytes, uint32_t len)
{
	struct receive r;
	struct ibv_wc wc = {.byte_len = len, .opcode = IBV_WC_RECV, .qp_num = q->qp.qp_num};

	if (!receive_take(receives_of(q), &r) || len > r.len)
		return false;
	memcpy((void *)(uintptr_t)r.addr, bytes, len);
	wc.wr_id = r.id;
	complete(q->qp.recv_cq, &wc);
	return true;
}

/* soft-iWARP while it sets a connection up: what comes stays in the socket, and only more that comes has it read. */
static bool arrive(struct fake_qp *q, const void *bytes, uint32_t len)
{
	bool all = true;

	if (adapter_faults.overlook) {
		q->overlooked = realloc(q->overlooked, (size_t)(q->overlooked_count + 1) * sizeof(*q->overlooked));
		q->overlooked[q->overlooked_count].len = len;
		memcpy(q->overlooked[q->overlooked_count++].bytes, bytes, len);
		return true;
	}
	for (int i = 0; i < q->overlooked_count; i++)
		all = deliver(q, q->overlooked[i].bytes, q->overlooked[i].len) && all;
	q->overlooked_count = 0;
	return deliver(q, bytes, len) && all;
}

bool adapter_inject(const void *bytes, uint32_t len, struct ibv_qp *to)
{
	bool taken = deliver((struct fake_qp *)to, bytes, len);

	if (!taken)
		fprintf(stderr, "adapter: no receive for an injected packet\n");
	return taken;
}

static void qp_fail(struct fake_qp *q)
{
	struct receive r;
	struct ibv_wc wc = {.status = IBV_WC_WR_FLUSH_ERR, .qp_num = q->qp.qp_num};

	if (q->error)
		return;
	q->error = true;
	while (!q->qp.srq && receive_take(&q->own, &r)) {
		wc.wr_id = r.id;
		complete(q->qp.recv_cq, &wc);
	}
}

/* What soft-iWARP sends of memory at `addr` (Linux, siw_try_1seg): of at most 32 bytes across the end of a page it takes as many out of
 * the first page as lie in the second, and the rest from the beginning of a page. */
static void transfer_copy(void *to, const void *from, uint64_t addr, size_t bytes)
{
	size_t first = 4096 - addr % 4096, right = bytes;

	if (adapter_faults.iwarp && bytes <= 32 && bytes > first && bytes != 2 * first)
		right = bytes - first < first ? bytes - first : first;
	memcpy(to, from, right);
	memset((char *)to + right, 0, bytes - right);
}

/* An RDMA read or write; iWARP answers a read by a write. */
static enum ibv_wc_status transfer(const struct ibv_send_wr *wr)
{
	const struct ibv_sge *s = wr->sg_list;
	bool read = wr->opcode == IBV_WR_RDMA_READ;
	int access = !read ? 0 : IBV_ACCESS_LOCAL_WRITE | (adapter_faults.iwarp ? IBV_ACCESS_REMOTE_WRITE : 0);
	const struct fake_mr *local = registered(s->lkey, s->addr, s->length, access), *remote;
	uint64_t there = wr->wr.rdma.remote_addr;

	if (!local)
		return IBV_WC_LOC_PROT_ERR;
	remote = registered(wr->wr.rdma.rkey, there, s->length, read ? IBV_ACCESS_REMOTE_READ : IBV_ACCESS_REMOTE_WRITE);
	if (!remote)
		return IBV_WC_REM_ACCESS_ERR;
	if (!adapter_faults.no_copy && read)
		transfer_copy(pages(local, s->addr), pages(remote, there), there, s->length);
	else if (!adapter_faults.no_copy)
		transfer_copy(pages(remote, there), pages(local, s->addr), s->addr, s->length);
	adapter_reads += read;
	adapter_writes += !read;
	adapter_rma_bytes += s->length;
	return IBV_WC_SUCCESS;
}

/* Joined by RDMA CM, or by hand. */
static struct fake_qp *qp_other(const struct fake_qp *q)
{
	if (q->id)
		return q->id->other ? q->id->other->qp : NULL;
	for (int i = 0; i < qp_count; i++) {
		if (qps[i] && qps[i]->qp.qp_num == q->dest && q->state == IBV_QPS_RTS)
			return qps[i];
	}
	return NULL;
}

static int fake_post_send(struct ibv_qp *base, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct fake_qp *q = (struct fake_qp *)base, *to = qp_other(q);
	struct ibv_wc wc = {.wr_id = wr->wr_id, .qp_num = base->qp_num};

	*bad = wr;
	if (adapter_faults.post_error)
		return adapter_faults.post_error;
	if (q->id && q->id->hollow) {
		if (wr->send_flags & IBV_SEND_SIGNALED)
			complete(base->send_cq, &wc);
		return 0;
	}
	if (q->id && q->id->far && !q->error) {
		adapter_far->packet(q->id->far, (const void *)(uintptr_t)wr->sg_list->addr, wr->sg_list->length);
		if (wr->send_flags & IBV_SEND_SIGNALED)
			complete(base->send_cq, &wc);
		return 0;
	}
	if (q->error || !to || to->error) {
		wc.status = q->error ? IBV_WC_WR_FLUSH_ERR : IBV_WC_RETRY_EXC_ERR;
	} else if (!q->id && (q->psn[0] != to->psn[1] || to->dest != base->qp_num)) {
		wc.status = IBV_WC_RETRY_EXC_ERR; /* the other does not expect us */
	} else if (adapter_faults.next_send) {
		wc.status = adapter_faults.next_send;
		adapter_faults.next_send = IBV_WC_SUCCESS;
	} else if (wr->opcode != IBV_WR_SEND && adapter_faults.hold_rma && q->rma_count < RMA_MAX) {
		q->rma[q->rma_count].wr = *wr;
		q->rma[q->rma_count++].sge = *wr->sg_list;
		return 0;
	} else if (wr->opcode != IBV_WR_SEND) {
		wc.status = transfer(wr);
	} else if (!arrive(to, (const void *)(uintptr_t)wr->sg_list->addr, wr->sg_list->length)) {
		wc.status = IBV_WC_RNR_RETRY_EXC_ERR;
	}
	if ((wr->send_flags & IBV_SEND_INLINE) && wr->sg_list->length > q->max_inline)
		return EINVAL;
	adapter_inlined += (wr->send_flags & IBV_SEND_INLINE) != 0;
	if (wc.status)
		q->error = true;
	else if (!(wr->send_flags & IBV_SEND_SIGNALED))
		return 0;
	if (adapter_faults.hold_sends && !wc.status)
		q->held.wc[q->held.count++] = wc;
	else
		complete(base->send_cq, &wc);
	return 0;
}

/* The reads and writes that are under way go on, as long as both their ends are what they were. */
static void rma_on(struct fake_qp *q)
{
	for (int i = 0; i < q->rma_count; i++) {
		const struct fake_qp *to = qp_other(q);
		struct ibv_wc wc = {.wr_id = q->rma[i].wr.wr_id, .qp_num = q->qp.qp_num, .status = IBV_WC_WR_FLUSH_ERR};

		q->rma[i].wr.sg_list = &q->rma[i].sge;
		if (!q->error)
			wc.status = to && !to->error ? transfer(&q->rma[i].wr) : IBV_WC_RETRY_EXC_ERR;
		if (wc.status != IBV_WC_SUCCESS)
			q->error = true;
		complete(q->qp.send_cq, &wc);
	}
	q->rma_count = 0;
}

void adapter_release(void)
{
	adapter_faults.hold_sends = adapter_faults.hold_rma = false;
	for (int i = 0; i < qp_count; i++) {
		if (qps[i])
			rma_on(qps[i]);
	}
	for (int i = 0; i < qp_count; i++) {
		for (int k = 0; qps[i] && k < qps[i]->held.count; k++)
			complete(qps[i]->qp.send_cq, &qps[i]->held.wc[k]);
		if (qps[i])
			qps[i]->held.count = 0;
	}
}

static int fake_post_recv(struct ibv_qp *base, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	(void)bad;
	if (fails("post_recv"))
		return errno;
	receive_add(&((struct fake_qp *)base)->own, wr);
	return 0;
}

static int fake_post_srq(struct ibv_srq *base, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	(void)bad;
	if (fails("post_srq_recv"))
		return errno;
	receive_add(&((struct fake_srq *)base)->receives, wr);
	return 0;
}

/* What an adapter would refuse or never connect. */
static bool address_is_wrong(const struct ibv_qp_attr *a)
{
	static const uint8_t loopback[16] = {[10] = 0xff, 0xff, 127, 0, 0, 1};
	const uint8_t *to = a->ah_attr.grh.dgid.raw;
	bool rail = adapter_faults.rails && (to[15] == 2 || a->ah_attr.grh.sgid_index == RAIL_GID);

	if (adapter_faults.infiniband)
		return a->ah_attr.is_global || a->ah_attr.dlid != 3 || a->ah_attr.port_num != 1;
	return !a->ah_attr.is_global || memcmp(to, loopback, 15) != 0 || a->ah_attr.grh.hop_limit == 0 ||
	       (!rail && (to[15] != 1 || a->ah_attr.grh.sgid_index != 2));
}

static int fake_modify(struct ibv_qp *base, struct ibv_qp_attr *a, int mask)
{
	struct fake_qp *q = (struct fake_qp *)base;

	slow("modify_qp");
	if (a->qp_state == IBV_QPS_ERR) {
		qp_fail(q);
		return 0;
	}
	if (fails("modify_qp"))
		return errno;
	if (a->qp_state != (q->state == IBV_QPS_RESET  ? IBV_QPS_INIT
			    : q->state == IBV_QPS_INIT ? IBV_QPS_RTR
						       : IBV_QPS_RTS) ||
	    !(mask & IBV_QP_STATE))
		return EINVAL;
	q->state = a->qp_state;
	if (a->qp_state == IBV_QPS_INIT && mask & IBV_QP_PKEY_INDEX)
		adapter_pkey_index = a->pkey_index;
	if (a->qp_state == IBV_QPS_RTR && address_is_wrong(a))
		return EINVAL;
	if (a->qp_state == IBV_QPS_RTR) {
		adapter_path = (struct adapter_path){a->path_mtu, a->ah_attr.sl, a->ah_attr.grh.traffic_class};
		q->dest = a->dest_qp_num;
		q->psn[1] = a->rq_psn;
	}
	if (a->qp_state == IBV_QPS_RTS)
		q->psn[0] = a->sq_psn;
	return 0;
}

struct ibv_qp *adapter_qp(int n)
{
	return n < qp_count && qps[n] ? &qps[n]->qp : NULL;
}

static struct ibv_qp *fake_make_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *a)
{
	static uint32_t number = 16;
	struct fake_qp *q;

	if (a->cap.max_inline_data > adapter_faults.max_inline) {
		errno = EINVAL;
		return NULL;
	}
	q = qp_count == QPS_MAX || fails("create_qp") ? NULL : make(sizeof(*q));
	if (!q)
		return NULL;
	q->qp = (struct ibv_qp){
		.context = &context, .pd = pd, .send_cq = a->send_cq, .recv_cq = a->recv_cq, .srq = a->srq, .qp_num = ++number};
	q->max_inline = a->cap.max_inline_data;
	if (!a->srq)
		q->own = (struct receives){.r = calloc(QUEUE_MAX, sizeof(struct receive)), .room = QUEUE_MAX};
	qps[qp_count++] = q;
	return &q->qp;
}

static int fake_unmake_qp(struct ibv_qp *base)
{
	slow("destroy_qp");
	for (int i = 0; i < qp_count; i++) {
		if (qps[i] == (struct fake_qp *)base)
			qps[i] = NULL;
	}
	free(((struct fake_qp *)base)->overlooked);
	free(((struct fake_qp *)base)->own.r);
	unmake(base);
	return 0;
}

/* --- connections --- */

static void id_forget(struct fake_id *id)
{
	for (int i = 0; i < IDS_MAX; i++) {
		if (ids[i] == id)
			ids[i] = NULL;
	}
	unmake(id);
}

static void fake_destroy_qp(struct rdma_cm_id *base)
{
	struct fake_id *id = (struct fake_id *)base;

	fake_unmake_qp(base->qp);
	id->qp = NULL;
	base->qp = NULL;
}

static struct rdma_event_channel *fake_create_events(void)
{
	struct fake_channel *c = fails("create_event_channel") ? NULL : make(sizeof(*c));

	if (!c)
		return NULL;
	c->c.fd = eventfd(0, EFD_NONBLOCK);
	c->tail = &c->head;
	c->number = ++channel_count;
	return &c->c;
}

static void channel_add(struct fake_event *e)
{
	struct fake_channel *c = ((struct fake_id *)e->e.id)->channel;

	*c->tail = e;
	c->tail = &e->next;
	signal_fd(c->c.fd);
}

/* Takes the events out of the list for which the id, or an id of the channel, is the one. */
static void events_drop(struct fake_event **head, struct fake_event ***tail, const struct fake_id *id, const struct fake_channel *c)
{
	for (struct fake_event **at = head; *at;) {
		struct fake_event *e = *at;
		struct fake_id *of = (struct fake_id *)e->e.id;

		if (of != id && of->channel != c) {
			at = &e->next;
			continue;
		}
		*at = e->next;
		if (of != id && e->e.event == RDMA_CM_EVENT_CONNECT_REQUEST) { /* which nobody has read */
			if (of->other)
				of->other->other = NULL;
			id_forget(of);
		}
		free(e);
	}
	*tail = head;
	while (**tail)
		*tail = &(**tail)->next;
}

static void fake_destroy_events(struct rdma_event_channel *base)
{
	struct fake_channel *c = (struct fake_channel *)base;

	events_drop(&c->head, &c->tail, NULL, c);
	events_drop(&late, &late_tail, NULL, c);
	close(c->c.fd);
	unmake(c);
}

static void notify(struct fake_id *to, enum rdma_cm_event_type type, int status, const void *data, size_t len)
{
	struct fake_event *e = calloc(1, sizeof(*e));

	e->e.id = &to->id;
	e->e.event = type;
	e->e.status = status;
	if (len) {
		memcpy(e->data, data, len);
		e->e.param.conn.private_data = e->data;
		e->e.param.conn.private_data_len = (uint8_t)len;
	}
	if (!adapter_weather.late) {
		channel_add(e);
		return;
	}
	*late_tail = e;
	late_tail = &e->next;
}

/* Events whose order counts: those of one id, and the requests of one rank: their private data begin alike. */
static bool same_order(const struct fake_event *a, const struct fake_event *b)
{
	return a->e.id == b->e.id ||
	       (a->e.event == RDMA_CM_EVENT_CONNECT_REQUEST && b->e.event == RDMA_CM_EVENT_CONNECT_REQUEST &&
		((struct fake_id *)a->e.id)->channel == ((struct fake_id *)b->e.id)->channel && memcmp(a->data, b->data, 8) == 0);
}

int adapter_deliver(int most)
{
	int done = 0, count = 0;

	for (const struct fake_event *e = late; e; e = e->next)
		count++;
	for (; done < most && late; done++, count--) {
		struct fake_event **at = &late, **first = &late, *e;

		for (uint64_t n = rng_below(&weather_rng, (uint64_t)count); n > 0; n--)
			at = &(*at)->next;
		while (!same_order(*first, *at))
			first = &(*first)->next;
		e = *first;
		*first = e->next;
		if (late_tail == &e->next)
			late_tail = first;
		e->next = NULL;
		channel_add(e);
	}
	return done;
}

void adapter_set_weather(struct adapter_weather w)
{
	adapter_weather = w;
	weather_rng = rng_seed(w.seed, 1);
	if (!w.late)
		adapter_deliver(INT_MAX);
}

/* Does this step of connecting from here to this port come to grief? */
static bool trouble(const struct fake_id *id)
{
	uint32_t at = ((uint32_t)id->channel->number * 40503u + id->target) % TROUBLES_MAX;

	if (!rng_percent(&weather_rng, adapter_weather.trouble_percent))
		return false;
	while (troubles[at].count > 0 && (troubles[at].channel != id->channel->number || troubles[at].port != id->target))
		at = (at + 1) % TROUBLES_MAX;
	if (troubles[at].count == adapter_weather.most)
		return false;
	troubles[at].channel = id->channel->number;
	troubles[at].port = id->target;
	troubles[at].count++;
	adapter_troubles++;
	return true;
}

static struct fake_id *id_make(struct rdma_event_channel *c, void *arg, enum rdma_port_space ps)
{
	struct fake_id *n = make(sizeof(*n));

	n->channel = (struct fake_channel *)c;
	n->id = (struct rdma_cm_id){.context = arg, .channel = c, .ps = ps, .port_num = 1};
	for (int i = 0; i < IDS_MAX; i++) {
		if (ids[i])
			continue;
		ids[i] = n;
		return n;
	}
	fprintf(stderr, "adapter: no room for another id\n");
	abort();
}

static int fake_create_id(struct rdma_event_channel *c, struct rdma_cm_id **id, void *arg, enum rdma_port_space ps)
{
	if (fails("create_id"))
		return -1;
	*id = &id_make(c, arg, ps)->id;
	return 0;
}

static int fake_disconnect(struct rdma_cm_id *base)
{
	struct fake_id *id = (struct fake_id *)base, *other = id->other;

	slow("disconnect");
	if (!id->connected)
		return -1;
	id->connected = false;
	if (id->qp)
		qp_fail(id->qp);
	if (other) {
		notify(other, RDMA_CM_EVENT_DISCONNECTED, 0, NULL, 0);
		notify(id, RDMA_CM_EVENT_DISCONNECTED, 0, NULL, 0);
	}
	if (id->far)
		notify(id, RDMA_CM_EVENT_DISCONNECTED, 0, NULL, 0);
	return 0;
}

void adapter_disconnect_all(void)
{
	for (int i = 0; i < IDS_MAX; i++) {
		if (ids[i] && ids[i]->connected)
			notify(ids[i], RDMA_CM_EVENT_DISCONNECTED, 0, NULL, 0);
	}
}

static int fake_destroy_id(struct rdma_cm_id *base)
{
	struct fake_id *id = (struct fake_id *)base;

	slow("destroy_id");
	fake_disconnect(base);
	if (id->other) {
		if (!id->other->connected && id->other->qp)
			notify(id->other, RDMA_CM_EVENT_REJECTED, 8, NULL, 0);
		id->other->other = NULL;
	}
	if (id->far)
		adapter_far->ended(id->far, base);
	events_drop(&id->channel->head, &id->channel->tail, id, NULL);
	events_drop(&late, &late_tail, id, NULL);
	id_forget(id);
	return 0;
}

static int fake_set_option(struct rdma_cm_id *id, int level, int name, void *value, size_t bytes)
{
	slow("set_option");
	(void)id;
	if (level != RDMA_OPTION_ID || bytes != 1)
		return -1;
	if (name == RDMA_OPTION_ID_TOS)
		adapter_path.traffic_class = *(uint8_t *)value;
	return name == RDMA_OPTION_ID_ACK_TIMEOUT || name == RDMA_OPTION_ID_TOS ? 0 : -1;
}

static int fake_bind(struct rdma_cm_id *id, struct sockaddr *addr)
{
	(void)addr;
	if (fails("bind_addr"))
		return -1;
	device.transport_type = adapter_faults.iwarp ? IBV_TRANSPORT_IWARP : IBV_TRANSPORT_IB;
	id->verbs = &context;
	return 0;
}

static int fake_listen(struct rdma_cm_id *base, int backlog)
{
	struct fake_id *id = (struct fake_id *)base;

	if (fails("listen"))
		return -1;
	id->listening = true;
	id->backlog = adapter_faults.backlog ? adapter_faults.backlog : backlog;
	id->port = htons(++next_port);
	return 0;
}

static uint16_t fake_src_port(struct rdma_cm_id *id)
{
	return ((struct fake_id *)id)->port;
}

static int fake_resolve_addr(struct rdma_cm_id *base, struct sockaddr *src, struct sockaddr *dst, int ms)
{
	struct fake_id *id = (struct fake_id *)base;

	(void)src;
	(void)ms;
	if (fails("resolve_addr"))
		return -1;
	id->target = ((struct sockaddr_in *)(void *)dst)->sin_port;
	base->verbs = &context;
	if (trouble(id))
		notify(id, RDMA_CM_EVENT_ADDR_ERROR, -ETIMEDOUT, NULL, 0);
	else
		notify(id, RDMA_CM_EVENT_ADDR_RESOLVED, 0, NULL, 0);
	return 0;
}

static int fake_resolve_route(struct rdma_cm_id *id, int ms)
{
	(void)ms;
	if (fails("resolve_route"))
		return -1;
	if (trouble((struct fake_id *)id))
		notify((struct fake_id *)id, RDMA_CM_EVENT_ROUTE_ERROR, -ETIMEDOUT, NULL, 0);
	else
		notify((struct fake_id *)id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0, NULL, 0);
	return 0;
}

static int fake_create_qp(struct rdma_cm_id *base, struct ibv_pd *pd, struct ibv_qp_init_attr *a)
{
	struct fake_id *id = (struct fake_id *)base;

	base->qp = fake_make_qp(pd, a);
	id->qp = (struct fake_qp *)base->qp;
	if (!id->qp)
		return -1;
	id->qp->id = id;
	return 0;
}

static struct fake_id *listener_at(uint16_t port)
{
	for (int i = 0; i < IDS_MAX; i++) {
		if (ids[i] && ids[i]->listening && ids[i]->port == port)
			return ids[i];
	}
	return NULL;
}

/* A request reaches the listener. NULL: too many lie there unread. */
static struct fake_id *request(struct fake_id *l, struct fake_id *from, void *far, const void *data, size_t len)
{
	struct fake_id *id;

	if (l->waiting >= l->backlog)
		return NULL;
	l->waiting++;
	id = id_make(&l->channel->c, l->id.context, l->id.ps);
	id->id.verbs = &context;
	id->other = from;
	id->far = far;
	id->listener = l;
	if (from)
		from->other = id;
	notify(id, RDMA_CM_EVENT_CONNECT_REQUEST, 0, data, len);
	return id;
}

/* The request is lost, arrives after it was given up, or finds the other side busy. */
static bool connect_in_vain(struct fake_id *id, struct fake_id *l, const struct rdma_conn_param *p)
{
	if (!trouble(id))
		return false;
	switch (rng_below(&weather_rng, 4)) {
	case 0: notify(id, RDMA_CM_EVENT_REJECTED, ADAPTER_BUSY, NULL, 0); return true;
	case 1: notify(id, RDMA_CM_EVENT_REJECTED, -ECONNRESET, NULL, 0); return true;
	case 2: notify(id, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT, NULL, 0); return true;
	default:
		request(l, NULL, NULL, p->private_data, p->private_data_len);
		notify(id, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT, NULL, 0);
		return true;
	}
}

static int fake_connect(struct rdma_cm_id *base, struct rdma_conn_param *p)
{
	struct fake_id *id = (struct fake_id *)base, *l;

	if (fails("connect"))
		return -1;
	adapter_requests++;
	if (adapter_hollow) {
		unsigned char data[64];
		int len = adapter_hollow(id->target, data);

		id->hollow = id->connected = true;
		notify(id, RDMA_CM_EVENT_ESTABLISHED, 0, data, (size_t)len);
		return 0;
	}
	if (adapter_far) {
		id->far = adapter_far->requested(base, id->target, p->private_data);
		return 0;
	}
	l = listener_at(id->target);
	if (!l)
		notify(id, RDMA_CM_EVENT_REJECTED, 8, NULL, 0);
	else if (!connect_in_vain(id, l, p) && !request(l, id, NULL, p->private_data, p->private_data_len))
		notify(id, RDMA_CM_EVENT_REJECTED, ADAPTER_BUSY, NULL, 0);
	return 0;
}

struct rdma_cm_id *adapter_call(uint16_t port, void *far, const void *data, size_t len)
{
	struct fake_id *id = request(listener_at(port), NULL, far, data, len);

	return id ? &id->id : NULL;
}

void adapter_answer(struct rdma_cm_id *base, enum rdma_cm_event_type type, int status, const void *data, size_t len)
{
	struct fake_id *id = (struct fake_id *)base;

	if (type == RDMA_CM_EVENT_ESTABLISHED)
		id->connected = true;
	else
		id->far = NULL;
	notify(id, type, status, data, len);
}

void adapter_hang_up(struct rdma_cm_id *id)
{
	((struct fake_id *)id)->far = NULL;
}

static int fake_accept(struct rdma_cm_id *base, struct rdma_conn_param *p)
{
	struct fake_id *id = (struct fake_id *)base;

	if (fails("accept"))
		return -1;
	if (id->far) {
		adapter_far->answered(id->far, base, true, p->private_data);
		return 0;
	}
	if (!id->other) { /* the request was given up */
		errno = ECONNRESET;
		return -1;
	}
	id->connected = id->other->connected = true;
	notify(id->other, RDMA_CM_EVENT_ESTABLISHED, 0, p->private_data, p->private_data_len);
	notify(id, RDMA_CM_EVENT_ESTABLISHED, 0, NULL, 0);
	return 0;
}

static int fake_reject(struct rdma_cm_id *base, const void *data, uint8_t len)
{
	struct fake_id *id = (struct fake_id *)base;

	slow("reject");
	if (id->far) {
		void *far = id->far;

		id->far = NULL;
		adapter_far->answered(far, base, false, data);
	}
	if (id->other) {
		notify(id->other, RDMA_CM_EVENT_REJECTED, 28, data, len);
		if (id->other->qp) /* as siw does: perhaps before the caller has seen the event */
			qp_fail(id->other->qp);
		id->other->other = NULL;
		id->other = NULL;
	}
	return 0;
}

static int fake_notify(struct rdma_cm_id *id, enum ibv_event_type type)
{
	slow("notify");
	(void)id;
	(void)type;
	return 0;
}

static int fake_get_event(struct rdma_event_channel *base, struct rdma_cm_event **out)
{
	struct fake_channel *c = (struct fake_channel *)base;
	struct fake_event *e = c->head;

	slow("get_cm_event");
	drain_fd(base->fd);
	if (!e) {
		errno = EAGAIN;
		return -1;
	}
	c->head = e->next;
	if (!c->head)
		c->tail = &c->head;
	if (e->e.event == RDMA_CM_EVENT_CONNECT_REQUEST)
		((struct fake_id *)e->e.id)->listener->waiting--;
	*out = &e->e;
	return 0;
}

static int fake_ack_event(struct rdma_cm_event *e)
{
	slow("ack_cm_event");
	free((char *)e - offsetof(struct fake_event, e));
	return 0;
}

const struct verbs_provider adapter_provider = {
	.available = fake_available,
	.getifaddrs = fake_getifaddrs,
	.freeifaddrs = fake_freeifaddrs,
	.query_device = fake_query_device,
	.query_port = fake_query_port,
	.has_paging = fake_has_paging,
	.query_gid = fake_query_gid,
	.query_pkey = fake_query_pkey,
	.query_gid_ex = fake_query_gid_ex,
	.get_device_list = fake_get_devices,
	.free_device_list = fake_free_devices,
	.open_device = fake_open,
	.close_device = fake_close,
	.get_async_event = fake_get_async,
	.ack_async_event = fake_ack_async,
	.alloc_pd = fake_alloc_pd,
	.dealloc_pd = fake_dealloc_pd,
	.create_comp_channel = fake_create_channel,
	.destroy_comp_channel = fake_destroy_channel,
	.create_cq = fake_create_cq,
	.destroy_cq = fake_destroy_cq,
	.get_cq_event = fake_get_cq_event,
	.ack_cq_events = fake_ack_cq,
	.create_srq = fake_create_srq,
	.destroy_srq = fake_destroy_srq,
	.reg_mr = fake_reg,
	.dereg_mr = fake_dereg,
	.make_qp = fake_make_qp,
	.unmake_qp = fake_unmake_qp,
	.post_send = fake_post_send,
	.post_recv = fake_post_recv,
	.post_srq_recv = fake_post_srq,
	.poll_cq = fake_poll,
	.req_notify_cq = fake_notify_cq,
	.modify_qp = fake_modify,
	.create_event_channel = fake_create_events,
	.destroy_event_channel = fake_destroy_events,
	.create_id = fake_create_id,
	.destroy_id = fake_destroy_id,
	.set_option = fake_set_option,
	.bind_addr = fake_bind,
	.listen = fake_listen,
	.get_src_port = fake_src_port,
	.resolve_addr = fake_resolve_addr,
	.resolve_route = fake_resolve_route,
	.create_qp = fake_create_qp,
	.destroy_qp = fake_destroy_qp,
	.connect = fake_connect,
	.accept = fake_accept,
	.reject = fake_reject,
	.disconnect = fake_disconnect,
	.notify = fake_notify,
	.get_cm_event = fake_get_event,
	.ack_cm_event = fake_ack_event,
};
