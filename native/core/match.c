/* SPDX-License-Identifier: MIT */
#include "core/match.h"

#include "base/pool.h"
#include "core/peer.h"
#include "core/waiter.h"

/* So many posted receives with one envelope need no tables; moving them there takes some microseconds. */
#define MATCH_RUN_MAX 128u

static enum match_class match_class_of_receive(int source, int tag)
{
	return match_class_of(source == IBVX_ANY_SOURCE, tag == IBVX_ANY_TAG);
}

/* The tables of wildcard classes are filled when the first wildcard of that class is used. */
static void match_index(struct ibvx *ep, enum match_class c)
{
	ep->unexpected_used[c] = true;
	for (struct list *l = ep->arrivals.next; l != &ep->arrivals; l = l->next) {
		struct umsg *u = LIST_ITEM(l, struct umsg, link);

		match_append(&ep->unexpected[c], &u->node[c], match_key_of(c, u->context, u->peer->rank, u->tag), u->node[0].order);
	}
}

void match_store(struct ibvx *ep, struct umsg *u)
{
	uint64_t order = ep->order++;

	for (int c = 0; c < MATCH_CLASSES; c++) {
		if (!ep->unexpected_used[c])
			continue;
		match_append(&ep->unexpected[c], &u->node[c], match_key_of((enum match_class)c, u->context, u->peer->rank, u->tag), order);
	}
	list_append(&ep->arrivals, &u->link);
	ep->unexpected_count++;
	u->peer->unexpected_in++;
	waiter_on_message(ep);
}

struct umsg *match_peek(struct ibvx *ep, int source, int tag, int context)
{
	enum match_class c = match_class_of_receive(source, tag);
	struct match_node *n;

	if (list_empty(&ep->arrivals))
		return NULL;
	if (!ep->unexpected_used[c])
		match_index(ep, c);
	n = match_first(&ep->unexpected[c], match_key_of(c, context, source, tag));
	return n ? LIST_ITEM(n - c, struct umsg, node) : NULL;
}

void match_extract(struct ibvx *ep, struct umsg *u)
{
	for (int c = 0; c < MATCH_CLASSES; c++) {
		if (ep->unexpected_used[c])
			match_remove(&ep->unexpected[c], &u->node[c]);
	}
	list_remove(&u->link);
	ep->unexpected_count--;
}

void match_interest(struct ibvx *ep, int source, int by)
{
	if (source == IBVX_ANY_SOURCE)
		ep->interest_any += by;
	else
		ep->peers[source].interest += by;
}

/* Puts a receive into the table of its class, behind all that were filed before. */
static void match_file(struct ibvx *ep, struct request *r)
{
	enum match_class c = match_class_of_receive(r->source, r->tag);

	match_append(&ep->posted[c], &r->node, match_key_of(c, r->context, r->source, r->tag), ep->order++);
	ep->posted_count++;
}

/* May r stand behind the posted receives of the run? */
static bool match_in_run(const struct ibvx *ep, const struct request *r)
{
	const struct request *first = LIST_ITEM(ep->run.next, struct request, link);

	return first->context == r->context && first->source == r->source && first->tag == r->tag && ep->run_count < MATCH_RUN_MAX;
}

static void match_file_run(struct ibvx *ep)
{
	while (!list_empty(&ep->run)) {
		struct request *r = LIST_ITEM(ep->run.next, struct request, link);

		list_remove(&r->link);
		match_file(ep, r);
	}
	ep->run_count = 0;
}

void match_post(struct ibvx *ep, struct request *r)
{
	match_interest(ep, r->source, 1);
	if (ep->posted_count == 0 && (list_empty(&ep->run) || match_in_run(ep, r))) {
		list_append(&ep->run, &r->link);
		ep->run_count++;
	} else {
		match_file_run(ep);
		match_file(ep, r);
	}
}

void match_unpost(struct ibvx *ep, struct request *r)
{
	if (r->node.next) {
		match_remove(&ep->posted[match_class_of_receive(r->source, r->tag)], &r->node);
		ep->posted_count--;
	} else if (!list_empty(&r->link)) {
		list_remove(&r->link);
		ep->run_count--;
	} else {
		return;
	}
	match_interest(ep, r->source, -1);
}

static bool match_fits(const struct request *r, int rank, int context, int tag)
{
	return r->context == context && (r->source == rank || r->source == IBVX_ANY_SOURCE) && (r->tag == tag || r->tag == IBVX_ANY_TAG);
}

/* The direct receive becomes a request that has matched. */
static struct request *direct_recv_to_request(struct ibvx *ep)
{
	struct direct_recv *d = ep->direct;
	struct request *r = receive_new(ep, &d->args);

	if (!r)
		return NULL;
	r->blocking = true;
	d->request = r;
	ep->direct = NULL;
	return r;
}

struct request *match_arrival(struct ibvx *ep, struct peer *p, int context, int tag)
{
	struct match_node *best = NULL;

	if (ep->direct) /* and nothing posted */
		return direct_recv_matches(&ep->direct->args, p->rank, context, tag) ? direct_recv_to_request(ep) : NULL;
	if (!list_empty(&ep->run)) { /* and nothing in the tables */
		struct request *r = LIST_ITEM(ep->run.next, struct request, link);

		if (!match_fits(r, p->rank, context, tag))
			return NULL;
		list_remove(&r->link);
		ep->run_count--;
		match_interest(ep, r->source, -1);
		return r;
	}
	if (ep->posted_count == 0)
		return NULL;
	for (int c = 0; c < MATCH_CLASSES; c++) {
		struct match_node *n;

		if (!ep->posted[c].entry_count)
			continue;
		n = match_first(&ep->posted[c], match_key_of((enum match_class)c, context, p->rank, tag));
		if (n && (!best || n->order < best->order))
			best = n;
	}
	if (!best)
		return NULL;
	match_unpost(ep, LIST_ITEM(best, struct request, node));
	return LIST_ITEM(best, struct request, node);
}

int envelope_accept_slow(struct request *r, const struct envelope *e)
{
	if ((e->user ^ r->want) & r->want_mask)
		return -EPROTOTYPE;
	return buffer_accept(&r->buffer);
}

/* An unexpected message with room for `room` bytes of payload. Without memory for the payload the
 * envelope is kept alone, so that its receive fails and order holds. */
struct umsg *umsg_new(struct peer *p, const struct wire_hdr *hdr, const struct envelope *e, size_t room)
{
	struct umsg *u = pool_get(sizeof(*u) + room);
	bool lost = false;

	if (!u) {
		lost = true;
		u = pool_get(sizeof(*u));
	}
	if (!u) {
		peer_broken(p, "no memory for the envelope of a message of %zu bytes", e->head + e->body);
		return NULL;
	}
	u->peer = p;
	u->context = hdr->msg.context;
	u->tag = e->tag;
	u->user = e->user;
	u->bytes[0] = e->head;
	u->bytes[1] = e->body;
	u->at = 0;
	u->cost = 0;
	u->id = e->id;
	u->sync = hdr->flags & WIRE_SYNC;
	u->rts = false;
	u->leasable = false;
	u->lost = lost;
	u->rkey_bytes = 0;
	return u;
}
