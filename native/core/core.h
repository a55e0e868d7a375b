/* SPDX-License-Identifier: MIT */
#ifndef IBVX_CORE_CORE_H
#define IBVX_CORE_CORE_H
/*
 * core: the endpoint (struct ibvx) and its peers.
 *
 * One lock guards everything here but the fields marked otherwise.  Nothing under the lock waits
 * for another process, calls into Java, or copies more than a bounded piece of memory.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/choice.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/settings.h"
#include "bootstrap/bootstrap.h"
#include "core/list.h"
#include "core/match_table.h"
#include "core/request.h"
#include "ibvx.h"
#include "transport/transport.h"

struct direct_recv;
struct ibvx_continuation;
struct life;
struct monitor;

/* An unexpected message: an envelope that found no posted receive. */
struct umsg {
	struct list link; /* arrival order */
	struct peer *peer;
	int32_t context, tag;
	uint64_t user;
	size_t bytes[2]; /* head, body */
	uint64_t at;     /* bytes that have arrived; rts: the first bytes, if there are no descriptors */
	size_t cost;     /* of the credit window */
	uint32_t id;     /* the sender's request, for ACK, CTS, FIN */
	bool sync;
	bool rts;                              /* a rendezvous */
	bool leasable;                         /* WIRE_LEASE */
	bool lost;                             /* there was no memory for the payload: receiving it fails */
	uint8_t rkey_bytes;                    /* rts: of the packed rkey, in payload */
	struct match_node node[MATCH_CLASSES]; /* those of the classes in use */
	uint64_t payload[];
};

/* The methods for a long message; which is faster is learned for each peer and size class (cost.h). */
enum cost_method { COST_RING, COST_GET, COST_UNLEARNED, COST_UNDECIDED = COST_METHOD_UNDECIDED };
#define COST_SHIFT_MIN 14u            /* the first class begins at 16 KB */
#define COST_SIZES 11u                /* 16 KB to 16 MB and more */
#define COST_CLASSES (2 * COST_SIZES) /* of memory that has an address, of pinnable memory */

enum peer_state {
	PEER_OPEN,
	PEER_CLOSED, /* it sent BYE */
	PEER_FAILED,
};

/* Where the fragments of the peer's open eager message go. */
enum inflow { INFLOW_NONE, INFLOW_REQUEST, INFLOW_UNEXPECTED, INFLOW_DROP };

struct peer {
	struct ibvx *ep;
	int rank;
	bool same_node;
	enum peer_state state;
	struct transport *transport;
	uint8_t order[8], order_count; /* its transports, best first, as ours (agree.h) */
	uint8_t reached_by;            /* which of them reach us, by bits */
	bool reach_known;
	size_t payload_max;
	size_t eager_max; /* largest eager message to this peer */
	size_t once_max;  /* the same, if it is to be one packet */
	/* the transport's post(), or its like made of reserve() and commit() */
	int (*post)(struct transport *t, int peer, const struct wire_hdr *hdr, const void *head, size_t head_bytes, const void *body,
		    size_t body_bytes);

	/* outgoing (PROTOCOL.md section 1) */
	struct list controls, sends, streams;
	struct list busy;       /* in the endpoint's list while something is left to go out */
	bool pending_emergency; /* the peer must learn that its emergency credit is smaller now */
	bool pending_stalled, pending_bye, sent_bye;
	bool talked;        /* anything was ever sent to it or came from it */
	bool streams_first; /* whose turn it is: streams or sends */
	int error;          /* an error of reserve(): the next poll fails the peer with it */
	bool left;          /* it has finished; what it sent may still be on its way (transport_ops.awaits) */
	bool reported;      /* PEER_FAILED: some operation has reported it */

	/* our credit window at the peer */
	int64_t credit, credit_window;
	int64_t envelope_credit; /* of credit: emergency credit of the peer, for envelopes alone */
	bool stalled_sent;
	uint64_t credit_in; /* all credit ever received, */
	/* the peer's credit window here */
	uint64_t freed, emergency; /* emergency: emergency credit given and not yet earned back */
	uint64_t emergency_repaid; /* of emergency, since the last CREDIT */
	uint64_t pending_credit;
	uint64_t credit_out; /* and ever sent: identifies a stale STALLED */
	bool stalled;        /* the peer holds sends back */
	int interest;        /* posted receives and probes that name this peer */

	enum inflow inflow;
	struct request *inflow_request;
	struct umsg *inflow_umsg;
	uint64_t inflow_at, inflow_total;
	size_t inflow_cost;

	struct choice *costs; /* COST_CLASSES, or NULL */
	bool hints_pending;
	int timed_count;     /* receives from it that are being measured */
	int64_t long_end_ns; /* when its last long message was complete, while some are measured */
	bool no_get;         /* a get, or a lease, turned out to be impossible */
	int fail_code;
	char *why; /* PEER_FAILED: the text */

	uint64_t eager_out, eager_in, rndv_out, rndv_in, bytes_out, bytes_in;
	uint64_t unexpected_in, stalls, emergencies, gets, puts, puts_in, pipelines_in, leased, leases_revoked;
};

/* Continuations that have something to do, through next_due. */
struct due_queue {
	struct ibvx_continuation *first, *last;
};

/* One thread inside a blocking call. */
struct waiter {
	struct list link;
	_Atomic uint32_t signal;        /* the futex word: 1 = look again */
	bool sleeping;                  /* on signal */
	bool on_doorbell;               /* sleeps there, as the poller */
	bool wants_any;                 /* peek: signal at any completion */
	bool wants_message;             /* probe: signal at any unexpected arrival */
	bool away;                      /* it waits for a lease, not for the doorbell or its signal */
	bool stands_back;               /* the watcher: others come first in owning progress */
	bool zero_copy_next;            /* whose turn it is: that of zero-copy sends, not of `pinned_request` */
	struct request *pinned_request; /* waits for this one, whose memory it pins (pin.h); else NULL */
};

struct ibvx {
	struct lock lock;
	int rank, size;
	char job_id[33];
	struct log log;
	struct settings *settings;
	struct bootstrap *bootstrap;
	struct life *life; /* what ibvx_open made; NULL for a test's endpoint */
	struct monitor *monitor;

	struct transport *transports[8];
	int transport_count;
	struct transport *polled[8]; /* those that carry a pair (core_attached); nothing happens on the others */
	int polled_count;
	const struct transport_ops *left_out; /* transport_ops.last_resort: not opened, or NULL */
	struct transport_wakeups wakeups;
	struct peer *peers;
	struct list busy;
	_Atomic int busy_count;

	struct request_table requests;
	struct match_table posted[MATCH_CLASSES];
	struct list run; /* posted receives with one envelope, through link, while there are no others: in no table */
	uint32_t run_count;
	uint32_t posted_count;      /* in the tables */
	struct direct_recv *direct; /* only while a thread polls for a receive that it has not posted (recv.h) */
	struct match_table unexpected[MATCH_CLASSES];
	bool unexpected_used[MATCH_CLASSES];
	struct list arrivals;
	uint64_t unexpected_count, unexpected_bytes;
	uint64_t order;
	int interest_any; /* posted receives and probes with ANY_SOURCE */

	struct list finished; /* completed, not yet shown by peek or consumed; newest last */

	/* ibvx_watch.h */
	struct waiter watcher;
	struct list watched; /* completed, through `finished`; newest last */
	int watches;         /* requests watched and not yet returned, and message_watches */
	int message_watches; /* threads that want to know of messages */
	bool message_came;

	/* waiting (progress.c, background.c) */
	struct list waiters;
	int any_waiters;       /* those that want any completion */
	struct waiter *poller; /* owns progress */
	bool asleep;           /* the poller is in futex_wait on the doorbell */
	struct transport *doorbell_owner;
	uint32_t *doorbell; /* two words (enum transport_doorbell) */
	uint32_t own_doorbell[TRANSPORT_DOORBELL_WORDS];
	int64_t spin_ns, yield_ns;
	int64_t lease_offer_ns, lease_claim_ns; /* how long a lease is offered, and left to the receiver that claimed it */
	bool oversubscribed;                    /* more ranks on this node than processors they may use */
	uint64_t processors[16];                /* those that the ranks of this node may run on */
	int processor_count;
	_Atomic uint32_t idle_tests; /* no lock; a lost count does no harm */
	pthread_t background_thread;
	bool background_running;
	uint32_t background_count; /* operations that the progress thread continues (background.h) */

	struct due_queue due, due_callers; /* continuation.h */
	int runners;                       /* threads that are about to run them */

	size_t psl, credit_window;
	bool fault_job;
	_Atomic int failed_rank;         /* the first rank that died, or -1; read without the lock, too */
	int users;                       /* threads inside a blocking call, the progress thread aside */
	_Atomic int area_users;          /* the same in operations of ibvx_area.h; no lock */
	_Atomic bool closing;            /* ibvx_close is at work: new operations are refused */
	_Atomic bool aborted;            /* every blocking call is to return */
	int open_peers;                  /* remote peers in PEER_OPEN */
	int stalled_peers;               /* peers that hold sends back for want of our credit */
	_Atomic unsigned areas_reserved; /* ibvx_area.h; no lock */
	uint64_t polls, sleeps, wakes;
	/* pinnable memory: pins made, the longest, bytes that had to bounce */
	uint64_t pins, pin_longest_ns, bounced_bytes;
	struct list wanting;      /* zero-copy sends for which there is room */
	struct ibvx_pin *dropped; /* zero-copy sends that are done: the next call reports it to their layer */
};

/* Takes and releases the lock; the release wakes peers. */
static inline void core_lock(struct ibvx *ep)
{
	lock_acquire(&ep->lock);
}

void core_unlock_wake(struct ibvx *ep);

static inline void core_unlock(struct ibvx *ep)
{
	if (ep->wakeups.count || ep->asleep)
		core_unlock_wake(ep);
	else
		lock_release(&ep->lock);
}

/* What a test, or ibvx_open, builds an endpoint from. */
struct core_config {
	int rank, size;
	const char *job_id;
	const struct settings *settings;               /* copied by reference: must outlive the endpoint */
	const struct transport_ops *const *transports; /* NULL-terminated, best first */
	void *test;                                    /* transport_env.test */
	bool monitor;                                  /* start the monitor thread */
	bool one_node;                                 /* all ranks run on this node */
};

/* Opens the transports; no bootstrap.  0 or -errno; *out NULL then. */
int core_open(struct ibvx **out, const struct core_config *cfg);

/* Does every name in the setting transports exist? A misspelt one must not quietly leave a transport
 * out. 0 or -EINVAL with text. */
int core_check_transports(const struct settings *s);

/* This rank's address blob: core parameters and those of all transports. Length or -errno. */
int core_address(struct ibvx *ep, void *out, size_t size);

struct core_peer_info {
	bool same_node;
	const void *address; /* as core_address wrote it on that rank */
	size_t address_bytes;
};

/* Some ranks, but not all, left their last transport out (transport_ops.last_resort), as their addresses report: each rank calls
 * core_open_rest(), and addresses are exchanged once more. The same answer on all ranks. */
bool core_incomplete(const struct ibvx *ep, const struct core_peer_info *peers);
/* The transport that was left out, if any: 0 or -errno. */
int core_open_rest(struct ibvx *ep, const struct core_config *cfg);

/* Everybody's addresses are known: peers[size]. */
int core_attach(struct ibvx *ep, const struct core_peer_info *peers);
/* Which transports reach which rank, for the others: at most agree_reach_max() bytes. Length or -errno. */
int core_reach(struct ibvx *ep, void *out, size_t size);
/* The same as that rank has written it: both ends will choose one transport.  Without it this rank's view alone counts. */
int core_agree(struct ibvx *ep, int rank, const void *reach, size_t bytes);
/* Every rank has attached: communication may begin. */
int core_attached(struct ibvx *ep);

/* Frees everything; no flushing, no goodbye. NULL allowed. */
void core_free(struct ibvx *ep);

#endif
