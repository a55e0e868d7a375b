/* SPDX-License-Identifier: MIT */
#ifndef IBVX_TRANSPORT_H
#define IBVX_TRANSPORT_H
/*
 * transport: the seam between the core and whatever carries packets.
 *
 * A transport gives, per peer, a reliable packet stream in order, and optionally one-sided
 * rma operations: gets and puts.  It knows nothing of matching, requests or credits.
 *
 * Every open transport begins with `const struct transport_ops *ops` (struct transport below).
 *
 * Locking: the core calls every function but ready(), ring(), describe() and some of a lease with its
 * lock held; upcalls (struct transport_sink) happen only inside poll(), on the
 * calling thread, with the lock held.  ready() and ring() are called without it.
 *
 * Peers are ranks of the job.  Connections are made when reserve() is first called
 * for a peer, or when the peer does so; until one stands reserve() answers -EAGAIN.
 *
 * A transport that needs threads has none of its own: it gives file descriptors to
 * the core's monitor (watch).
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/copy.h"
#include "base/log.h"
#include "base/settings.h"
#include "wire.h"

struct transport_ops;
/* First member of every transport's own structure. */
struct transport {
	const struct transport_ops *ops;
};

/* Room for one packet.  Fill hdr (all but stamp) and payload, then commit or discard. */
struct transport_slot {
	struct wire_hdr *hdr;
	void *payload;    /* room for the bytes that were reserved */
	copy_fn *copy;    /* what a long payload is best copied with: the caller sets memcpy, a transport may know better */
	uint64_t private; /* the transport's */
};

/* A get or a put: up to two local pieces, in order, and the remote descriptors. */
struct transport_rma {
	uint64_t cookie;
	const void *desc; /* as pack_rkey() wrote it on the other side, desc_bytes long */
	size_t desc_bytes;
	struct {
		void *base;
		size_t len;
	} local[2]; /* [0] is the head, [1] the body; lengths equal those of the packed rkey; a put only reads */
};

/* What the peer may do with memory whose rkey it has. */
enum transport_access { TRANSPORT_GET, TRANSPORT_PUT };

struct transport_sink {
	void *core;
	/* hdr and payload (hdr->len bytes; may be NULL if there are none) are valid until the call
	 * returns. hdr->len never exceeds what the transport received; all else is unchecked input. */
	void (*on_packet)(void *core, int peer, const struct wire_hdr *hdr, const void *payload);
	/* The get with this cookie has ended: 0 or -errno (text set). -EPERM and -ENOSYS: cannot be
	 * done at all, the core streams instead. */
	void (*on_get)(void *core, int peer, uint64_t cookie, int err);
	/* The put with this cookie has ended and its memory may be used again: 0, the packet behind it is on its way;
	 * or -errno (text set): it is not and will not be, the core streams instead. */
	void (*on_put)(void *core, int peer, uint64_t cookie, int err);
	/* cancel() answered -EINPROGRESS: no adapter reaches the memory of this cookie any more. */
	void (*on_cancelled)(void *core, int peer, uint64_t cookie);
	/* The peer cannot be reached any more.  All that it sent before has been delivered.
	 * err: -ECONNRESET and the like; -EPIPE: it left in good order.  why names the rank and is copied. */
	void (*on_down)(void *core, int peer, int err, const char *why);
};

/* Lets a transport have file descriptors watched by the core's monitor thread. `fn` is
 * called on the monitor thread with the core's lock held whenever fd is readable; not during close(), but remove()
 * works there. */
struct transport_watch {
	void *monitor;
	int (*add)(void *monitor, int fd, void (*fn)(void *arg), void *arg);
	void (*remove)(void *monitor, int fd);
	/* Release and take the core's lock.  For slow work (registration, connection set-up), which is never done with the lock held, since a
	 * thread that holds up a collector may wait for it: from fn, and from buffer_release(). */
	void (*unlock)(void *monitor);
	void (*lock)(void *monitor);
};

/* The words of a doorbell. */
enum transport_doorbell {
	TRANSPORT_DOORBELL_POLLER,     /* the thread that owns progress: woken by whatever arrives */
	TRANSPORT_DOORBELL_BACKGROUND, /* the progress thread: woken by urgent wake-ups alone */
	TRANSPORT_DOORBELL_WORDS
};

/* Peers to look after once the lock is released.  A transport appends (under the lock) whenever it
 * committed something to a peer, or freed room that a peer may wait for; if the list is full it makes a
 * full fence and looks at once. */
#define TRANSPORT_WAKEUPS_MAX 8
struct transport_wakeups {
	int count;
	struct transport_wakeup {
		struct transport *owner;
		void *doorbell;
		void *flag;  /* NULL, or what must be set for anybody to be woken; the transport clears it */
		bool urgent; /* the progress thread too: the packet needs an answer or belongs to a rendezvous, or there was no room */
	} peer[TRANSPORT_WAKEUPS_MAX];
};

struct transport_peer_info {
	bool same_node;      /* shares memory and process ids with this rank */
	const void *address; /* what the peer's transport wrote in address() */
	size_t address_bytes;
};

struct transport_env {
	int rank, size;
	const char *job_id; /* 32 hex digits, the same on every rank */
	const struct settings *settings;
	const struct log *log;
	struct transport_sink sink;
	struct transport_watch watch;
	struct transport_wakeups *wakeups;
	void *test; /* the fake transport's fabric; NULL in production */
};

/* Leases: a peer may read one segment of this rank's memory at a time, until the owner revokes it
 * (PROTOCOL.md section 10).  One word that both sides see holds the state:
 *
 *   closed --open--> offered --end(REVOKE)--> closed
 *                    offered --claim--> claimed --settle(true)---> copied ----end--> closed
 *                                       claimed --settle(false)--> refused ---end--> closed
 *                                       claimed --end(ABANDON)---> abandoned --settle--> closed */
enum transport_lease_end { TRANSPORT_LOOK, TRANSPORT_REVOKE, TRANSPORT_ABANDON };
struct transport_lease {
	/* Sender, lock held.  Writes the descriptor, WIRE_LEASE_BYTES.  0; -EBUSY: a lease to this peer is open. */
	int (*open)(struct transport *t, int peer, const void *base, void *desc);
	/* Sender, no lock, the thread that opened it.  -EAGAIN: offered or claimed.  1: copied, now closed.  0: revoked
	 * (REVOKE, ABANDON), now closed.  -EIO: refused, or abandoned while claimed.  After any answer but -EAGAIN
	 * nothing that is read from the memory counts. */
	int (*end)(struct transport *t, int peer, enum transport_lease_end how);
	/* Receiver, lock held: the lease does not close before settle(), but may be abandoned. 0 or -errno. */
	int (*claim)(struct transport *t, int peer, const void *desc);
	/* Receiver, no lock, the thread that claimed it: copies the segment's first `bytes` bytes. 0 or -errno (text set). */
	int (*copy)(struct transport *t, int peer, const void *desc, void *to, size_t bytes);
	/* Receiver, lock held.  True: the sender sees that it was copied.  False: it was not, or was abandoned: what was
	 * copied does not count. */
	bool (*settle)(struct transport *t, int peer, const void *desc, bool copied);
};

#define TRANSPORT_AREAS 16u
#define TRANSPORT_AREA_BYTES ((size_t)2 << 20)

/* What poll() is called with where there is time: packets that one holding of the lock delivers at most. */
#define TRANSPORT_BUDGET 32

/* Names are shorter than this. */
#define TRANSPORT_NAME_BYTES 12u

struct transport_ops {
	const char *name;
	/* It carries all ranks of a node. */
	bool covers_node;
	/* 0, or: smaller packets than this cost more than they bring, a message up to this size is one packet. */
	size_t piece_min;
	/* Opening it takes long: left out where all ranks are on one node and a transport before it covers that. */
	bool costly;
	/* Any two ranks that have opened it, so that it has an address, reach each other. */
	bool universal;
	/* The last of the setting's transports and as costly as this one: not opened where every rank has opened a universal one. */
	bool last_resort;

	/* What it can do here and why not, as lines of text ("  cma: yes ..."), at most
	 * size bytes; returns 0 if usable on this machine, else -errno. No lock, no side effect. */
	int (*describe)(const struct settings *settings, char *out, size_t size);

	/* Life: open -> address -> (core exchanges) -> attach -> (core: barrier) -> ... -> close. */
	int (*open)(struct transport **out, const struct transport_env *env);
	/* Writes this rank's address blob; returns its length (<= size) or -errno. */
	int (*address)(struct transport *t, void *out, size_t size);
	/* Everybody's blobs are known.  peers[size], index == rank; valid during the call. */
	int (*attach)(struct transport *t, const struct transport_peer_info *peers);
	/* NULL allowed, half-open allowed.  Never blocks. */
	void (*close)(struct transport *t);
	/* Everything that was committed has reached the peer's memory or its adapter, so that closing
	 * loses nothing; and peers that were forgotten are cut off from our memory.  NULL: always. */
	bool (*drained)(struct transport *t);
	/* A peer has left in good order, as the bootstrap reports: may packets that it sent before still be under way?  Then its
	 * end follows from poll(), by its BYE or by on_down.  NULL: never, what a peer committed lies here. */
	bool (*awaits)(const struct transport *t, int peer);
	/* We leave in good order: from now on our absence is no death (called before close). */
	void (*leave)(struct transport *t);
	/* This rank is failing because that one died: the rank that sees us end should name it, not us.  NULL: no way
	 * to leave word. */
	void (*blame)(struct transport *t, int rank);
	/* The rank that this one has blamed, or -1.  NULL where blame is. */
	int (*cause)(const struct transport *t, int rank);
	/* Can peer be reached by this transport? After attach. */
	bool (*reaches)(const struct transport *t, int peer);
	/* This transport will carry all packets between this rank and the peer, in both directions.  NULL: it need not know. */
	void (*use)(struct transport *t, int peer);

	/* Largest payload of one packet to this peer (>= 256). */
	size_t (*payload_max)(const struct transport *t, int peer);
	/* Takes room for a packet with len payload bytes (<= payload_max).  0; -EAGAIN: no room
	 * now, poll() and try again (a sleeper is woken when there is); another -errno: the peer is lost.
	 * At most one slot is open per peer, and the caller commits or discards it before
	 * it calls anything else of the transport but pack_rkey() and lease->open(). An error is a hint: on_down follows from poll(),
	 * or the core gives the peer up itself. */
	int (*reserve)(struct transport *t, int peer, size_t len, struct transport_slot *slot);
	/* The packet is complete; hdr->len <= the reserved length. */
	void (*commit)(struct transport *t, int peer, struct transport_slot *slot);
	void (*discard)(struct transport *t, int peer, struct transport_slot *slot);
	/* NULL where nothing is to be won.  reserve(), two copies and commit() in one: the packet with this header (copied, all but stamp) and the
	 * payload head, then body, hdr->len bytes together.  Returns as reserve(). */
	int (*post)(struct transport *t, int peer, const struct wire_hdr *hdr, const void *head, size_t head_bytes, const void *body,
		    size_t body_bytes);

	/* Delivers what has arrived, up to about `budget` packets, by upcalls.  Returns how
	 * many events there were.  With less than TRANSPORT_BUDGET the calling thread may hold up a collector: what takes time is left for another poll. */
	int (*poll)(struct transport *t, int budget);
	/* Hint without the lock: might poll() find something?  May err to either side for a moment. */
	bool (*ready)(const struct transport *t);

	/* Sleeping.  arm(): from now on a rank that sends to us, or frees room that a reserve()
	 * of ours lacked, wakes the threads that sleep on the doorbell of this endpoint.  The core polls once more after arm(),
	 * then sleeps.  disarm(): no longer. */
	void (*arm)(struct transport *t);
	void (*disarm)(struct transport *t);
	/* Called without the lock for each wake-up that the transport had put on env.wakeups under the lock:
	 * wakes those of the peer that sleep.  A full fence stands between what was committed or freed and this look. Any thread. */
	void (*wake)(struct transport *t, void *doorbell, void *flag, bool urgent);
	/* The futex words (enum transport_doorbell) on which this endpoint sleeps and which others wake; NULL: the transport has none, its arm()
	 * uses a watched fd and the core's own doorbell.  At most one transport of an endpoint has one.
	 * Bit 0 of each is set by the core while somebody sleeps there.  The waker clears it and adds 2, in one exchange. */
	uint32_t *(*doorbell)(struct transport *t);

	/* RMA operations; NULL where there are none.
	 * pack_rkey(): describes two pieces of local memory so that peer can get them, or put them there; returns the
	 * descriptor's length (<= WIRE_RMA_MAX), 0: not for this message, -EAGAIN: the memory is being registered, call again
	 * after a poll(); another -errno.  What it holds, also after -EAGAIN, is released by release_rkey() with the same cookie, in vain
	 * if it holds nothing. */
	int (*pack_rkey)(struct transport *t, int peer, uint64_t cookie, enum transport_access access, const void *base[2],
			 const size_t len[2], void *desc);
	void (*release_rkey)(struct transport *t, int peer, uint64_t cookie);
	/* Is a get to be used for a rendezvous of this many bytes? */
	bool (*prefers_get)(const struct transport *t, int peer, size_t bytes);
	/* NULL: never.  Is a get of this many bytes sometimes faster and sometimes slower than packets?  Then the core
	 * learns which, from messages to ranks of this node (core/cost.h). */
	bool (*learns_get)(const struct transport *t, int peer, size_t bytes);
	/* Starts a get; its end comes through on_get from a later poll().  Any error: the core streams instead. */
	int (*get)(struct transport *t, int peer, const struct transport_rma *get);
	/* May NULL be where gets are. Is a put worth being offered for a message of this many bytes, if no get carries it? */
	bool (*prefers_put)(const struct transport *t, int peer, size_t bytes);
	/* Starts a put; its end comes through on_put from a later poll().  The packet `behind` (no payload; copied) reaches the peer when all
	 * bytes are there.  Any error: the core streams instead. */
	int (*put)(struct transport *t, int peer, const struct transport_rma *put, const struct wire_hdr *behind);
	/* The request of a get, a put or an rkey ends early: on_get and on_put do not follow, release_rkey() need not.
	 * 0: no adapter reaches its memory any more; -EINPROGRESS: on_cancelled follows when that is so. */
	int (*cancel)(struct transport *t, int peer, uint64_t cookie);

	/* NULL where there are none. */
	const struct transport_lease *lease;

	/* NULL where there is none.  Maps the first `bytes` bytes, at most TRANSPORT_AREA_BYTES, of an area: memory that all ranks of
	 * this node see, TRANSPORT_AREAS of them for each rank, its owner; zero at first.  The owner maps it before others do, which
	 * allocates it.  Any thread, no lock, after attach.  0, and *memory is there until munmap(), also after close(); or -errno with text. */
	int (*area)(struct transport *t, int owner, unsigned index, size_t bytes, void **memory);

	/* NULL where nothing is to be won.  buffer_register(): this memory stays mapped until buffer_release() with the same arguments: what was prepared for a
	 * transfer of it may be used again for the next.  1; 0: no use for it here, buffer_release() must not follow; -ENOSPC: too
	 * much is registered already, -EFBIG: it alone is too much, -ENOMEM.
	 * buffer_release(): when it returns nothing of a finished message refers to the memory.  0 or -EINVAL. */
	int (*buffer_register)(struct transport *t, void *base, size_t bytes);
	int (*buffer_release)(struct transport *t, const void *base, size_t bytes);

	/* We close in good order (announce it first) / the core has given the peer up / this rank is aborted:
	 * drop what is queued for it; reserve() may answer any error from now on. Once drained() is true again the peer's adapter transfers nothing of ours any more. */
	void (*forget)(struct transport *t, int peer);

	/* Appends counters (name, value) of one peer, or of the transport with peer == -1, through add(). */
	void (*counters)(const struct transport *t, int peer, void (*add)(void *arg, const char *name, uint64_t value), void *arg);
};

/* All transports of this build, best first, NULL-terminated. */
extern const struct transport_ops *const transport_all[];
/* Those that this build lacks, and why; ends with a name of NULL. */
struct transport_absent {
	const char *name, *why;
};
extern const struct transport_absent transport_absent[];
/* By name, or NULL. */
const struct transport_ops *transport_find(const char *name);

#endif
