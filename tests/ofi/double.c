/* SPDX-License-Identifier: MIT */
#include "ofi/double.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "transport/netlib/netlib_state.h"
#include "transport/ofi/ofi.h"
#include "transport/ofi/ofi_abi.h"

#define ENDPOINTS 8
#define OPERATIONS 4096
#define INJECT_BYTES 600
#define KEY ((void *)0x5e6)

struct packet {
	struct packet *next;
	size_t bytes;
	bool whole;
	unsigned char data[];
};

struct operation {
	void *context;
	unsigned char *buf;
	size_t bytes;
	int error, to;
};

/* One fabric, domain, queue and endpoint: what one transport opens. */
struct endpoint {
	struct ofi_fabric fabric;
	struct ofi_domain domain;
	struct ofi_cq cq;
	struct ofi_av av;
	struct ofi_ep ep;
	int number, fd, objects, lost; /* lost: sends to it end with this status */
	bool enabled;
	struct packet *queue;
	struct operation posted[OPERATIONS], held[OPERATIONS], done[OPERATIONS];
	int posted_count, held_count, done_count;
	const char *registered[2];
	size_t registered_bytes[2];
	int registered_count;
};

struct double_faults double_faults;
struct ofi_double ofi_double;
bool double_locked;
unsigned double_sends;

static struct endpoint *endpoints[ENDPOINTS];
static int live;
static uint64_t random_state = 1;

static bool fails(const char *name)
{
	if (double_locked) {
		fprintf(stderr, "%s with the lock held\n", name);
		abort();
	}
	double_faults.calls++;
	if (double_faults.fail_call == 0 || --double_faults.fail_call > 0)
		return false;
	double_faults.failed = name;
	return true;
}

#define OF(object, member) ((struct endpoint *)((char *)(object)-offsetof(struct endpoint, member)))

/* --- objects --- */

static void endpoint_free(struct endpoint *e)
{
	if (--e->objects > 0)
		return;
	while (e->queue) {
		struct packet *p = e->queue;

		e->queue = p->next;
		free(p);
	}
	if (e->fd >= 0)
		close(e->fd);
	endpoints[e->number] = NULL;
	free(e);
}

static int close_fabric(struct ofi_fid *fid)
{
	live--;
	endpoint_free(OF(fid, fabric));
	return 0;
}

static int close_domain(struct ofi_fid *fid)
{
	live--;
	endpoint_free(OF(fid, domain));
	return 0;
}

static int close_cq(struct ofi_fid *fid)
{
	if (OF(fid, cq)->enabled)
		abort(); /* its endpoint is open */
	live--;
	endpoint_free(OF(fid, cq));
	return 0;
}

static int close_av(struct ofi_fid *fid)
{
	live--;
	endpoint_free(OF(fid, av));
	return 0;
}

static int close_ep(struct ofi_fid *fid)
{
	OF(fid, ep)->enabled = false;
	live--;
	endpoint_free(OF(fid, ep));
	return 0;
}

static int close_mr(struct ofi_fid *fid)
{
	live--;
	free(fid);
	return 0;
}

static int control_cq(struct ofi_fid *fid, int command, void *arg)
{
	struct endpoint *e = OF(fid, cq);

	if (command != OFI_GETWAIT)
		abort();
	if (fails("getwait"))
		return -EIO;
	*(int *)arg = e->fd = eventfd(0, EFD_NONBLOCK);
	return 0;
}

static int bind_ep(struct ofi_fid *fid, struct ofi_fid *to, uint64_t flags)
{
	if (to == &OF(fid, ep)->cq.fid && flags != (OFI_SEND | OFI_RECV))
		abort();
	return fails("bind") ? -EIO : 0;
}

static int control_ep(struct ofi_fid *fid, int command, void *arg)
{
	(void)arg;
	if (command != OFI_ENABLE)
		abort();
	if (fails("enable"))
		return -EIO;
	OF(fid, ep)->enabled = true;
	return 0;
}

static int bind_mr(struct ofi_fid *fid, struct ofi_fid *to, uint64_t flags)
{
	(void)to;
	(void)flags;
	return fid->context ? 0 : -EINVAL;
}

static int control_mr(struct ofi_fid *fid, int command, void *arg)
{
	(void)fid;
	(void)arg;
	return command == OFI_ENABLE ? 0 : -EINVAL;
}

static int getname(struct ofi_fid *ep, void *addr, size_t *bytes)
{
	if (fails("getname"))
		return -OFI_ENOMEM;
	memcpy(addr, &OF(ep, ep)->number, sizeof(int));
	*bytes = sizeof(int);
	return 0;
}

static int insert(struct ofi_av *av, const void *addr, size_t count, uint64_t *out, uint64_t flags, void *context)
{
	int number;

	(void)av;
	(void)flags;
	(void)context;
	if (fails("av_insert"))
		return -OFI_EHOSTUNREACH;
	memcpy(&number, addr, sizeof(number));
	*out = (uint64_t)number;
	return (int)count;
}

/* --- packets --- */

static void signal_news(struct endpoint *e)
{
	uint64_t one = 1;

	if (e->fd >= 0 && write(e->fd, &one, sizeof(one)) != sizeof(one))
		abort();
}

static void arrive(int number, const void *head, size_t head_bytes, const void *data, size_t bytes, bool whole)
{
	struct endpoint *e = endpoints[number];
	struct packet *p = calloc(1, sizeof(*p) + head_bytes + bytes), **at = &e->queue;

	p->bytes = head_bytes + bytes;
	p->whole = whole;
	memcpy(p->data, head, head_bytes);
	if (bytes)
		memcpy(p->data + head_bytes, data, bytes);
	while (*at) {
		random_state = random_state * 6364136223846793005u + 1442695040888963407u;
		if (double_faults.shuffle && random_state >> 62 == 0)
			break;
		at = &(*at)->next;
	}
	p->next = *at;
	*at = p;
	signal_news(e);
}

void double_inject(int endpoint, const void *header, size_t header_bytes, const void *data, size_t bytes, bool whole)
{
	arrive(endpoint, header, header_bytes, data, header_bytes == sizeof(struct netlib_head) ? bytes : 0, whole);
}

static void check_registered(const struct endpoint *e, const void *buf, size_t len, const void *desc)
{
	bool found = !(ofi_double.mr_mode & OFI_MR_LOCAL);

	for (int i = 0; i < e->registered_count; i++)
		found = found ||
			((const char *)buf >= e->registered[i] && (const char *)buf + len <= e->registered[i] + e->registered_bytes[i]);
	if (!found || desc != (ofi_double.mr_mode & OFI_MR_LOCAL ? KEY : NULL))
		abort();
}

static ssize_t receive(struct ofi_ep *ep, void *buf, size_t len, void *desc, uint64_t from, void *context)
{
	struct endpoint *e = OF(ep, ep);

	if (!e->enabled || from != OFI_ADDR_UNSPEC || e->posted_count == OPERATIONS)
		abort();
	check_registered(e, buf, len, desc);
	e->posted[e->posted_count++] = (struct operation){.context = context, .buf = buf, .bytes = len};
	ofi_double.posted++;
	return 0;
}

static ssize_t send_now(struct endpoint *e, const void *buf, size_t len, uint64_t to, void *context)
{
	struct endpoint *other = endpoints[to];
	struct operation *o;

	double_sends++;
	if (double_faults.send)
		return -double_faults.send;
	if (ofi_double.again || (double_faults.hold && !context))
		return -OFI_EAGAIN;
	if (other && other->lost && !context)
		return -other->lost;
	if (other && !other->lost && !double_faults.lose)
		arrive((int)to, buf, len, NULL, 0, true);
	if (!context)
		return 0;
	o = double_faults.hold ? &e->held[e->held_count++] : &e->done[e->done_count++];
	*o = (struct operation){.context = context, .bytes = len, .error = other ? other->lost : 0};
	signal_news(e);
	return 0;
}

static ssize_t send_message(struct ofi_ep *ep, const void *buf, size_t len, void *desc, uint64_t to, void *context)
{
	check_registered(OF(ep, ep), buf, len, desc);
	return send_now(OF(ep, ep), buf, len, to, context);
}

static ssize_t send_inject(struct ofi_ep *ep, const void *buf, size_t len, uint64_t to)
{
	if (len > INJECT_BYTES)
		abort();
	return send_now(OF(ep, ep), buf, len, to, NULL);
}

/* What has arrived meets what is posted. */
static void match(struct endpoint *e)
{
	while (e->queue && e->posted_count > 0 && e->done_count < OPERATIONS) {
		struct packet *p = e->queue;
		struct operation *o = &e->done[e->done_count++];

		*o = e->posted[0];
		memmove(e->posted, e->posted + 1, sizeof(*o) * (size_t)--e->posted_count);
		ofi_double.posted--;
		if (p->bytes > o->bytes)
			abort();
		memcpy(o->buf, p->data, p->bytes);
		o->bytes = p->bytes;
		o->error = p->whole ? 0 : EMSGSIZE;
		e->queue = p->next;
		free(p);
	}
}

static void take(struct endpoint *e)
{
	memmove(e->done, e->done + 1, sizeof(e->done[0]) * (size_t)--e->done_count);
}

static ssize_t cq_read(struct ofi_cq *cq, void *buf, size_t count)
{
	struct endpoint *e = OF(cq, cq);
	struct ofi_cq_entry *out = buf;
	size_t n = 0;

	if (ofi_double.broken)
		return -ofi_double.broken;
	match(e);
	if (e->done_count > 0 && e->done[0].error)
		return -OFI_EAVAIL;
	for (; n < count && e->done_count > 0 && !e->done[0].error; n++, take(e))
		out[n] = (struct ofi_cq_entry){.context = e->done[0].context, .len = e->done[0].bytes};
	return n > 0 ? (ssize_t)n : -OFI_EAGAIN;
}

static ssize_t cq_readerr(struct ofi_cq *cq, struct ofi_cq_error *error, uint64_t flags)
{
	struct endpoint *e = OF(cq, cq);

	(void)flags;
	error->context = e->done[0].context;
	error->err = e->done[0].error;
	take(e);
	return 1;
}

static int trywait(struct ofi_fabric *fabric, struct ofi_fid **fids, int count)
{
	struct endpoint *e = OF(fabric, fabric);
	uint64_t n;

	if (count != 1 || fids[0] != &e->cq.fid)
		abort();
	if (double_faults.busy || e->queue || e->done_count > 0)
		return -OFI_EAGAIN;
	if (read(e->fd, &n, sizeof(n)) < 0 && errno != EAGAIN)
		abort();
	if (double_faults.loud)
		signal_news(e);
	return 0;
}

void double_release(void)
{
	for (int i = 0; i < ENDPOINTS; i++) {
		struct endpoint *e = endpoints[i];

		while (e && e->held_count > 0) {
			e->done[e->done_count++] = e->held[--e->held_count];
			signal_news(e);
		}
	}
}

void double_fail(int endpoint, int status)
{
	endpoints[endpoint]->lost = status;
}

/* --- tables --- */

static struct ofi_ops fabric_ops = {.close = close_fabric}, domain_fid_ops = {.close = close_domain},
		      cq_fid_ops = {.close = close_cq, .control = control_cq}, av_fid_ops = {.close = close_av},
		      ep_fid_ops = {.close = close_ep, .bind = bind_ep, .control = control_ep},
		      mr_fid_ops = {.close = close_mr, .bind = bind_mr, .control = control_mr};
static struct ofi_cm_ops cm_ops = {.getname = getname};
static struct ofi_msg_ops msg_ops = {.recv = receive, .send = send_message, .inject = send_inject};
static struct ofi_av_ops av_ops = {.insert = insert};
static struct ofi_cq_ops cq_ops = {.read = cq_read, .readerr = cq_readerr};

static int av_open(struct ofi_domain *domain, struct ofi_av_attr *attr, struct ofi_av **av, void *context)
{
	struct endpoint *e = OF(domain, domain);

	(void)attr;
	(void)context;
	if (fails("av_open"))
		return -EIO;
	live++;
	e->objects++;
	e->av = (struct ofi_av){.fid = {.ops = &av_fid_ops}, .ops = &av_ops};
	*av = &e->av;
	return 0;
}

static int cq_open(struct ofi_domain *domain, struct ofi_cq_attr *attr, struct ofi_cq **cq, void *context)
{
	struct endpoint *e = OF(domain, domain);

	(void)context;
	if (attr->wait_obj == OFI_WAIT_FD && ofi_double.no_fd)
		return -OFI_ENOSYS;
	if (fails("cq_open") || attr->format != OFI_CQ_FORMAT_MSG)
		return -EIO;
	live++;
	e->objects++;
	e->cq = (struct ofi_cq){.fid = {.ops = &cq_fid_ops}, .ops = &cq_ops};
	*cq = &e->cq;
	return 0;
}

static int endpoint_open(struct ofi_domain *domain, struct ofi_info *info, struct ofi_ep **ep, void *context)
{
	struct endpoint *e = OF(domain, domain);

	(void)info;
	(void)context;
	if (fails("endpoint"))
		return -EIO;
	live++;
	e->objects++;
	e->ep = (struct ofi_ep){.fid = {.ops = &ep_fid_ops}, .cm = &cm_ops, .msg = &msg_ops};
	*ep = &e->ep;
	return 0;
}

static int reg(struct ofi_fid *domain, const void *buf, size_t len, uint64_t access, uint64_t offset, uint64_t key, uint64_t flags,
	       struct ofi_mr **mr, void *context)
{
	struct endpoint *e = OF(domain, domain);

	(void)offset;
	(void)flags;
	(void)context;
	if (fails("reg") || access != (OFI_SEND | OFI_RECV) || key != (uint64_t)e->registered_count + 1)
		return -EIO;
	e->registered[e->registered_count] = buf;
	e->registered_bytes[e->registered_count++] = len;
	ofi_double.registered++;
	*mr = calloc(1, sizeof(**mr));
	(*mr)->fid = (struct ofi_fid){.context = e, .ops = &mr_fid_ops};
	(*mr)->mem_desc = KEY;
	live++;
	return 0;
}

static struct ofi_domain_ops domain_ops = {.av_open = av_open, .cq_open = cq_open, .endpoint = endpoint_open};
static struct ofi_mr_ops mr_ops = {.reg = reg};

static int domain_open(struct ofi_fabric *fabric, struct ofi_info *info, struct ofi_domain **domain, void *context)
{
	struct endpoint *e = OF(fabric, fabric);

	(void)info;
	(void)context;
	if (fails("domain"))
		return -EIO;
	live++;
	e->objects++;
	e->domain = (struct ofi_domain){.fid = {.ops = &domain_fid_ops}, .ops = &domain_ops, .mr = &mr_ops};
	*domain = &e->domain;
	return 0;
}

static struct ofi_fabric_ops fabric_table = {.domain = domain_open, .trywait = trywait};

/* --- the library's functions --- */

static uint32_t version(void)
{
	return OFI_API;
}

static struct ofi_info *dupinfo(const struct ofi_info *from)
{
	struct {
		struct ofi_info info;
		struct ofi_tx_attr tx;
		struct ofi_rx_attr rx;
		struct ofi_ep_attr ep;
		struct ofi_domain_attr domain;
		struct ofi_fabric_attr fabric;
		struct sockaddr_in6 address;
	} *all = calloc(1, sizeof(*all));

	if (from) {
		all->info = *from;
		all->tx = *from->tx_attr;
		all->rx = *from->rx_attr;
		all->ep = *from->ep_attr;
		all->domain = *from->domain_attr;
		all->fabric = *from->fabric_attr;
		all->domain.name = strdup(from->domain_attr->name);
		all->fabric.prov_name = strdup(from->fabric_attr->prov_name);
		if (from->src_addr)
			memcpy(&all->address, from->src_addr, from->src_addrlen);
	}
	all->info.next = NULL;
	all->info.tx_attr = &all->tx;
	all->info.rx_attr = &all->rx;
	all->info.ep_attr = &all->ep;
	all->info.domain_attr = &all->domain;
	all->info.fabric_attr = &all->fabric;
	all->info.src_addr = from && !from->src_addr ? NULL : &all->address;
	live++;
	return &all->info;
}

static void freeinfo(struct ofi_info *info)
{
	while (info) {
		struct ofi_info *next = info->next;

		free(info->domain_attr->name);
		free(info->fabric_attr->prov_name);
		free(info);
		live--;
		info = next;
	}
}

static struct ofi_info *network(const struct ofi_double_network *n)
{
	struct ofi_info *i = dupinfo(NULL);
	struct sockaddr_in6 *address = i->src_addr;

	i->addr_format = n->family == AF_INET ? OFI_FORMAT_SOCKADDR_IN : 0;
	i->src_addrlen = n->family == AF_INET ? sizeof(struct sockaddr_in) : n->family ? sizeof(*address) : 0;
	address->sin6_family = (sa_family_t)n->family;
	i->tx_attr->inject_size = INJECT_BYTES;
	i->rx_attr->size = 1000;
	i->ep_attr->max_msg_size = 1 << 30;
	i->domain_attr->mr_mode = ofi_double.mr_mode;
	i->domain_attr->name = strdup(n->domain);
	i->fabric_attr->prov_name = strdup(n->provider);
	return i;
}

static int getinfo(uint32_t asked, const char *node, const char *service, uint64_t flags, const struct ofi_info *hints,
		   struct ofi_info **info)
{
	static const struct ofi_double_network usual[] = {{"tcp", "lo", AF_INET}, {NULL, NULL, 0}};
	const char *provider = hints->fabric_attr->prov_name;
	struct ofi_info **at = info;

	if (asked != OFI_API || node || service || flags || hints->caps != OFI_CAP_MSG || hints->ep_attr->type != OFI_EP_RDM ||
	    hints->domain_attr->threading != OFI_THREAD_DOMAIN)
		abort();
	if (fails("getinfo"))
		return -OFI_ENODATA;
	snprintf(ofi_double.asked, sizeof(ofi_double.asked), "%s", provider ? provider : "");
	*info = NULL;
	for (const struct ofi_double_network *n = ofi_double.networks ? ofi_double.networks : usual; n->provider; n++) {
		if (provider && strcmp(provider, n->provider) != 0)
			continue;
		*at = network(n);
		at = &(*at)->next;
	}
	return *info ? 0 : -OFI_ENODATA;
}

static int fabric_open(struct ofi_fabric_attr *attr, struct ofi_fabric **fabric, void *context)
{
	struct endpoint *e;
	int n = 0;

	(void)attr;
	(void)context;
	if (fails("fabric"))
		return -EIO;
	while (endpoints[n])
		n++;
	endpoints[n] = e = calloc(1, sizeof(*e));
	e->number = n;
	e->fd = -1;
	e->objects = 1;
	e->fabric = (struct ofi_fabric){.fid = {.ops = &fabric_ops}, .ops = &fabric_table};
	live++;
	*fabric = &e->fabric;
	return 0;
}

static const char *error_name(int error)
{
	static char text[32];

	snprintf(text, sizeof(text), "error %d", error);
	return text;
}

int double_live(void)
{
	return live;
}

void double_reset(void)
{
	if (live) {
		fprintf(stderr, "%d objects of the double are left\n", live);
		abort();
	}
	double_faults = (struct double_faults){0};
	ofi_double = (struct ofi_double){0};
	double_locked = false;
	double_sends = 0;
}

static const struct ofi_library library = {
	.version = version,
	.getinfo = getinfo,
	.freeinfo = freeinfo,
	.dupinfo = dupinfo,
	.fabric = fabric_open,
	.strerror = error_name,
};

const struct transport_ops *const double_transport = &transport_ofi_ops;
void *const double_test = (void *)(uintptr_t)&library;
const char *const double_opening[] = {"getinfo",  "fabric", "domain", "cq_open", "getwait", "av_open",
				      "endpoint", "bind",   "bind",   "enable",  "getname", NULL};
const char *const double_connecting = "av_insert";
const bool double_reports_ends = false;
const struct double_loss double_losses[] = {
	{ECONNRESET, -ECONNRESET}, {ECONNREFUSED, -ECONNRESET}, {EHOSTUNREACH, -EHOSTUNREACH},
	{ENOTCONN, -ECONNRESET},   {ENOMEM, -ENOMEM},           {0, 0},
};
