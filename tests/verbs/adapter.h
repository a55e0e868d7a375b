/* SPDX-License-Identifier: MIT */
#ifndef TESTS_VERBS_ADAPTER_H
#define TESTS_VERBS_ADAPTER_H
/*
 * adapter: doubles of every libibverbs and librdmacm call, around one adapter in memory.
 *
 * Both ends of a connection live in this process.  Sends arrive at once; completions wait in their queue.
 * A test can make any creation call fail, hold send completions back, and end work with any status.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/verbs/provider.h"

extern const struct verbs_provider adapter_provider;

struct adapter_faults {
	int fail_call; /* the n-th creation call from now fails with fail_errno; 0: none */
	int fail_errno;
	int calls;          /* creation calls so far */
	const char *failed; /* the name of the call that failed */
	int refuse_reg;     /* registrations that fail with ENOMEM from now on */
	bool hold_sends;    /* successful sends complete only at adapter_release() */
	bool hold_rma;      /* reads and writes happen, and complete, only at adapter_release(): unless their queue pair has ended */
	int post_error;     /* post_send returns this */
	bool no_srq, iwarp;
	bool paging;                  /* on-demand paging is offered */
	bool no_cm;                   /* RDMA CM is not available */
	bool infiniband;              /* LIDs, no addresses in the GID table */
	bool rails;                   /* the second rank has another address, which it lists first: 127.0.0.2 */
	bool no_copy;                 /* reads and writes transfer nothing, addresses need not exist */
	bool overlook;                /* packets lie unread until the first that comes after this was taken back */
	uint32_t max_inline;          /* create_qp refuses more */
	enum ibv_wc_status next_send; /* the next send ends so, its data is lost; 0: success */
};
extern struct adapter_faults adapter_faults;

/* The core's lock is held: a call that may take its time ends the program. */
extern bool adapter_locked;

/* Forgets faults; every object must be gone. */
void adapter_reset(void);
/* Objects that were created and not destroyed. */
int adapter_live(void);
/* Held sends complete, held reads happen. */
void adapter_release(void);
/* An asynchronous event of the device. */
void adapter_async(enum ibv_event_type type, int port);
/* Ends all connections without a word, as a dying peer does. */
void adapter_disconnect_all(void);
/* The memory is unmapped and other pages are mapped there: what was registered until now goes on to reach the old
 * ones. How many registrations became stale so. */
int adapter_remap(void *addr, size_t len);
/* Registrations that stand. */
int adapter_registrations(void);
/* The access flags of the newest. */
int adapter_access(void);
/* Inserts a packet of so many raw bytes into the receive queue of every connected queue pair but those of `not_of`. */
void adapter_inject(const void *bytes, uint32_t len, struct ibv_qp *to);
/* The queue pairs made, in order; NULL behind the last. */
struct ibv_qp *adapter_qp(int n);
/* Not NULL: every connection request is accepted by a peer that swallows what it is sent; writes the private data of the listener at
 * this port (network byte order), at most 64 bytes, and returns its length. */
extern int (*adapter_hollow)(uint16_t port, void *data);
/* Sends with inline data, RDMA reads, writes, connection requests and bytes read or written so far. */
extern unsigned adapter_inlined, adapter_reads, adapter_writes, adapter_requests;
extern uint64_t adapter_rma_bytes;
/* Of the newest connection. */
extern struct adapter_path {
	enum ibv_mtu mtu;
	uint8_t service_level, traffic_class;
} adapter_path;

#endif
