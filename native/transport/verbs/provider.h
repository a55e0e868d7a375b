/* SPDX-License-Identifier: MIT */
#ifndef IBVX_TRANSPORT_VERBS_PROVIDER_H
#define IBVX_TRANSPORT_VERBS_PROVIDER_H
/*
 * provider: every call of libibverbs and librdmacm that the transport makes, in one table, so that a test can
 * put doubles there and no library is needed to load ours.  Conventions are those of the libraries (errno, or an errno value).
 */
#include <ifaddrs.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>

struct verbs_provider {
	/* 0 if this machine has RDMA devices and lets us use them (cm: by RDMA CM, too), else -errno with text. Never noisy. */
	int (*available)(bool cm);

	/* this node's addresses */
	int (*getifaddrs)(struct ifaddrs **list);
	void (*freeifaddrs)(struct ifaddrs *list);

	/* devices */
	struct ibv_device **(*get_device_list)(int *count);
	void (*free_device_list)(struct ibv_device **list);
	struct ibv_context *(*open_device)(struct ibv_device *device);
	int (*close_device)(struct ibv_context *context);
	int (*query_device)(struct ibv_context *context, struct ibv_device_attr *attr);
	/* RDMA reads and writes of pages that are not pinned */
	bool (*has_paging)(struct ibv_context *context);
	int (*query_port)(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr);
	int (*query_gid)(struct ibv_context *context, uint8_t port, int index, union ibv_gid *gid);
	int (*query_pkey)(struct ibv_context *context, uint8_t port, int index, __be16 *pkey);
	int (*query_gid_ex)(struct ibv_context *context, uint32_t port, uint32_t index, struct ibv_gid_entry *entry);
	int (*get_async_event)(struct ibv_context *context, struct ibv_async_event *event);
	void (*ack_async_event)(struct ibv_async_event *event);

	/* objects of a device */
	struct ibv_pd *(*alloc_pd)(struct ibv_context *context);
	int (*dealloc_pd)(struct ibv_pd *pd);
	struct ibv_comp_channel *(*create_comp_channel)(struct ibv_context *context);
	int (*destroy_comp_channel)(struct ibv_comp_channel *channel);
	struct ibv_cq *(*create_cq)(struct ibv_context *context, int entries, void *arg, struct ibv_comp_channel *channel, int vector);
	int (*destroy_cq)(struct ibv_cq *cq);
	int (*get_cq_event)(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **arg);
	void (*ack_cq_events)(struct ibv_cq *cq, unsigned count);
	struct ibv_srq *(*create_srq)(struct ibv_pd *pd, struct ibv_srq_init_attr *attr);
	int (*destroy_srq)(struct ibv_srq *srq);
	struct ibv_mr *(*reg_mr)(struct ibv_pd *pd, void *addr, size_t len, int access);
	int (*dereg_mr)(struct ibv_mr *mr);
	struct ibv_qp *(*make_qp)(struct ibv_pd *pd, struct ibv_qp_init_attr *attr);
	int (*unmake_qp)(struct ibv_qp *qp);

	/* work */
	int (*post_send)(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
	int (*post_recv)(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
	int (*post_srq_recv)(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
	int (*poll_cq)(struct ibv_cq *cq, int count, struct ibv_wc *wc);
	int (*req_notify_cq)(struct ibv_cq *cq, int solicited_only);
	int (*modify_qp)(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);

	/* connections */
	struct rdma_event_channel *(*create_event_channel)(void);
	void (*destroy_event_channel)(struct rdma_event_channel *channel);
	int (*create_id)(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context, enum rdma_port_space space);
	int (*destroy_id)(struct rdma_cm_id *id);
	int (*set_option)(struct rdma_cm_id *id, int level, int name, void *value, size_t bytes);
	int (*bind_addr)(struct rdma_cm_id *id, struct sockaddr *addr);
	int (*listen)(struct rdma_cm_id *id, int backlog);
	uint16_t (*get_src_port)(struct rdma_cm_id *id);
	int (*resolve_addr)(struct rdma_cm_id *id, struct sockaddr *src, struct sockaddr *dst, int timeout_ms);
	int (*resolve_route)(struct rdma_cm_id *id, int timeout_ms);
	int (*create_qp)(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_qp_init_attr *attr);
	void (*destroy_qp)(struct rdma_cm_id *id);
	int (*connect)(struct rdma_cm_id *id, struct rdma_conn_param *param);
	int (*accept)(struct rdma_cm_id *id, struct rdma_conn_param *param);
	int (*reject)(struct rdma_cm_id *id, const void *data, uint8_t bytes);
	int (*disconnect)(struct rdma_cm_id *id);
	int (*notify)(struct rdma_cm_id *id, enum ibv_event_type event);
	int (*get_cm_event)(struct rdma_event_channel *channel, struct rdma_cm_event **event);
	int (*ack_cm_event)(struct rdma_cm_event *event);
};

/* The libraries themselves, which are opened at run time: the calls are there once available() or verbs_provider_open() has returned 0. */
extern const struct verbs_provider *const verbs_provider_real;

/* Opens libibverbs, and librdmacm (cm), for good.  0; -ENOENT: not installed, the text names the package; -EPROTO: too old.  Any thread. */
int verbs_provider_open(bool cm);

#endif
