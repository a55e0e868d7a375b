/* SPDX-License-Identifier: MIT */
#include "traffic.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CANARY 0x5e
#define CANARY_MAX ((size_t)16384) /* of large buffers only the first and the last bytes are guarded */

static void *memory_get(struct actor *a, size_t bytes)
{
	void *p = malloc(bytes ? bytes : 1);

	if (!p)
		traffic_fail(a->cfg, "no memory for %zu bytes", bytes);
	return p;
}

static void op_free(struct operation *op)
{
	free(op->memory[0]);
	free(op->memory[1]);
	spread_fini(&op->spread);
	free(op);
}

static void op_add(struct actor *a, struct operation *op)
{
	if (a->op_count == TRAFFIC_OPS_MAX)
		traffic_fail(a->cfg, "rank %d channel %d: the actor has too many operations", a->rank, a->channel);
	a->ops[a->op_count++] = op;
}

static void op_remove(struct actor *a, unsigned i)
{
	a->ops[i] = a->ops[--a->op_count];
}

static void event_add(struct actor *a, enum event_kind kind, unsigned index, int source, int tag, uint64_t user)
{
	if (a->event_count == a->event_room) {
		a->event_room = a->event_room ? 2 * a->event_room : 64;
		a->events = realloc(a->events, a->event_room * sizeof(*a->events));
		if (!a->events)
			traffic_fail(a->cfg, "no memory for %u events", a->event_room);
	}
	a->events[a->event_count++] = (struct event){kind, index, source, tag, user};
}

/* --- sends --- */

static struct operation *send_prepare(struct actor *a, struct ibvx_sbuf *buf)
{
	struct operation *op = calloc(1, sizeof(*op));

	if (!op)
		traffic_fail(a->cfg, "no memory");
	op->send = true;
	message_make(a->cfg, a->rank, a->channel, a->round, a->seq++, &op->m);
	for (int i = 0; i < 2; i++) {
		op->memory[i] = memory_get(a, op->m.bytes[i]);
		pattern_fill(a->cfg, op->m.user, i ? op->m.bytes[0] : 0, op->memory[i], op->m.bytes[i]);
	}
	*buf = (struct ibvx_sbuf){op->memory[0], op->m.bytes[0], op->memory[1], op->m.bytes[1], op->m.user, NULL};
	return op;
}

/* From here on the library must not look at the memory. */
static void send_poison(struct operation *op)
{
	for (int i = 0; i < 2; i++)
		memset(op->memory[i], 0xdd, op->m.bytes[i]);
}

static void send_ended(struct actor *a, struct operation *op, int err, const struct ibvx_status *s)
{
	if (err)
		traffic_fail(a->cfg, "rank %d: send %llx to rank %d: %s (%s)", a->rank, (unsigned long long)op->m.user, op->m.dst,
			     strerror(-err), ibvx_error());
	if (s && (s->source != op->m.dst || s->tag != op->m.tag || s->context != op->m.context || s->error))
		traffic_fail(a->cfg, "rank %d: send %llx: status has rank %d tag %d context %d error %d", a->rank,
			     (unsigned long long)op->m.user, s->source, s->tag, s->context, s->error);
	if (op->spread.base) {
		memset(op->memory[1], 0xdd, op->m.bytes[1]);
		spread_take(a, &op->spread, op->memory[1], op->m.bytes[1]);
	}
	for (int i = 0; i < 2; i++)
		if (!pattern_holds(a->cfg, op->m.user, i ? op->m.bytes[0] : 0, op->memory[i], op->m.bytes[i]))
			traffic_fail(a->cfg, "rank %d: send %llx: its memory was changed", a->rank, (unsigned long long)op->m.user);
	send_poison(op);
	op_free(op);
	atomic_fetch_add(&a->successes, 1);
}

void op_start_send(struct actor *a)
{
	struct ibvx_sbuf buf;
	struct operation *op = send_prepare(a, &buf);
	int err;

	if (rng_percent(&a->rng, 20))
		err = op_copied_send(a, op);
	else if (ibvx_pin_zero_copy(a->ep, op->m.dst, 0) && rng_percent(&a->rng, 30))
		err = op_zero_copy_send(a, op);
	else
		err = op_spread_isend(a, op, &buf);
	memset(&buf, 0xdd, sizeof(buf)); /* it was copied */
	if (err)
		traffic_fail(a->cfg, "rank %d: isend to rank %d: %s (%s)", a->rank, op->m.dst, strerror(-err), ibvx_error());
	if (!op->m.detach) {
		op_add(a, op);
		return;
	}
	err = ibvx_request_free(a->ep, &op->req);
	if (err || op->req != IBVX_REQ_NULL)
		traffic_fail(a->cfg, "rank %d: request_free: %d, handle %llx", a->rank, err, (unsigned long long)op->req);
	a->kept = realloc(a->kept, (a->kept_count + 3) * sizeof(*a->kept));
	if (!a->kept)
		traffic_fail(a->cfg, "no memory");
	a->kept[a->kept_count++] = op->memory[0];
	a->kept[a->kept_count++] = op->memory[1];
	a->kept[a->kept_count++] = op->spread.base;
	free(op->spread.order);
	free(op);
}

void op_blocking_send(struct actor *a)
{
	struct ibvx_sbuf buf;
	struct operation *op = send_prepare(a, &buf);
	int err;

	atomic_store(&a->doing, op->m.sync ? "ssend" : "send");
	if (rng_percent(&a->rng, 50))
		err = op_pinned_send(a, op);
	else
		err = op_spread_send(a, op, &buf);
	send_ended(a, op, err, NULL);
}

/* --- receives --- */

static bool untouched(const char *p, size_t from, size_t to)
{
	for (size_t i = from; i < to; i++)
		if ((unsigned char)p[i] != CANARY)
			return false;
	return true;
}

static void receive_prepare(struct actor *a, struct operation *op, struct ibvx_rbuf *buf)
{
	op->pinnable = rng_percent(&a->rng, 50);
	op->split = !op->pinnable && rng_percent(&a->rng, 20);
	op->capacity = a->cfg->size_max;
	if (rng_percent(&a->rng, 12))
		op->capacity = (size_t)rng_below(&a->rng, a->cfg->size_max + 1);
	else if (rng_percent(&a->rng, 5))
		op->capacity = 0;
	op->memory[0] = memory_get(a, op->capacity);
	if (op->capacity <= 2 * CANARY_MAX) {
		memset(op->memory[0], CANARY, op->capacity);
	} else {
		memset(op->memory[0], CANARY, CANARY_MAX);
		memset(op->memory[0] + op->capacity - CANARY_MAX, CANARY, CANARY_MAX);
	}
	*buf = (struct ibvx_rbuf){op->memory[0], op->capacity, op->split, NULL};
	if (!op->pinnable && !op->split && spread_draw(a, op->capacity)) {
		spread_init(a, &op->spread, op->capacity);
		buf->base = spread_base(&op->spread);
		buf->layout = op->spread.layout;
	}
}

static void check_status(struct actor *a, const struct ibvx_status *s, int source, int tag, struct message *m)
{
	if (!message_of_user(a->cfg, s->user, m) || m->dst != a->rank || m->round != a->round ||
	    (m->channel != a->channel && !a->cfg->shared))
		traffic_fail(a->cfg, "rank %d channel %d round %d: got %llx, which nobody sent here (source %d tag %d)", a->rank,
			     a->channel, a->round, (unsigned long long)s->user, s->source, s->tag);
	if (s->source != m->src || s->tag != m->tag || s->context != m->context || s->head_bytes != m->bytes[0] ||
	    s->body_bytes != m->bytes[1])
		traffic_fail(a->cfg,
			     "rank %d: message %llx: status has rank %d tag %d context %d, %llu + %llu bytes; "
			     "sent were rank %d tag %d context %d, %zu + %zu bytes",
			     a->rank, (unsigned long long)s->user, s->source, s->tag, s->context, (unsigned long long)s->head_bytes,
			     (unsigned long long)s->body_bytes, m->src, m->tag, m->context, m->bytes[0], m->bytes[1]);
	if ((source != IBVX_ANY_SOURCE && source != m->src) || (tag != IBVX_ANY_TAG && tag != m->tag))
		traffic_fail(a->cfg, "rank %d: asked for rank %d tag %d, got rank %d tag %d", a->rank, source, tag, m->src, m->tag);
}

static void check_truncated(struct actor *a, struct operation *op, int err, const struct ibvx_status *s)
{
	size_t guarded = op->capacity < CANARY_MAX ? op->capacity : CANARY_MAX;

	if (err != -EMSGSIZE || s->body)
		traffic_fail(a->cfg, "rank %d: message %llx of %llu + %llu bytes into %zu: %d, body %p", a->rank,
			     (unsigned long long)s->user, (unsigned long long)s->head_bytes, (unsigned long long)s->body_bytes,
			     op->capacity, err, s->body);
	if (!untouched(op->memory[0], 0, guarded))
		traffic_fail(a->cfg, "rank %d: message %llx was truncated, and the buffer was changed", a->rank,
			     (unsigned long long)s->user);
}

static void check_payload(struct actor *a, struct operation *op, const struct ibvx_status *s)
{
	size_t here = s->head_bytes + (op->split ? 0 : s->body_bytes);
	size_t rest = op->capacity > 2 * CANARY_MAX ? op->capacity - CANARY_MAX : 0;

	if (!pattern_holds(a->cfg, s->user, 0, op->memory[0], here))
		traffic_fail(a->cfg, "rank %d: message %llx (%llu + %llu bytes): wrong bytes", a->rank, (unsigned long long)s->user,
			     (unsigned long long)s->head_bytes, (unsigned long long)s->body_bytes);
	if (!untouched(op->memory[0], here > rest ? here : rest, op->capacity))
		traffic_fail(a->cfg, "rank %d: message %llx: bytes behind its end were changed", a->rank, (unsigned long long)s->user);
	if (op->split && s->body_bytes && (!s->body || !pattern_holds(a->cfg, s->user, s->head_bytes, s->body, s->body_bytes)))
		traffic_fail(a->cfg, "rank %d: message %llx: wrong bytes in the body (%llu bytes at %p)", a->rank,
			     (unsigned long long)s->user, (unsigned long long)s->body_bytes, s->body);
	if (!op->split && s->body)
		traffic_fail(a->cfg, "rank %d: message %llx: a body without split", a->rank, (unsigned long long)s->user);
}

static void receive_ended(struct actor *a, struct operation *op, int err, const struct ibvx_status *s)
{
	struct message m;
	size_t needed;

	if (s->error != err)
		traffic_fail(a->cfg, "rank %d: receive returned %d, status has %d", a->rank, err, s->error);
	if (op->cancelled) {
		if (err != -ECANCELED)
			traffic_fail(a->cfg, "rank %d: cancelled receive ended with %d", a->rank, err);
		op_free(op);
		return;
	}
	if (err && err != -EMSGSIZE)
		traffic_fail(a->cfg, "rank %d: receive (rank %d tag %d): %s (%s)", a->rank, op->source, op->tag, strerror(-err),
			     ibvx_error());
	check_status(a, s, op->source, op->tag, &m);
	if (op->probed && s->user != op->probed_user && !a->cfg->shared)
		traffic_fail(a->cfg, "rank %d: probe reported %llx, the receive got %llx", a->rank, (unsigned long long)op->probed_user,
			     (unsigned long long)s->user);
	needed = m.bytes[0] + (op->split ? 0 : m.bytes[1]);
	if (op->spread.base)
		spread_take(a, &op->spread, op->memory[0], err ? 0 : needed);
	if (needed > op->capacity || err)
		check_truncated(a, op, needed > op->capacity ? err : 0, s);
	else
		check_payload(a, op, s);
	if (atomic_exchange(&a->inbox->seen[(size_t)(m.channel * a->cfg->ranks + m.src) * a->cfg->messages + m.seq], 1))
		traffic_fail(a->cfg, "rank %d: message %llx was received twice", a->rank, (unsigned long long)s->user);
	event_add(a, EVENT_RECEIVE, op->index, op->source, op->tag, s->user);
	ibvx_free(s->body);
	op_free(op);
	atomic_fetch_add(&a->successes, 1);
	atomic_fetch_sub(&a->inbox->remaining, 1);
}

static struct operation *receive_new(struct actor *a, int source, int tag, struct ibvx_rbuf *buf)
{
	struct operation *op = calloc(1, sizeof(*op));

	if (!op)
		traffic_fail(a->cfg, "no memory");
	op->source = source;
	op->tag = tag;
	op->index = a->next_index++;
	receive_prepare(a, op, buf);
	return op;
}

void op_start_receive(struct actor *a, int source, int tag, const uint64_t *expect)
{
	struct ibvx_rbuf buf;
	struct operation *op = receive_new(a, source, tag, &buf);
	int err;

	op->probed = expect != NULL;
	op->probed_user = expect ? *expect : 0;
	if (op->pinnable)
		err = ibvx_pin_irecv(a->ep, &(struct ibvx_want){source, tag, traffic_context(a->cfg, a->channel), op->capacity, 0, 0, NULL},
				     &op->req);
	else
		err = ibvx_irecv(a->ep, &buf, source, tag, traffic_context(a->cfg, a->channel), &op->req);
	ibvx_layout_free(op->spread.layout); /* the request keeps it */
	op->spread.layout = NULL;
	if (err)
		traffic_fail(a->cfg, "rank %d: irecv: %s (%s)", a->rank, strerror(-err), ibvx_error());
	op_add(a, op);
}

void op_blocking_receive(struct actor *a, int source, int tag)
{
	struct ibvx_rbuf buf;
	struct operation *op = receive_new(a, source, tag, &buf);
	struct ibvx_status s = {0};
	int err;

	atomic_store(&a->doing, "recv");
	if (op->pinnable)
		err = op_heap_receive(a, op, PIN_RECV, NULL, &s);
	else
		err = ibvx_recv(a->ep, &buf, source, tag, traffic_context(a->cfg, a->channel), &s);
	receive_ended(a, op, err, &s);
}

/* --- probes --- */

void op_matched(struct actor *a, int source, int tag, bool blocking)
{
	struct ibvx_status s = {0};
	struct ibvx_rbuf buf;
	struct operation *op;
	ibvx_req message = IBVX_REQ_NULL;
	struct message m;
	int err = ibvx_improbe(a->ep, source, tag, traffic_context(a->cfg, a->channel), &message, &s);

	if (err < 0)
		traffic_fail(a->cfg, "rank %d: improbe: %s (%s)", a->rank, strerror(-err), ibvx_error());
	if (!err)
		return;
	check_status(a, &s, source, tag, &m);
	op = receive_new(a, source, tag, &buf);
	op->probed = true;
	op->probed_user = s.user;
	if (blocking) {
		/* its payload comes without our doing anything else */
		atomic_store(&a->doing, "mrecv");
		if (op->pinnable)
			err = op_heap_receive(a, op, PIN_MRECV, &message, &s);
		else
			err = ibvx_mrecv(a->ep, &message, &buf, &s);
		if (message != IBVX_REQ_NULL)
			traffic_fail(a->cfg, "rank %d: mrecv left the handle", a->rank);
		receive_ended(a, op, err, &s);
		return;
	}
	if (op->pinnable)
		err = ibvx_pin_imrecv(a->ep, &message, &(struct ibvx_want){.capacity_bytes = op->capacity}, &op->req);
	else
		err = ibvx_imrecv(a->ep, &message, &buf, &op->req);
	if (err || message != IBVX_REQ_NULL)
		traffic_fail(a->cfg, "rank %d: imrecv: %d (%s)", a->rank, err, ibvx_error());
	op_add(a, op);
}

bool op_probe(struct actor *a, int source, int tag, bool blocking)
{
	int context = traffic_context(a->cfg, a->channel), found;
	struct ibvx_status s = {0};
	struct message m;

	if (blocking) {
		atomic_store(&a->doing, "probe");
		found = ibvx_probe(a->ep, source, tag, context, &s);
		found = found < 0 ? found : 1;
	} else {
		found = ibvx_iprobe(a->ep, source, tag, context, &s);
	}
	if (found < 0)
		traffic_fail(a->cfg, "rank %d: probe: %s (%s)", a->rank, strerror(-found), ibvx_error());
	if (!found)
		return false;
	check_status(a, &s, source, tag, &m);
	event_add(a, EVENT_PROBE, a->next_index++, source, tag, s.user);
	/* either the same arguments or the exact ones must now bring this very message */
	if (rng_percent(&a->rng, 50))
		op_start_receive(a, source, tag, &s.user);
	else if (rng_percent(&a->rng, 50) && s.tag != IBVX_ANY_TAG)
		op_start_receive(a, s.source, s.tag, &s.user);
	return true;
}

/* --- completion --- */

static void op_ended(struct actor *a, unsigned i, int err, const struct ibvx_status *s)
{
	struct operation *op = a->ops[i];

	if (op->req != IBVX_REQ_NULL)
		traffic_fail(a->cfg, "rank %d: a complete request kept its handle", a->rank);
	op_remove(a, i);
	if (op->send)
		send_ended(a, op, err, s);
	else
		receive_ended(a, op, err, s);
}

bool op_test(struct actor *a, unsigned i)
{
	struct ibvx_status s = {0};
	ibvx_req before = a->ops[i]->req;
	int ret =
		a->ops[i]->pinnable ? op_heap_receive(a, a->ops[i], PIN_TEST, &a->ops[i]->req, &s) : ibvx_test(a->ep, &a->ops[i]->req, &s);

	if (ret == 0) {
		if (a->ops[i]->req != before)
			traffic_fail(a->cfg, "rank %d: test changed the handle of an open request", a->rank);
		return false;
	}
	op_ended(a, i, ret < 0 ? ret : 0, &s);
	return true;
}

void op_wait(struct actor *a, unsigned i)
{
	struct ibvx_status s = {0};
	int err;

	atomic_store(&a->doing, a->ops[i]->send ? "wait for a send" : "wait for a receive");
	if (a->ops[i]->pinnable)
		err = op_heap_receive(a, a->ops[i], PIN_WAIT, &a->ops[i]->req, &s);
	else
		err = ibvx_wait(a->ep, &a->ops[i]->req, &s);
	op_ended(a, i, err, &s);
}

void op_waitany(struct actor *a)
{
	ibvx_req reqs[TRAFFIC_OPS_MAX];
	struct ibvx_status s = {0};
	bool heap = false;
	int i;

	for (unsigned k = 0; k < a->op_count; k++) {
		reqs[k] = a->ops[k]->req;
		heap |= a->ops[k]->pinnable;
	}
	atomic_store(&a->doing, "waitany");
	if (heap) { /* the call that consumes names the memory */
		i = ibvx_pin_any(a->ep, (int)a->op_count, reqs);
		if (i < 0 || (unsigned)i >= a->op_count)
			traffic_fail(a->cfg, "rank %d: any of %u: %d (%s)", a->rank, a->op_count, i, ibvx_error());
		if (!op_test(a, (unsigned)i))
			traffic_fail(a->cfg, "rank %d: any gave a request that is not complete", a->rank);
		return;
	}
	i = ibvx_waitany(a->ep, (int)a->op_count, reqs, &s);
	if (i < 0 || (unsigned)i >= a->op_count)
		traffic_fail(a->cfg, "rank %d: waitany of %u: %d (%s)", a->rank, a->op_count, i, ibvx_error());
	a->ops[i]->req = reqs[i];
	op_ended(a, (unsigned)i, s.error, &s);
}

void op_peek(struct actor *a)
{
	ibvx_req req = IBVX_REQ_NULL;
	int err;

	atomic_store(&a->doing, "peek");
	err = ibvx_peek(a->ep, &req);
	for (unsigned i = 0; !err && i < a->op_count; i++) {
		if (a->ops[i]->req != req)
			continue;
		if (!op_test(a, i))
			traffic_fail(a->cfg, "rank %d: peek gave a request that is not complete", a->rank);
		return;
	}
	traffic_fail(a->cfg, "rank %d: peek: %d, handle %llx (%s)", a->rank, err, (unsigned long long)req, ibvx_error());
}

void op_cancel(struct actor *a, unsigned i, bool must)
{
	struct operation *op = a->ops[i];
	int err = ibvx_cancel(a->ep, op->req);

	if (op->send ? err != -EOPNOTSUPP : err != 0 && (err != -EBUSY || must))
		traffic_fail(a->cfg, "rank %d: cancel of a %s: %d (%s)", a->rank, op->send ? "send" : "receive", err, ibvx_error());
	if (err)
		return;
	if (op->probed && !a->cfg->shared)
		traffic_fail(a->cfg, "rank %d: cancelled a receive whose message was there", a->rank);
	op->cancelled = true;
	if (!op_test(a, i))
		traffic_fail(a->cfg, "rank %d: a cancelled receive is not complete", a->rank);
}
