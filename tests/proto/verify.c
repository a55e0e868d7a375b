/* SPDX-License-Identifier: MIT */
#include "traffic.h"

#include <stdlib.h>
#include <string.h>

/*
 * The reference matcher.  MPI's rules give each arriving message to the earliest posted receive that fits,
 * and each receive the earliest arrived message that fits.  Receives stand in the order of their calls; messages of
 * one sender in the order of theirs; how the senders' streams were interleaved is unknown.
 *
 * Given which receive got which message: if receive r got m', and m fits r but went to a later receive, then m' must have
 * arrived before m.  The outcome is legal if and only if all these demands, together with each sender's own order,
 * can be met at once, that is, if the graph of "arrived before" has no cycle.  (For a fixed interleaving the
 * outcome is unique, because both sides rank their partners by one common order.)
 */

#define NOBODY UINT32_MAX

struct node {
	struct message m;
	unsigned taken_at; /* index of the receive that got it */
	unsigned indegree;
	unsigned first_edge;
};

struct edge {
	unsigned to, next;
};

struct graph {
	const struct actor *a;
	struct node *nodes; /* by sender, then in the sender's order */
	unsigned node_count;
	unsigned *start; /* [ranks + 1]: the first node of each sender */
	struct edge *edges;
	unsigned edge_count, edge_room;
};

static bool fits(const struct event *e, const struct message *m)
{
	return (e->source == IBVX_ANY_SOURCE || e->source == m->src) && (e->tag == IBVX_ANY_TAG || e->tag == m->tag);
}

static void edge_add(struct graph *g, unsigned from, unsigned to)
{
	if (g->edge_count == g->edge_room) {
		g->edge_room = g->edge_room ? 2 * g->edge_room : 256;
		g->edges = realloc(g->edges, g->edge_room * sizeof(*g->edges));
		if (!g->edges)
			traffic_fail(g->a->cfg, "no memory for the reference matcher");
	}
	g->edges[g->edge_count] = (struct edge){to, g->nodes[from].first_edge};
	g->nodes[from].first_edge = g->edge_count++;
	g->nodes[to].indegree++;
}

static void nodes_build(struct graph *g)
{
	const struct traffic_config *cfg = g->a->cfg;
	size_t most = (size_t)cfg->ranks * cfg->messages;

	g->nodes = calloc(most + 1, sizeof(*g->nodes));
	g->start = calloc((size_t)cfg->ranks + 1, sizeof(*g->start));
	if (!g->nodes || !g->start)
		traffic_fail(cfg, "no memory for the reference matcher");
	for (int src = 0; src < cfg->ranks; src++) {
		g->start[src] = g->node_count;
		for (unsigned seq = 0; seq < cfg->messages; seq++) {
			struct node *n = &g->nodes[g->node_count];

			message_make(cfg, src, g->a->channel, g->a->round, seq, &n->m);
			n->first_edge = NOBODY;
			n->taken_at = NOBODY;
			if (n->m.dst == g->a->rank)
				g->node_count++;
		}
	}
	g->start[cfg->ranks] = g->node_count;
}

static unsigned node_find(const struct graph *g, uint64_t user)
{
	unsigned src = (unsigned)(user >> 56), low = g->start[src], high = g->start[src + 1];

	while (low < high) {
		unsigned mid = low + (high - low) / 2;

		if (g->nodes[mid].m.user < user)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static void demands_build(struct graph *g)
{
	const struct actor *a = g->a;

	for (unsigned i = 0; i < a->event_count; i++)
		if (a->events[i].kind == EVENT_RECEIVE)
			g->nodes[node_find(g, a->events[i].user)].taken_at = a->events[i].index;
	for (unsigned i = 0; i < a->event_count; i++) {
		const struct event *e = &a->events[i];
		unsigned got = node_find(g, e->user);

		if (e->kind == EVENT_PROBE && g->nodes[got].taken_at < e->index)
			traffic_fail(a->cfg, "rank %d: probe %u showed %llx, which receive %u had got before", a->rank, e->index,
				     (unsigned long long)e->user, g->nodes[got].taken_at);
		for (int src = 0; src < a->cfg->ranks; src++) {
			/* the first one is enough: the others of this sender follow it */
			for (unsigned n = g->start[src]; n < g->start[src + 1]; n++) {
				if (n == got || g->nodes[n].taken_at <= e->index || !fits(e, &g->nodes[n].m))
					continue;
				if (src == g->nodes[got].m.src && n < got)
					traffic_fail(a->cfg,
						     "rank %d: %s %u (rank %d tag %d) got %llx, overtaking "
						     "%llx, which went to receive %u",
						     a->rank, e->kind == EVENT_PROBE ? "probe" : "receive", e->index, e->source, e->tag,
						     (unsigned long long)e->user, (unsigned long long)g->nodes[n].m.user,
						     g->nodes[n].taken_at);
				edge_add(g, got, n);
				break;
			}
		}
	}
	for (int src = 0; src < a->cfg->ranks; src++)
		for (unsigned n = g->start[src]; n + 1 < g->start[src + 1]; n++)
			edge_add(g, n, n + 1);
}

/* Kahn: takes nodes that nothing must precede until none is left. */
static void order_check(struct graph *g)
{
	unsigned *ready = malloc(((size_t)g->node_count + 1) * sizeof(*ready)), count = 0, done = 0;

	if (!ready)
		traffic_fail(g->a->cfg, "no memory for the reference matcher");
	for (unsigned n = 0; n < g->node_count; n++)
		if (!g->nodes[n].indegree)
			ready[count++] = n;
	while (count) {
		unsigned n = ready[--count];

		done++;
		for (unsigned e = g->nodes[n].first_edge; e != NOBODY; e = g->edges[e].next)
			if (--g->nodes[g->edges[e].to].indegree == 0)
				ready[count++] = g->edges[e].to;
	}
	free(ready);
	if (done != g->node_count)
		traffic_fail(g->a->cfg,
			     "rank %d channel %d round %d: no order of arrival explains which receive got what (%u of %u "
			     "messages lie on a cycle)",
			     g->a->rank, g->a->channel, g->a->round, g->node_count - done, g->node_count);
}

void verify_exact(const struct actor *a)
{
	struct graph g = {.a = a};

	nodes_build(&g);
	demands_build(&g);
	order_check(&g);
	free(g.nodes);
	free(g.start);
	free(g.edges);
}

void verify_pairwise(const struct actor *a)
{
	for (unsigned i = 0; i < a->event_count; i++)
		for (unsigned k = 0; k < a->event_count; k++) {
			const struct event *first = &a->events[i], *second = &a->events[k];
			struct message late, early;

			if (first->kind != EVENT_RECEIVE || second->kind != EVENT_RECEIVE || first->index >= second->index ||
			    first->user >> 48 != second->user >> 48 || first->user < second->user)
				continue;
			message_of_user(a->cfg, first->user, &late);
			message_of_user(a->cfg, second->user, &early);
			if (fits(first, &early))
				traffic_fail(a->cfg,
					     "rank %d: receive %u got %llx, overtaking %llx, which went to "
					     "receive %u",
					     a->rank, first->index, (unsigned long long)late.user, (unsigned long long)early.user,
					     second->index);
		}
}
