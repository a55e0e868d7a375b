/* SPDX-License-Identifier: MIT */
#include "transport/verbs/provider.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <unistd.h>

#include "base/error.h"

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
	if (!provider_has_entries("/sys/class/infiniband"))
		return error_set(-ENODEV, "this machine has no RDMA device (rdma link shows them; rxe makes one of any network device)");
	if (cm && access("/dev/infiniband/rdma_cm", R_OK | W_OK) < 0)
		return error_sys(-errno, "/dev/infiniband/rdma_cm (module rdma_ucm loaded? in a container: device passed through?)");
	/* Copies pinned pages at fork where the kernel does not; costs nothing where it does. */
	if (ibv_fork_init())
		return error_set(-ENOSYS, "libibverbs cannot be made safe against fork");
	return 0;
}

/* Macros in the header. */
static int provider_query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr)
{
	return ibv_query_port(context, port, attr);
}

static bool provider_has_paging(struct ibv_context *context)
{
	struct ibv_device_attr_ex attr = {0};
	uint32_t needed = IBV_ODP_SUPPORT_READ | IBV_ODP_SUPPORT_WRITE;

	return ibv_query_device_ex(context, NULL, &attr) == 0 && (attr.odp_caps.general_caps & IBV_ODP_SUPPORT) &&
	       (attr.odp_caps.per_transport_caps.rc_odp_caps & needed) == needed;
}

static int provider_query_gid_ex(struct ibv_context *context, uint32_t port, uint32_t index, struct ibv_gid_entry *entry)
{
	return ibv_query_gid_ex(context, port, index, entry, 0);
}

static struct ibv_mr *provider_reg_mr(struct ibv_pd *pd, void *addr, size_t len, int access)
{
	return ibv_reg_mr(pd, addr, len, access);
}

const struct verbs_provider verbs_provider_real = {
	.available = provider_available,
	.getifaddrs = getifaddrs,
	.freeifaddrs = freeifaddrs,
	.get_device_list = ibv_get_device_list,
	.free_device_list = ibv_free_device_list,
	.open_device = ibv_open_device,
	.close_device = ibv_close_device,
	.query_device = ibv_query_device,
	.query_port = provider_query_port,
	.has_paging = provider_has_paging,
	.query_gid = ibv_query_gid,
	.query_gid_ex = provider_query_gid_ex,
	.get_async_event = ibv_get_async_event,
	.ack_async_event = ibv_ack_async_event,
	.alloc_pd = ibv_alloc_pd,
	.dealloc_pd = ibv_dealloc_pd,
	.create_comp_channel = ibv_create_comp_channel,
	.destroy_comp_channel = ibv_destroy_comp_channel,
	.create_cq = ibv_create_cq,
	.destroy_cq = ibv_destroy_cq,
	.get_cq_event = ibv_get_cq_event,
	.ack_cq_events = ibv_ack_cq_events,
	.create_srq = ibv_create_srq,
	.destroy_srq = ibv_destroy_srq,
	.reg_mr = provider_reg_mr,
	.dereg_mr = ibv_dereg_mr,
	.make_qp = ibv_create_qp,
	.unmake_qp = ibv_destroy_qp,
	.post_send = ibv_post_send,
	.post_recv = ibv_post_recv,
	.post_srq_recv = ibv_post_srq_recv,
	.poll_cq = ibv_poll_cq,
	.req_notify_cq = ibv_req_notify_cq,
	.modify_qp = ibv_modify_qp,
	.create_event_channel = rdma_create_event_channel,
	.destroy_event_channel = rdma_destroy_event_channel,
	.create_id = rdma_create_id,
	.destroy_id = rdma_destroy_id,
	.set_option = rdma_set_option,
	.bind_addr = rdma_bind_addr,
	.listen = rdma_listen,
	.get_src_port = rdma_get_src_port,
	.resolve_addr = rdma_resolve_addr,
	.resolve_route = rdma_resolve_route,
	.create_qp = rdma_create_qp,
	.destroy_qp = rdma_destroy_qp,
	.connect = rdma_connect,
	.accept = rdma_accept,
	.reject = rdma_reject,
	.disconnect = rdma_disconnect,
	.notify = rdma_notify,
	.get_cm_event = rdma_get_cm_event,
	.ack_cm_event = rdma_ack_cm_event,
};
