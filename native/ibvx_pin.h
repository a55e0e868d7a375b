/* SPDX-License-Identifier: MIT */
#ifndef IBVX_PIN_H
#define IBVX_PIN_H
/*
 * ibvx_heap: messages from and to memory that moves, for embedding layers with a moving collector.  Not exported.
 *
 * Such memory has an address only inside a *region*, which the layer opens and closes: while one is open the collector waits.
 * So the library opens one only when a piece can be moved there and then, by the thread that waits for the message
 * itself, and closes it when that piece has been copied.  It waits for a peer in between only if that waits, too, for this message: 50 us until
 * it comes, 2 ms (lease_us) until it has copied (window.h).  What arrives while no region is open goes to memory of the library first, the *stage*.
 *
 * A non-blocking send can *lend* its memory: then whatever thread is inside the library opens the regions.
 *
 * Rules as in ibvx.h, and the same codes and texts; also
 *   -EPROTOTYPE  the message's user word is not what the receive wants: the message is consumed
 * After it and after -EMSGSIZE the status is filled all the same.
 */
#include <stdbool.h>

#include "ibvx.h"

/* The memory of one blocking call, or of a send that lends it.  The layer fills the first part. */
struct ibvx_pin {
	/* Opens a region; the address of the memory's first byte, or NULL: not now. Called without locks, on the thread that
	 * called the operation; until leave() only copies happen, and the core's lock is taken and released. */
	void *(*enter)(struct ibvx_pin *heap);
	void (*leave)(struct ibvx_pin *heap, void *at);
	/* Lent memory: any thread that calls the library may open regions, one at a time.  This ends it, once: the library opens no more.
	 * Called without locks, by some later call or when the endpoint is freed.  NULL: of one blocking call. */
	void (*drop)(struct ibvx_pin *heap);

	/* The library's. */
	bool wanted;
	struct ibvx_pin *next;
	/* A receive: so many bytes may be taken from the sender's memory, this describes them.  A send: so many are offered, and not answered yet. */
	size_t lease_bytes;
	uint64_t lease[2];
	/* After a receive: what has still to be brought to its place: rest_bytes from stage + rest_at to the place's
	 * rest_at.  The layer does that and frees the stage (NULL allowed). */
	char *bounce;
	size_t rest_at, rest_bytes;
};

/* What a receive asks for, and where it puts it:
 * base: ordinary memory; else the stage, and with a heap straight to that where possible. */
struct ibvx_want {
	int source, tag, context;
	size_t capacity_bytes;
	uint64_t user, user_mask; /* the bits of the user word that must be equal */
	void *base;
};

/* A blocking send from a heap; buf has lengths only, the body lies behind the head. */
int ibvx_pin_send(struct ibvx *ep, struct ibvx_pin *heap, const struct ibvx_sbuf *buf, int dest, int tag, int context,
		   bool sync);

/* Is it worth while, and safe, to lend the memory of a non-blocking send of so many bytes? Not if an adapter or one cross-memory
 * copy moves them, nor if there is a progress thread, which is not the layer's and opens no regions: then send a copy. */
bool ibvx_pin_lends(struct ibvx *ep, int dest, size_t bytes);

/* A send from lent memory (heap->drop is set), as ibvx_pin_send(). heap is the library's, also after an error. */
int ibvx_pin_isend(struct ibvx *ep, struct ibvx_pin *heap, const struct ibvx_sbuf *buf, int dest, int tag, int context,
		    bool sync, ibvx_req *req);

/* A send of a private copy: `copy` is from malloc(), holds all that buf names, and is the library's to free, also after
 * an error.  NULL: what buf names is only valid during the call, and is copied if the message cannot leave at once. */
int ibvx_pin_isend_copy(struct ibvx *ep, void *copy, const struct ibvx_sbuf *buf, int dest, int tag, int context, bool sync,
			 ibvx_req *req);

/* Receives.  heap == NULL: all stays in the stage, which status->body hands over (free it with ibvx_free()). */
int ibvx_pin_recv(struct ibvx *ep, struct ibvx_pin *heap, const struct ibvx_want *want, struct ibvx_status *status);
int ibvx_pin_irecv(struct ibvx *ep, const struct ibvx_want *want, ibvx_req *req);
/* The handle is gone, whatever is returned; so is the message. source, tag and context are the message's. */
int ibvx_pin_mrecv(struct ibvx *ep, ibvx_req *message, struct ibvx_pin *heap, const struct ibvx_want *want,
		    struct ibvx_status *status);

/* As ibvx_wait() and ibvx_test(), for any request; of a receive without a base heap says where the data goes. */
int ibvx_pin_wait(struct ibvx *ep, ibvx_req *req, struct ibvx_pin *heap, struct ibvx_status *status);
int ibvx_pin_test(struct ibvx *ep, ibvx_req *req, struct ibvx_pin *heap, struct ibvx_status *status);

/* As ibvx_waitany(), but the request found is not consumed. */
int ibvx_pin_any(struct ibvx *ep, int count, const ibvx_req reqs[]);

/* A standard send that needs nothing of the receiver, for what a layer tells its like on the other side: 1: it has left as one
 * eager packet, in the stream in front of whatever is sent later; 0: that cannot be done now (too long, no credit, no room, others
 * wait before it), and nothing has happened. */
int ibvx_send_at_once(struct ibvx *ep, const struct ibvx_sbuf *buf, int dest, int tag, int context);

#endif
