/* SPDX-License-Identifier: MIT */
#ifndef IBVX_PIN_H
#define IBVX_PIN_H
/*
 * ibvx_pin: messages from and to pinnable memory, for the JNI layer.  Not exported.
 *
 * Pinnable memory, such as a Java array, has an address only while the layer above has pinned it; meanwhile its collector
 * waits.  The library pins only when a piece can be transferred at once, on the thread that waits for the message
 * itself, and unpins when that piece has been copied.  It waits for a peer in between only if the peer's thread waits for this
 * message, too: 50 us until it claims the lease, lease_us (2 ms) until it has copied (core/lease.h).  What arrives while the memory is
 * not pinned goes to a bounce buffer of the library.
 *
 * The memory of a zero-copy send is pinned by whatever thread of the layer is inside the library.
 *
 * Rules as in ibvx.h, and the same codes and texts; also
 *   -EPROTOTYPE  the message's user word is not what the receive wants: the message is consumed
 * After it and after -EMSGSIZE the status is filled all the same.
 */
#include <stdbool.h>

#include "ibvx.h"

/* The memory of one blocking call, or of a zero-copy send.  The layer fills the first part. */
struct ibvx_pin {
	/* Pins the memory; the address of its first byte, or NULL: not now.  Called without locks, on the thread that
	 * called the operation; until leave() only copies happen, and the core's lock is taken and released. */
	void *(*enter)(struct ibvx_pin *pin);
	void (*leave)(struct ibvx_pin *pin, void *at);
	/* Zero-copy send: any thread that calls the library may pin, one at a time.  This ends it, once: the library pins no more.
	 * Called without locks, by a later call or when the endpoint is freed.  NULL: the memory of one blocking call. */
	void (*drop)(struct ibvx_pin *pin);

	/* The library's. */
	bool wanted;
	struct ibvx_pin *next;
	/* Receive: so many bytes are leased by the sender, lease describes them. */
	size_t lease_bytes;
	uint64_t lease[2];
	/* After a receive: what the layer has still to copy: rest_bytes from bounce + rest_at to the memory's
	 * rest_at.  It then frees the bounce buffer (NULL allowed). */
	char *bounce;
	size_t rest_at, rest_bytes;
};

/* What a receive asks for, and where it writes.  base: ordinary memory.  NULL: the bounce buffer, and with a pin directly to
 * its memory where possible. */
struct ibvx_want {
	int source, tag, context;
	size_t capacity_bytes;
	uint64_t user, user_mask; /* the bits of the user word that must be equal */
	void *base;
};

/* A blocking send; buf has lengths only, the body lies behind the head. */
int ibvx_pin_send(struct ibvx *ep, struct ibvx_pin *pin, const struct ibvx_sbuf *buf, int dest, int tag, int context, bool sync);

/* Is a zero-copy send of so many bytes worth while?  Not if an adapter or one cross-memory copy carries them: then send a
 * copy. */
bool ibvx_pin_zero_copy(struct ibvx *ep, int dest, size_t bytes);

/* A zero-copy send (pin->drop is set), as ibvx_pin_send().  *pin is the library's, also after an error. */
int ibvx_pin_isend(struct ibvx *ep, struct ibvx_pin *pin, const struct ibvx_sbuf *buf, int dest, int tag, int context, bool sync,
		   ibvx_req *req);

/* A send of a private copy: `copy` is from malloc(), holds all that buf names, and is the library's to free, also after
 * an error.  NULL: what buf names is only valid during the call, and is copied if the message cannot leave at once. */
int ibvx_pin_isend_copy(struct ibvx *ep, void *copy, const struct ibvx_sbuf *buf, int dest, int tag, int context, bool sync, ibvx_req *req);

/* Receives.  pin == NULL: all stays in the bounce buffer, which status->body hands over (free it with ibvx_free()). */
int ibvx_pin_recv(struct ibvx *ep, struct ibvx_pin *pin, const struct ibvx_want *want, struct ibvx_status *status);
int ibvx_pin_irecv(struct ibvx *ep, const struct ibvx_want *want, ibvx_req *req);
/* The handle is gone, whatever is returned; so is the message. source, tag and context are the message's. */
int ibvx_pin_mrecv(struct ibvx *ep, ibvx_req *message, struct ibvx_pin *pin, const struct ibvx_want *want, struct ibvx_status *status);
int ibvx_pin_imrecv(struct ibvx *ep, ibvx_req *message, const struct ibvx_want *want, ibvx_req *req);

/* As ibvx_wait() and ibvx_test(), for any request; of a receive without a base, pin provides the memory.  wait: 1 if the request is
 * not complete after timeout_ns: it is valid as before, and *pin is the caller's again; timeout_ns < 0: no limit. */
int ibvx_pin_wait(struct ibvx *ep, ibvx_req *req, struct ibvx_pin *pin, struct ibvx_status *status, int64_t timeout_ns);
int ibvx_pin_test(struct ibvx *ep, ibvx_req *req, struct ibvx_pin *pin, struct ibvx_status *status);

/* As ibvx_waitany(), but the request found is not consumed. */
int ibvx_pin_any(struct ibvx *ep, int count, const ibvx_req reqs[]);

/* A standard send that needs nothing of the receiver, for messages between the layers of both sides: 1: it has left as one
 * eager packet, in the stream in front of whatever is sent later; 0: that cannot be done now (too long, no credit, no room, others
 * wait before it), and nothing has happened. */
int ibvx_send_at_once(struct ibvx *ep, const struct ibvx_sbuf *buf, int dest, int tag, int context);

/* The first half of ibvx_abort(): calls of other threads that are under way, and all later ones but ibvx_abort(), return
 * -ESHUTDOWN; memory of operations is the layer's again.  Peers see this rank as dead once it is freed. */
void ibvx_cut_off(struct ibvx *ep);

#endif
