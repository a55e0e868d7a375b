/* SPDX-License-Identifier: MIT */
#ifndef IBVX_TRANSPORT_OFI_ABI_H
#define IBVX_TRANSPORT_OFI_ABI_H
/*
 * ofi_abi: the little of libfabric.so.1 that is needed, declared here so that the library can be opened at run time and is no
 * dependency of the build.  Libfabric only appends to these structures; those that it reads with a size that it knows are made by itself
 * (fi_dupinfo).  tests/ofi/abi.c compares them with its headers where these are installed.
 */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define OFI_VERSION(major, minor) ((uint32_t)(major) << 16 | (minor))
#define OFI_API OFI_VERSION(1, 11) /* the least that has all of this */
#define OFI_MAJOR(version) ((version) >> 16)
#define OFI_MINOR(version) ((version)&0xffffu)

#define OFI_EAGAIN 11
#define OFI_ENOMEM 12
#define OFI_ECANCELED 125
#define OFI_EAVAIL 259
#define OFI_ENOSYS 38
#define OFI_ENODATA 61
#define OFI_EHOSTUNREACH 113
#define OFI_ECONNRESET 104

#define OFI_CAP_MSG (1ULL << 1)
#define OFI_RECV (1ULL << 10)
#define OFI_SEND (1ULL << 11)
#define OFI_CONTEXT (1ULL << 59)
#define OFI_CONTEXT2 (1ULL << 52)
#define OFI_ORDER_SAS (1ULL << 8)
#define OFI_EP_RDM 3
#define OFI_MR_LOCAL (1 << 2)
#define OFI_MR_VIRT_ADDR (1 << 4)
#define OFI_MR_ALLOCATED (1 << 5)
#define OFI_MR_PROV_KEY (1 << 6)
#define OFI_MR_ENDPOINT (1 << 9)
#define OFI_PROGRESS_MANUAL 2
#define OFI_THREAD_DOMAIN 3
#define OFI_RM_ENABLED 2
#define OFI_AV_TABLE 2
#define OFI_FORMAT_SOCKADDR_IN 2
#define OFI_ADDR_UNSPEC UINT64_MAX
#define OFI_WAIT_NONE 0
#define OFI_WAIT_FD 3
#define OFI_CQ_FORMAT_MSG 2
#define OFI_GETWAIT 5
#define OFI_ENABLE 6

struct ofi_domain;
struct ofi_fabric;
struct ofi_av;
struct ofi_cq;
struct ofi_ep;

/* Every object begins with this. */
struct ofi_fid {
	size_t fclass;
	void *context;
	struct ofi_ops {
		size_t size;
		int (*close)(struct ofi_fid *fid);
		int (*bind)(struct ofi_fid *fid, struct ofi_fid *to, uint64_t flags);
		int (*control)(struct ofi_fid *fid, int command, void *arg);
	} * ops;
};

/* The members of fi_info's parts as far as they are used. */
struct ofi_tx_attr {
	uint64_t caps, mode, op_flags, msg_order, comp_order;
	size_t inject_size, size;
};
struct ofi_rx_attr {
	uint64_t caps, mode, op_flags, msg_order, comp_order;
	size_t total_buffered_recv, size;
};
struct ofi_ep_attr {
	int type;
	uint32_t protocol, protocol_version;
	size_t max_msg_size;
};
struct ofi_domain_attr {
	struct ofi_domain *domain;
	char *name;
	int threading, control_progress, data_progress, resource_mgmt, av_type, mr_mode;
};
struct ofi_fabric_attr {
	struct ofi_fabric *fabric;
	char *name, *prov_name;
	uint32_t prov_version;
};
struct ofi_info {
	struct ofi_info *next;
	uint64_t caps, mode;
	uint32_t addr_format;
	size_t src_addrlen, dest_addrlen;
	void *src_addr, *dest_addr;
	struct ofi_fid *handle;
	struct ofi_tx_attr *tx_attr;
	struct ofi_rx_attr *rx_attr;
	struct ofi_ep_attr *ep_attr;
	struct ofi_domain_attr *domain_attr;
	struct ofi_fabric_attr *fabric_attr;
};

struct ofi_cq_attr {
	size_t size;
	uint64_t flags;
	int format, wait_obj, signaling_vector, wait_cond;
	void *wait_set;
};
struct ofi_av_attr {
	int type, rx_ctx_bits;
	size_t count, ep_per_node;
	const char *name;
	void *map_addr;
	uint64_t flags;
};
struct ofi_cq_entry {
	void *context;
	uint64_t flags;
	size_t len;
};
struct ofi_cq_error {
	void *context;
	uint64_t flags;
	size_t len;
	void *buf;
	uint64_t data, tag;
	size_t olen;
	int err, prov_errno;
	void *err_data;
	size_t err_data_size;
	uint64_t later[4];
};

struct ofi_fabric {
	struct ofi_fid fid;
	struct ofi_fabric_ops {
		size_t size;
		int (*domain)(struct ofi_fabric *fabric, struct ofi_info *info, struct ofi_domain **domain, void *context);
		void *passive_ep, *eq_open, *wait_open;
		int (*trywait)(struct ofi_fabric *fabric, struct ofi_fid **fids, int count);
	} * ops;
};

struct ofi_mr {
	struct ofi_fid fid;
	void *mem_desc;
	uint64_t key;
};
struct ofi_domain {
	struct ofi_fid fid;
	struct ofi_domain_ops {
		size_t size;
		int (*av_open)(struct ofi_domain *domain, struct ofi_av_attr *attr, struct ofi_av **av, void *context);
		int (*cq_open)(struct ofi_domain *domain, struct ofi_cq_attr *attr, struct ofi_cq **cq, void *context);
		int (*endpoint)(struct ofi_domain *domain, struct ofi_info *info, struct ofi_ep **ep, void *context);
	} * ops;
	struct ofi_mr_ops {
		size_t size;
		int (*reg)(struct ofi_fid *domain, const void *buf, size_t len, uint64_t access, uint64_t offset, uint64_t key,
			   uint64_t flags, struct ofi_mr **mr, void *context);
	} * mr;
};
struct ofi_av {
	struct ofi_fid fid;
	struct ofi_av_ops {
		size_t size;
		int (*insert)(struct ofi_av *av, const void *addr, size_t count, uint64_t *out, uint64_t flags, void *context);
	} * ops;
};
struct ofi_cq {
	struct ofi_fid fid;
	struct ofi_cq_ops {
		size_t size;
		ssize_t (*read)(struct ofi_cq *cq, void *buf, size_t count);
		void *readfrom;
		ssize_t (*readerr)(struct ofi_cq *cq, struct ofi_cq_error *buf, uint64_t flags);
	} * ops;
};
struct ofi_ep {
	struct ofi_fid fid;
	void *ops;
	struct ofi_cm_ops {
		size_t size;
		void *setname;
		int (*getname)(struct ofi_fid *ep, void *addr, size_t *bytes);
	} * cm;
	struct ofi_msg_ops {
		size_t size;
		ssize_t (*recv)(struct ofi_ep *ep, void *buf, size_t len, void *desc, uint64_t from, void *context);
		void *recvv, *recvmsg;
		ssize_t (*send)(struct ofi_ep *ep, const void *buf, size_t len, void *desc, uint64_t to, void *context);
		void *sendv, *sendmsg;
		ssize_t (*inject)(struct ofi_ep *ep, const void *buf, size_t len, uint64_t to);
	} * msg;
};

/* The functions that the library exports, or a test's double of them; all others are in the tables of its objects. */
struct ofi_library {
	uint32_t (*version)(void);
	int (*getinfo)(uint32_t version, const char *node, const char *service, uint64_t flags, const struct ofi_info *hints,
		       struct ofi_info **info);
	void (*freeinfo)(struct ofi_info *info);
	struct ofi_info *(*dupinfo)(const struct ofi_info *info);
	int (*fabric)(struct ofi_fabric_attr *attr, struct ofi_fabric **fabric, void *context);
	const char *(*strerror)(int error);
};

#endif
