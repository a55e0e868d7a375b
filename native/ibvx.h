/* SPDX-License-Identifier: MIT */
#ifndef IBVX_H
#define IBVX_H
/*
 * ibvx: point-to-point message passing between the ranks of one job.
 *
 * An endpoint (struct ibvx) is one rank of a job.  There is no global state: a
 * process may hold several endpoints, of one job or of several.
 *
 * Threads: every function may be called from any thread at any time
 * (MPI_THREAD_MULTIPLE), except that ibvx_close() must be the last call on its
 * endpoint.  Fork: a child must not use an endpoint of its parent.
 *
 * Matching (MPI 4.0, section 3.5): a receive names (source, tag, context); source may be
 * IBVX_ANY_SOURCE and tag IBVX_ANY_TAG.  Messages of one sender in one context
 * do not overtake each other, whatever protocol carries them.
 *
 * Progress is made by the threads that call.  A non-blocking operation on a long message also
 * proceeds while none does, by a thread of the library's own (unless progress_thread=0).  A receive may be complete
 * here while its acknowledgement to the sender waits for room: it goes out with the next call,
 * by that thread, or with ibvx_close().
 *
 * Errors: every int function returns 0 or a positive answer, or a negative errno
 * value.  ibvx_error() then gives one sentence that names the value and the
 * remedy.  The codes that can appear anywhere:
 *   -EINVAL   an argument is out of range, or a request handle is stale
 *   -ENOMEM   no memory
 *   -ESHUTDOWN the endpoint is closing
 *   -EPIPE    the peer has closed its endpoint in good order and cannot answer
 *   -ECONNRESET the peer (or, with fault_scope=job, any rank) has died
 */
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

#define IBVX_VERSION_MAJOR 0
#define IBVX_VERSION_MINOR 1
#define IBVX_VERSION_PATCH 0
#define IBVX_VERSION "0.1.0"

/* Wildcards of receives and probes.  A message sent with tag -2 is legal and is
 * received by IBVX_ANY_TAG alone (xdev has the same rule). */
#define IBVX_ANY_SOURCE (-2)
#define IBVX_ANY_TAG (-2)

struct ibvx;

/* A request handle: slot and generation, never a pointer.  A stale or forged
 * handle gets -EINVAL, not a crash. */
typedef uint64_t ibvx_req;
#define IBVX_REQ_NULL ((ibvx_req)0)

struct ibvx_layout;

/* What a send reads: two segments that travel as one message; either may be
 * empty.  `user` is a word that travels in the envelope: probe and receive both
 * report it before any payload was transferred.  With a layout, body is the address to which its
 * offsets are relative and body_bytes the number of bytes that it selects (see Layouts);
 * the head is contiguous always.
 * Initialise with designators or zero first: the structure grows between versions 0.x. */
struct ibvx_sbuf {
	const void *head;
	size_t head_bytes;
	const void *body;
	size_t body_bytes;
	uint64_t user;
	const struct ibvx_layout *layout; /* NULL: the body is contiguous */
};

/* Where a receive writes.  split == 0: both segments, one after the other, into
 * base.  split != 0: the head into base, the body into memory that the library
 * allocates and hands over in ibvx_status.body (free it with ibvx_free()); the
 * body's length is not limited.  With a layout, base is the address to which its offsets are
 * relative and capacity_bytes the number of bytes that it selects; a layout and split exclude
 * each other (-EINVAL). */
struct ibvx_rbuf {
	void *base;
	size_t capacity_bytes;
	int split;
	const struct ibvx_layout *layout; /* NULL: base is contiguous */
};

struct ibvx_status {
	int source; /* rank of the sender (of a send: of the destination) */
	int tag;    /* as sent */
	int context;
	int error;           /* 0, or the negative errno that the wait returned */
	uint64_t head_bytes; /* lengths as sent, also after a truncation */
	uint64_t body_bytes;
	uint64_t user;
	void *body; /* split receives: the body, owned by the caller; else NULL */
};

/* How to open an endpoint.  Zero-initialise it, then set what is needed. */
struct ibvx_config {
	int rank; /* -1: the launcher knows; else checked against it */
	/* conf:  the path of a conf file, or MPJ Express's ";" string that contains
	 *        "#Number of Processes" (see the man page ibvdev.conf(5));
	 * peers: size addresses "host:port", index == rank;
	 * neither, or the conf "auto": the launcher that has started this process
	 *        provides rank and size, and where rank 0 is.  Zero in rank means rank 0. */
	const char *conf;
	const char *const *peers;
	int size; /* with peers; else 0, or checked against what is found */
	/* "name=value" strings, NULL-terminated, or NULL; the names are those that
	 * ibvdev-info lists.  Precedence: these, environment IBVDEV_*, conf file,
	 * defaults.  The origin is what ibvdev-info and errors call them. */
	const char *const *settings;
	const char *settings_origin; /* NULL: "caller" */
	/* Defaults that an embedding layer prefers to the library's; lowest precedence. */
	const char *const *defaults;
};

/* Opens rank cfg->rank and returns when all ranks of the job have arrived.
 * Blocks up to the setting start_timeout_ms.  Errors: -ETIMEDOUT (the text names
 * the missing ranks), -EADDRINUSE, -EACCES (wrong job secret), -EEXIST (rank
 * taken), -ENOENT/-EINVAL (conf, settings), -EHOSTUNREACH, -EPROTO (the launcher's
 * answers), -ESTALE (a start by this launcher has failed in this process before),
 * -EBUSY (another thread is opening an endpoint by it). *out is NULL then. */
int ibvx_open(struct ibvx **out, const struct ibvx_config *cfg);

/* Leaves the job: flushes every send that was accepted, notifies the peers, frees
 * the endpoint.  -EBUSY: receives or synchronous sends are pending (the text
 * lists them), or other threads are inside operations that wait; nothing was closed, complete or cancel them and call again.
 * -ETIMEDOUT: sends could not be flushed within finish_timeout_ms; nothing closed.
 * NULL is allowed and does nothing. */
int ibvx_close(struct ibvx *ep);

/* Frees the endpoint at once, without flushing or agreeing with anybody: for an
 * embedding layer whose process is about to end.  Peers see this rank as dead.
 * Calls of other threads that are under way return -ESHUTDOWN; none may begin any
 * more.  If one does not return within seconds, the endpoint is not freed. */
void ibvx_abort(struct ibvx *ep);

int ibvx_rank(const struct ibvx *ep);
int ibvx_size(const struct ibvx *ep);
/* 32 hex digits, the same on every rank, different in every job; valid until ibvx_close(). */
const char *ibvx_job_id(const struct ibvx *ep);

/* The text of the last error of the calling thread; valid until the thread's
 * next call.  Never NULL. */
const char *ibvx_error(void);

/* Library version, "0.1.0". */
const char *ibvx_version(void);

/* Blocking sends.  ibvx_send (standard) returns when the buffer may be reused:
 * at once up to the protocol switch limit while the receiver's credit window has
 * room, else when the receiver has taken it.  ibvx_ssend returns only after the
 * matching receive has been posted. */
int ibvx_send(struct ibvx *ep, const struct ibvx_sbuf *buf, int dest, int tag, int context);
int ibvx_ssend(struct ibvx *ep, const struct ibvx_sbuf *buf, int dest, int tag, int context);

/* Non-blocking sends.  They never wait for the peer.  *buf itself is copied; the
 * memory it names must stay valid and unchanged until the request completes. */
int ibvx_isend(struct ibvx *ep, const struct ibvx_sbuf *buf, int dest, int tag, int context, ibvx_req *req);
int ibvx_issend(struct ibvx *ep, const struct ibvx_sbuf *buf, int dest, int tag, int context, ibvx_req *req);

/* Receives.  -EMSGSIZE: the message is longer than the buffer; it is consumed,
 * the buffer is unchanged, the text names both sizes, later messages are
 * unaffected.  status may be NULL unless buf->split. */
int ibvx_recv(struct ibvx *ep, const struct ibvx_rbuf *buf, int source, int tag, int context, struct ibvx_status *status);
int ibvx_irecv(struct ibvx *ep, const struct ibvx_rbuf *buf, int source, int tag, int context, ibvx_req *req);

/* Layouts: which bytes of memory a message consists of, and in which order.  A column of a matrix, an array of
 * structures, a list of segments, or whatever a pair of callbacks packs is copied once, between this memory and the
 * transport's, and never packed into a buffer of its own.
 *
 * A layout has a number of bytes and an extent.  A message of more bytes than the layout has uses it again and again,
 * each time `extent` bytes further on in memory: body_bytes = count * bytes sends `count` elements.  A message may
 * end anywhere within the layout.  Sender and receiver may use different layouts, or none: a message is its bytes.
 *
 * A layout is immutable and independent of endpoints.  Any number of messages and threads may use it at once.
 * Offsets and strides are bytes and may be negative.  What a receive writes must not overlap itself.
 *
 * The constructors return 0; -ENOMEM; or -EINVAL (text set): a length, a stride or a product of them exceeds 2^60 bytes,
 * an argument is NULL, or layouts are nested more than 32 deep.  *out is NULL then.  Zero counts and lengths are legal. */

/* `bytes` contiguous bytes. */
int ibvx_layout_contiguous(struct ibvx_layout **out, size_t bytes);
/* `count` blocks of block_bytes, the beginnings of which are stride_bytes apart.
 * The extent reaches from the first byte to behind the last one: (count - 1) * stride_bytes + block_bytes. */
int ibvx_layout_vector(struct ibvx_layout **out, size_t count, size_t block_bytes, ptrdiff_t stride_bytes);

/* `count` blocks in the order of the list.  The extent reaches from offset 0 to behind the furthest byte. */
struct ibvx_block {
	ptrdiff_t offset;
	size_t bytes;
};
int ibvx_layout_indexed(struct ibvx_layout **out, size_t count, const struct ibvx_block blocks[]);

/* The same by address: pass NULL as body or base with such a layout. */
struct ibvx_segment {
	void *base; /* of a send, only read */
	size_t bytes;
};
int ibvx_layout_segments(struct ibvx_layout **out, size_t count, const struct ibvx_segment segments[]);

/* `count` times `inner`, extent_bytes apart.  The extent is count * extent_bytes; so a count of 1 gives `inner`
 * another extent. */
int ibvx_layout_nested(struct ibvx_layout **out, size_t count, ptrdiff_t extent_bytes, const struct ibvx_layout *inner);

/* Several layouts one after the other, each at its offset.  The extent reaches from offset 0 to behind the furthest
 * byte, padding excluded. */
struct ibvx_field {
	ptrdiff_t offset;
	const struct ibvx_layout *layout;
};
int ibvx_layout_struct(struct ibvx_layout **out, size_t count, const struct ibvx_field fields[]);

/* Bytes that two functions produce and consume.  pack() copies `bytes` bytes, from byte `offset` of the layout on, to `to`;
 * unpack() is the reverse.  `base` is the address of this element.  Ranges come in any size; of one message in ascending
 * order without a gap, but of a send that fails over to another protocol a range may come twice.
 * Both are called by whatever thread is inside the library, or by its progress thread, with the endpoint locked: they must
 * return soon and must not call a function that takes an endpoint. */
int ibvx_layout_callbacks(struct ibvx_layout **out, size_t bytes, ptrdiff_t extent_bytes,
			  void (*pack)(void *arg, const void *base, size_t offset, void *to, size_t bytes),
			  void (*unpack)(void *arg, void *base, size_t offset, const void *from, size_t bytes), void *arg);

size_t ibvx_layout_bytes(const struct ibvx_layout *layout);
ptrdiff_t ibvx_layout_extent(const struct ibvx_layout *layout);

/* Gives the layout up.  Layouts made of it and requests that use it keep what they need.  NULL is allowed. */
void ibvx_layout_free(struct ibvx_layout *layout);

/* A buffer that is used again and again.  The caller promises that [base, base + bytes) stays mapped until it has been released: an
 * adapter's registrations of it are kept between messages then, which saves pinning its pages for each.  Never needed for correctness.
 *   1        registered; release it before the memory is unmapped or freed
 *   0        no transport of this endpoint has a use for it: there is nothing to release
 *   -ENOSPC  more than verbs_cache_entries or verbs_cache_bytes: release others first; nothing was registered
 *   -EFBIG   it alone is more than they allow
 * A range may be registered several times and stays until it was released as often.  Never blocks on a peer. */
int ibvx_buffer_register(struct ibvx *ep, void *base, size_t bytes);
/* When it returns no adapter can reach the memory any more, but for messages of it that are still under way: those must
 * be complete before the memory goes, as always.  -EINVAL: this range is not registered.  ibvx_close() releases all. */
int ibvx_buffer_release(struct ibvx *ep, void *base, size_t bytes);

/* Completion.  A request is consumed (and *req set to IBVX_REQ_NULL) when one of
 * these reports it complete; the error of the operation is the return value and
 * status->error.  A handle that was never valid or is already consumed: -EINVAL.
 * IBVX_REQ_NULL is complete at once with an empty status (waitany skips it).
 * Two threads must not wait for one request at the same time (-EINVAL). */
int ibvx_wait(struct ibvx *ep, ibvx_req *req, struct ibvx_status *status);
/* 1 complete, 0 not yet; makes progress. An operation that failed is complete: the
 * negative error is returned and *req is IBVX_REQ_NULL. */
int ibvx_test(struct ibvx *ep, ibvx_req *req, struct ibvx_status *status);
/* Index of the request that completed (its error is in status->error), or
 * -ENOENT if all are IBVX_REQ_NULL. */
int ibvx_waitany(struct ibvx *ep, int count, ibvx_req reqs[], struct ibvx_status *status);

/* Blocks until some non-blocking request is complete that no call has reported or
 * consumed yet, and gives the most recently completed one (FastMPJ's and
 * MPJ Express's peek).  The request is not consumed: call ibvx_wait() on it.
 * Each request is given at most once. */
int ibvx_peek(struct ibvx *ep, ibvx_req *req);

/* Cancels a receive that has not matched: 0, and the request completes with
 * -ECANCELED (wait for it as usual).  -EBUSY: matched or complete already.
 * -EOPNOTSUPP: a send. */
int ibvx_cancel(struct ibvx *ep, ibvx_req req);

/* Gives the handle up: the request's resources are released when it completes. */
int ibvx_request_free(struct ibvx *ep, ibvx_req *req);

/* Probes.  iprobe: 1 and the status of the message that a receive with the same
 * arguments would get (it stays queued), or 0.  probe blocks. */
int ibvx_iprobe(struct ibvx *ep, int source, int tag, int context, struct ibvx_status *status);
int ibvx_probe(struct ibvx *ep, int source, int tag, int context, struct ibvx_status *status);

/* Matched probe (MPI 4.0, section 3.8.2): the message leaves the queue and belongs to
 * *message, which ibvx_mrecv() or ibvx_imrecv() must receive.  improbe: 1 or 0. */
int ibvx_improbe(struct ibvx *ep, int source, int tag, int context, ibvx_req *message, struct ibvx_status *status);
int ibvx_mrecv(struct ibvx *ep, ibvx_req *message, const struct ibvx_rbuf *buf, struct ibvx_status *status);
int ibvx_imrecv(struct ibvx *ep, ibvx_req *message, const struct ibvx_rbuf *buf, ibvx_req *req);

/* Frees memory that the library handed over (ibvx_status.body, the texts below). */
void ibvx_free(void *memory);

/* One counter of the endpoint. */
struct ibvx_counter {
	const char *name;
	uint64_t value;
};
/* Fills up to max counters of one peer (or, with peer == -1, of the endpoint)
 * and returns how many there are. */
int ibvx_counters(struct ibvx *ep, int peer, struct ibvx_counter *out, int max);

/* What ibvdev-info prints, as text in *out (free with ibvx_free()): version, kernel
 * facts, transports and why one is unavailable, settings with their origin.
 * cfg->conf and the settings are read, nothing is opened. */
int ibvx_describe(const struct ibvx_config *cfg, char **out);

/* What ibvdev-info --launcher prints: which launchers were found and which one was chosen, and then, as a test, all
 * ranks of the job meet and part.  Every rank has to call it; it blocks as ibvx_open() does, and counts as the process's
 * first meeting (its rank, conf and peers are not looked at).  0, and rank 0 has the text, the others an empty one; or the
 * negative errno of the meeting, and *out has a text all the same (NULL only with -ENOMEM and for bad settings). */
int ibvx_describe_launcher(const struct ibvx_config *cfg, char **out);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
