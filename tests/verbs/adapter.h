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
	int backlog;                  /* requests that a listener may leave unread, instead of what listen() asks for */
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
/* A packet of so many raw bytes arrives at this queue pair. False: no receive was posted. */
bool adapter_inject(const void *bytes, uint32_t len, struct ibv_qp *to);
/* The queue pairs made, in order; NULL behind the last. */
struct ibv_qp *adapter_qp(int n);
/* Not NULL: every connection request is accepted by a peer that swallows what it is sent; writes the private data of the listener at
 * this port (network byte order), at most 64 bytes, and returns its length. */
extern int (*adapter_hollow)(uint16_t port, void *data);
/* Other ranks without a transport, which a test plays, each by a pointer of its own. */
struct adapter_far {
	/* A connection request of this id to this port (network byte order), which adapter_answer() answers: the far end that it reaches. */
	void *(*requested)(struct rdma_cm_id *id, uint16_t port, const void *data);
	/* The answer to adapter_call(); if accepted, adapter_answer() with ESTABLISHED completes it. */
	void (*answered)(void *far, struct rdma_cm_id *id, bool accepted, const void *data);
	/* A send has arrived. */
	void (*packet)(void *far, const void *bytes, uint32_t len);
	/* The id is gone. */
	void (*ended)(void *far, struct rdma_cm_id *id);
};
extern const struct adapter_far *adapter_far;
/* A connection request to the listener at this port. NULL: its backlog is full. */
struct rdma_cm_id *adapter_call(uint16_t port, void *far, const void *data, size_t len);
/* The event for an id that is known to a far end; any but ESTABLISHED parts the two. */
void adapter_answer(struct rdma_cm_id *id, enum rdma_cm_event_type type, int status, const void *data, size_t len);
/* The far end has given up its request, before it was answered. */
void adapter_hang_up(struct rdma_cm_id *id);

/* How connecting fares. */
#define ADAPTER_BUSY 28 /* the status with which a full backlog refuses, without private data */
struct adapter_weather {
	uint64_t seed;
	bool late;                /* events come by adapter_deliver() */
	unsigned trouble_percent; /* resolving times out; requests are lost, refused as busy, or arrive after they were given up */
	int most;                 /* troubles of one rank with another, at most */
};
extern struct adapter_weather adapter_weather;
void adapter_set_weather(struct adapter_weather weather);
/* So many late events arrive, in a random order that respects each id and each rank's requests. How many did. */
int adapter_deliver(int most);
/* Troubles so far. */
extern unsigned adapter_troubles;

/* Sends with inline data, RDMA reads, writes, connection requests and bytes read or written so far. */
extern unsigned adapter_inlined, adapter_reads, adapter_writes, adapter_requests;
extern uint64_t adapter_rma_bytes;
/* Of the newest connection. */
extern struct adapter_path {
	enum ibv_mtu mtu;
	uint8_t service_level, traffic_class;
} adapter_path;
/* Of the newest queue pair that was made by hand. */
extern unsigned adapter_pkey_index;

#endif
