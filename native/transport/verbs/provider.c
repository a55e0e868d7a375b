/* SPDX-License-Identifier: MIT */
#include "transport/verbs/provider.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <unistd.h>

#include "base/error.h"
#include "transport/loader.h"

#define LIBRARY_VERBS "libibverbs.so.1"
#define LIBRARY_CM "librdmacm.so.1"
#define LIBRARY_TOO_OLD "is too old: rdma-core 32 or a later one is needed"
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Behind macros and inline functions of the header. */
static struct {
	int (*fork_init)(void);
	int (*query_gid_ex)(struct ibv_context *context, uint32_t port, uint32_t index, struct ibv_gid_entry *entry, uint32_t flags,
			    size_t entry_bytes);
	struct ibv_mr *(*reg_mr_iova2)(struct ibv_pd *pd, void *addr, size_t len, uint64_t iova, unsigned access);
} provider_hidden;

static struct verbs_provider provider_table;
static pthread_mutex_t provider_lock = PTHREAD_MUTEX_INITIALIZER;
static bool provider_has_verbs, provider_has_cm; /* opened for good */

static int provider_open_verbs(void)
{
	struct verbs_provider *p = &provider_table;
	const struct loader_symbol symbols[] = {
		{"ibv_fork_init", &provider_hidden.fork_init},
		{"_ibv_query_gid_ex", &provider_hidden.query_gid_ex},
		{"ibv_reg_mr_iova2", &provider_hidden.reg_mr_iova2},
		{"ibv_get_device_list", &p->get_device_list},
		{"ibv_free_device_list", &p->free_device_list},
		{"ibv_open_device", &p->open_device},
		{"ibv_close_device", &p->close_device},
		{"ibv_query_device", &p->query_device},
		{"ibv_query_gid", &p->query_gid},
		{"ibv_query_pkey", &p->query_pkey},
		{"ibv_get_async_event", &p->get_async_event},
		{"ibv_ack_async_event", &p->ack_async_event},
		{"ibv_alloc_pd", &p->alloc_pd},
		{"ibv_dealloc_pd", &p->dealloc_pd},
		{"ibv_create_comp_channel", &p->create_comp_channel},
		{"ibv_destroy_comp_channel", &p->destroy_comp_channel},
		{"ibv_create_cq", &p->create_cq},
		{"ibv_destroy_cq", &p->destroy_cq},
		{"ibv_get_cq_event", &p->get_cq_event},
		{"ibv_ack_cq_events", &p->ack_cq_events},
		{"ibv_create_srq", &p->create_srq},
		{"ibv_destroy_srq", &p->destroy_srq},
		{"ibv_dereg_mr", &p->dereg_mr},
		{"ibv_create_qp", &p->make_qp},
		{"ibv_destroy_qp", &p->unmake_qp},
		{"ibv_modify_qp", &p->modify_qp},
	};
	int rc;

	if (provider_has_verbs)
		return 0;
	rc = loader_open(LIBRARY_VERBS, symbols, COUNT(symbols));
	provider_has_verbs = rc == 0;
	if (rc == -ENOENT)
		return error_prefix(rc, "libibverbs is not installed (Debian, Ubuntu: libibverbs1 ibverbs-providers; "
					"Fedora, RHEL: libibverbs; SUSE: libibverbs1 libibverbs)");
	return rc < 0 ? error_prefix(rc, "libibverbs " LIBRARY_TOO_OLD) : 0;
}

static int provider_open_cm(void)
{
	struct verbs_provider *p = &provider_table;
	const struct loader_symbol symbols[] = {
		{"rdma_create_event_channel", &p->create_event_channel},
		{"rdma_destroy_event_channel", &p->destroy_event_channel},
		{"rdma_create_id", &p->create_id},
		{"rdma_destroy_id", &p->destroy_id},
		{"rdma_set_option", &p->set_option},
		{"rdma_bind_addr", &p->bind_addr},
		{"rdma_listen", &p->listen},
		{"rdma_get_src_port", &p->get_src_port},
		{"rdma_resolve_addr", &p->resolve_addr},
		{"rdma_resolve_route", &p->resolve_route},
		{"rdma_create_qp", &p->create_qp},
		{"rdma_destroy_qp", &p->destroy_qp},
		{"rdma_connect", &p->connect},
		{"rdma_accept", &p->accept},
		{"rdma_reject", &p->reject},
		{"rdma_disconnect", &p->disconnect},
		{"rdma_notify", &p->notify},
		{"rdma_get_cm_event", &p->get_cm_event},
		{"rdma_ack_cm_event", &p->ack_cm_event},
	};
	int rc;

	if (provider_has_cm)
		return 0;
	rc = loader_open(LIBRARY_CM, symbols, COUNT(symbols));
	provider_has_cm = rc == 0;
	if (rc == -ENOENT)
		return error_prefix(rc, "librdmacm is not installed (Debian, Ubuntu, SUSE: librdmacm1; Fedora, RHEL: librdmacm)");
	return rc < 0 ? error_prefix(rc, "librdmacm " LIBRARY_TOO_OLD) : 0;
}

int verbs_provider_open(bool cm)
{
	int rc;

	pthread_mutex_lock(&provider_lock);
	rc = provider_open_verbs();
	if (rc == 0 && cm)
		rc = provider_open_cm();
	pthread_mutex_unlock(&provider_lock);
	return rc;
}

static bool provider_has_entries(const char *folder)
{
	DIR *d = opendir(folder);
	struct dirent *e;
	bool found = false;

	while (d && !found && (e = readdir(d)) != NULL)
		found = e->d_name[0] != '.';
	if (d)
		closedir(d);
	return found;
}

/* Asked before the libraries are, because they print warnings where there is nothing. */
static int provider_available(bool cm)
{
	int rc;

	if (!provider_has_entries("/sys/class/infiniband"))
		return error_set(-ENODEV, "this machine has no RDMA device (rdma link shows them; rxe makes one of any network device)");
	if (cm && access("/dev/infiniband/rdma_cm", R_OK | W_OK) < 0)
		return error_sys(-errno, "/dev/infiniband/rdma_cm (module rdma_ucm loaded? in a container: device passed through?)");
	rc = verbs_provider_open(cm);
	if (rc < 0)
		return rc;
	/* Copies pinned pages at fork where the kernel does not; costs nothing where it does. */
	if (provider_hidden.fork_init())
		return error_set(-ENOSYS, "libibverbs cannot be made safe against fork");
	return 0;
}

static int provider_query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr)
{
	struct verbs_context *c = verbs_get_ctx_op(context, query_port);

	return c ? c->query_port(context, port, attr, sizeof(*attr)) : EOPNOTSUPP;
}

static bool provider_has_paging(struct ibv_context *context)
{
	struct ibv_device_attr_ex attr = {0};
	uint32_t needed = IBV_ODP_SUPPORT_READ | IBV_ODP_SUPPORT_WRITE;
	struct verbs_context *c = verbs_get_ctx_op(context, query_device_ex);

	return c && c->query_device_ex(context, NULL, &attr, sizeof(attr)) == 0 && (attr.odp_caps.general_caps & IBV_ODP_SUPPORT) &&
	       (attr.odp_caps.per_transport_caps.rc_odp_caps & needed) == needed;
}

static int provider_query_gid_ex(struct ibv_context *context, uint32_t port, uint32_t index, struct ibv_gid_entry *entry)
{
	return provider_hidden.query_gid_ex(context, port, index, entry, 0, sizeof(*entry));
}

static struct ibv_mr *provider_reg_mr(struct ibv_pd *pd, void *addr, size_t len, int access)
{
	return provider_hidden.reg_mr_iova2(pd, addr, len, (uintptr_t)addr, (unsigned)access);
}

/* The rest is found in the libraries. */
static struct verbs_provider provider_table = {
	.available = provider_available,
	.getifaddrs = getifaddrs,
	.freeifaddrs = freeifaddrs,
	.query_port = provider_query_port,
	.has_paging = provider_has_paging,
	.query_gid_ex = provider_query_gid_ex,
	.reg_mr = provider_reg_mr,
	.post_send = ibv_post_send,
	.post_recv = ibv_post_recv,
	.post_srq_recv = ibv_post_srq_recv,
	.poll_cq = ibv_poll_cq,
	.req_notify_cq = ibv_req_notify_cq,
};

const struct verbs_provider *const verbs_provider_real = &provider_table;
