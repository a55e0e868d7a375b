/* SPDX-License-Identifier: MIT */
/*
 * simulate: the protocol engine of the bootstrap (tree.h) with thousands of ranks in one process, over connections in
 * memory, with faults by seed.
 *
 *   bootstrap-simulate [--ranks N] [--per-node N] [--scenario NAME] [--seeds N] [SEED]
 *
 * The same seed gives the same run.  A failure prints its seed and the arguments that repeat it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "bootstrap/gather.h"
#include "bootstrap/tree.h"

#define MS INT64_C(1000000)
#define ATTACH_PORT_BASE 1000
#define RECORD_BYTES 24u
#define LISTENERS MESSAGE_PURPOSE_COUNT

enum scenario {
	NORMAL,       /* start, allgather, everybody leaves when it likes, rank 0 last */
	LATE,         /* some ranks begin up to two seconds later */
	DIE_START,    /* one rank dies in the n-th event of its start */
	SILENT_START, /* one rank stands still from its n-th event on */
	CUT_START,    /* a connection breaks in the start */
	DIE_ONE,      /* one rank dies after the start */
	DIE_TWO,      /* two die, one soon after the other */
	DIE_NODE,     /* all ranks of a node die at once */
	DIE_LEADERS,  /* a quarter of the leaders die at once */
	DIE_MANY,     /* a tenth of all ranks die within two seconds */
	LEAVE_DIE,    /* most leave, one dies meanwhile */
	REPORTED,     /* a rank is seen dead by another; it lives, or it has left in good order */
	SCENARIO_COUNT
};
static const char *const scenario_names[SCENARIO_COUNT] = {"normal",  "late",     "die-start",   "silent-start", "cut-start", "die-one",
							   "die-two", "die-node", "die-leaders", "die-many",     "leave-die", "reported"};

enum event_kind { EVENT_FRAME, EVENT_DOWN, EVENT_CONNECTED, EVENT_ARRIVE, EVENT_TIMER, EVENT_APP, EVENT_KILL, EVENT_LEAVE, EVENT_REPORT };

struct event {
	int64_t at;
	uint64_t order;
	enum event_kind kind;
	int rank;
	int conn, side; /* FRAME, DOWN: the side that receives */
	int err;
	struct frame *frame;
};

struct conn {
	int rank[2], link[2]; /* link -1: closed, or not accepted yet */
	int64_t last[2];      /* when the last event towards this side is due */
	bool down[2];         /* the end was sent towards this side */
	bool cut;
	enum message_purpose purpose;
};

struct waiting {
	struct waiting *next;
	struct event event;
};

struct rank {
	struct tree *t;
	int *conn_of; /* by link */
	int conn_room;
	bool listens[LISTENERS];
	bool dead, frozen, started, watched, left, done, calls;
	int gathers;
	int64_t timer;
	struct waiting *held, **held_end; /* events that came while the program was elsewhere */
	struct waiting *backlog[LISTENERS], **backlog_end[LISTENERS];
	int events;
	int64_t failed_at;
	char text[512];
	uint8_t *heard; /* by rank: 1 lost, 2 left; +4 twice */
	int first_lost;
	int64_t heard_last;
};

static struct sim {
	uint64_t seed, random, order;
	int ranks, per_node;
	enum scenario scenario;
	int64_t now;
	struct rank *rank;
	struct conn *conns;
	int conn_count, conn_room;
	struct event *heap;
	size_t heap_count, heap_room;
	int victim, victim_event;
	int64_t died_at;
	bool shown;
	uint64_t frames, bytes, root_bytes;
	int finished;
} sim;

static void sim_fail(const char *format, int a, int b, const char *text)
{
	fprintf(stderr, "simulation failed: ");
	fprintf(stderr, format, a, b);
	fprintf(stderr, "%s%s\nrepeat it: bootstrap-simulate --ranks %d --per-node %d --scenario %s --seeds 1 %llu\n", *text ? ": " : "",
		text, sim.ranks, sim.per_node, scenario_names[sim.scenario], (unsigned long long)sim.seed);
	exit(1);
}

static uint64_t sim_random(void)
{
	uint64_t z = (sim.random += 0x9e3779b97f4a7c15u); /* splitmix64 */

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

static int64_t sim_below(int64_t limit)
{
	return limit > 0 ? (int64_t)(sim_random() % (uint64_t)limit) : 0;
}

static bool sim_before(const struct event *a, const struct event *b)
{
	return a->at < b->at || (a->at == b->at && a->order < b->order);
}

static void sim_post(struct event e)
{
	size_t i;

	if (sim.heap_count == sim.heap_room) {
		sim.heap_room = sim.heap_room ? 2 * sim.heap_room : 1024;
		sim.heap = realloc(sim.heap, sim.heap_room * sizeof(*sim.heap));
		if (!sim.heap)
			abort();
	}
	e.order = sim.order++;
	for (i = sim.heap_count++; i > 0 && sim_before(&e, &sim.heap[(i - 1) / 2]); i = (i - 1) / 2)
		sim.heap[i] = sim.heap[(i - 1) / 2];
	sim.heap[i] = e;
}

static struct event sim_pop(void)
{
	struct event first = sim.heap[0], last = sim.heap[--sim.heap_count];
	size_t i = 0;

	for (;;) {
		size_t child = 2 * i + 1;

		if (child >= sim.heap_count)
			break;
		if (child + 1 < sim.heap_count && sim_before(&sim.heap[child + 1], &sim.heap[child]))
			child++;
		if (!sim_before(&sim.heap[child], &last))
			break;
		sim.heap[i] = sim.heap[child];
		i = child;
	}
	sim.heap[i] = last;
	return first;
}

/* Connections */

static int64_t conn_due(struct conn *c, int side)
{
	int64_t at = sim.now + 20000 + sim_below(100000);

	if (c->last[side] > at)
		at = c->last[side];
	c->last[side] = at;
	return at;
}

/* The other end of what `side` was learns that it is gone. */
static void conn_end(int conn, int side, int err)
{
	struct conn *c = &sim.conns[conn];

	if (c->down[!side])
		return;
	c->down[!side] = true;
	sim_post((struct event){
		.at = conn_due(c, !side), .kind = EVENT_DOWN, .rank = c->rank[!side], .conn = conn, .side = !side, .err = err});
}

static void rank_bind(struct rank *r, int link, int conn)
{
	if (link >= r->conn_room) {
		int room = 2 * link + 8;

		r->conn_of = realloc(r->conn_of, (size_t)room * sizeof(int));
		if (!r->conn_of)
			abort();
		for (int i = r->conn_room; i < room; i++)
			r->conn_of[i] = -1;
		r->conn_room = room;
	}
	r->conn_of[link] = conn;
}

/* struct tree_net; the argument is the rank's number */

static int rank_number(const void *net)
{
	return (int)((const struct rank *)net - sim.rank);
}

static int conn_side(const struct conn *c, int rank, int link)
{
	return c->rank[0] == rank && c->link[0] == link ? 0 : 1;
}

static int find_local(int rank)
{
	int first = rank / sim.per_node * sim.per_node;

	for (int r = first; r < first + sim.per_node && r < sim.ranks; r++)
		if (sim.rank[r].listens[MESSAGE_LOCAL] && !sim.rank[r].dead)
			return r;
	return -1;
}

static int sim_net_connect(void *net, int link, enum message_purpose purpose, int index, const struct message_address *address)
{
	int rank = rank_number(net), to = 0, conn;
	bool refused;

	(void)index;
	if (purpose == MESSAGE_LOCAL)
		to = find_local(rank);
	else if (purpose == MESSAGE_ATTACH)
		to = (int)address->port - ATTACH_PORT_BASE;
	if (to < 0)
		return -ECONNREFUSED;
	refused = sim.rank[to].dead || !sim.rank[to].listens[purpose];
	if (sim.conn_count == sim.conn_room) {
		sim.conn_room = sim.conn_room ? 2 * sim.conn_room : 256;
		sim.conns = realloc(sim.conns, (size_t)sim.conn_room * sizeof(*sim.conns));
		if (!sim.conns)
			abort();
	}
	conn = sim.conn_count++;
	sim.conns[conn] = (struct conn){.rank = {rank, to}, .link = {link, -1}, .purpose = purpose};
	rank_bind(net, link, conn);
	sim_post((struct event){.at = conn_due(&sim.conns[conn], 0),
				.kind = refused ? EVENT_DOWN : EVENT_CONNECTED,
				.rank = rank,
				.conn = conn,
				.side = 0,
				.err = -ECONNREFUSED});
	if (!refused)
		sim_post((struct event){.at = conn_due(&sim.conns[conn], 1), .kind = EVENT_ARRIVE, .rank = to, .conn = conn, .side = 1});
	else
		sim.conns[conn].down[0] = sim.conns[conn].down[1] = true;
	return 0;
}

static void sim_net_send(void *net, int link, struct frame *frame)
{
	int rank = rank_number(net), conn = sim.rank[rank].conn_of[link];
	struct conn *c = &sim.conns[conn];
	int side = conn_side(c, rank, link);

	sim.frames++;
	sim.bytes += 8 + frame->len;
	sim.root_bytes += rank == 0 ? 8 + frame->len : 0;
	if (c->down[!side])
		return;
	sim_post((struct event){.at = conn_due(c, !side),
				.kind = EVENT_FRAME,
				.rank = c->rank[!side],
				.conn = conn,
				.side = !side,
				.frame = frame_ref(frame)});
}

static void sim_net_finish(void *net, int link)
{
	int rank = rank_number(net), conn = sim.rank[rank].conn_of[link];

	conn_end(conn, conn_side(&sim.conns[conn], rank, link), -ECONNRESET);
}

static void sim_net_close(void *net, int link)
{
	int rank = rank_number(net), conn = sim.rank[rank].conn_of[link];
	int side = conn_side(&sim.conns[conn], rank, link);

	conn_end(conn, side, -ECONNRESET);
	sim.conns[conn].link[side] = -1;
	sim.rank[rank].conn_of[link] = -1;
}

static void reset_waiting(struct waiting *w)
{
	while (w) {
		struct waiting *next = w->next;

		if (w->event.kind == EVENT_ARRIVE)
			conn_end(w->event.conn, 1, -ECONNRESET);
		frame_unref(w->event.frame);
		free(w);
		w = next;
	}
}

static int sim_net_listen(void *net, enum message_purpose purpose, bool loopback)
{
	int rank = rank_number(net);

	(void)loopback;
	if (purpose == MESSAGE_LOCAL && find_local(rank) >= 0)
		return find_local(rank) == rank ? 0 : -EADDRINUSE;
	sim.rank[rank].listens[purpose] = true;
	return purpose == MESSAGE_LOCAL ? 0 : ATTACH_PORT_BASE + rank;
}

static void sim_net_unlisten(void *net, enum message_purpose purpose)
{
	struct rank *r = net;
	struct waiting *w = r->backlog[purpose];

	r->listens[purpose] = false;
	r->backlog[purpose] = NULL;
	r->backlog_end[purpose] = &r->backlog[purpose];
	reset_waiting(w);
}

static int sim_net_random(void *net, void *out, size_t len)
{
	(void)net;
	for (size_t i = 0; i < len; i++)
		((uint8_t *)out)[i] = (uint8_t)sim_random();
	return 0;
}

static const struct tree_net sim_net = {
	.connect = sim_net_connect,
	.send = sim_net_send,
	.close = sim_net_close,
	.finish = sim_net_finish,
	.listen = sim_net_listen,
	.unlisten = sim_net_unlisten,
	.random = sim_net_random,
};

/* What a program hears */

static void hear(struct rank *r, int rank, int what)
{
	if (r->heard[rank])
		sim_fail("rank %d heard twice of rank %d", rank_number(r), rank, "");
	r->heard[rank] = (uint8_t)what;
	r->heard_last = sim.now;
}

static void on_lost(void *arg, int rank, const char *why)
{
	struct rank *r = arg;

	(void)why;
	hear(r, rank, 1);
	if (r->first_lost < 0)
		r->first_lost = rank;
}

static void on_left(void *arg, int rank)
{
	hear(arg, rank, 2);
}

static void record_of(int rank, uint8_t out[RECORD_BYTES])
{
	memset(out, rank * 7 + 1, RECORD_BYTES);
	memcpy(out, &rank, sizeof(rank));
}

static void check_gathered(struct rank *r)
{
	static uint32_t *lengths;
	static uint8_t *out;
	uint8_t expected[RECORD_BYTES];
	const struct frame *f = tree_gathered(r->t);
	size_t room = (size_t)sim.ranks * RECORD_BYTES;

	lengths = realloc(lengths, (size_t)sim.ranks * sizeof(*lengths));
	out = realloc(out, room);
	if (!lengths || !out || !f)
		sim_fail("rank %d has no result of allgather %d", rank_number(r), r->gathers, "");
	if (gather_unpack(frame_body(f), f->len, sim.ranks, (uint32_t)r->gathers, out, room, lengths) < 0)
		sim_fail("rank %d: allgather %d", rank_number(r), r->gathers, error_text());
	if (rank_number(r) % 37)
		return; /* the bytes are the same block for all; a few look at each of them */
	for (int i = 0; i < sim.ranks; i++) {
		record_of(i, expected);
		if (lengths[i] != (r->gathers == 1 ? RECORD_BYTES : 0) ||
		    (r->gathers == 1 && memcmp(out + (size_t)i * RECORD_BYTES, expected, RECORD_BYTES) != 0))
			sim_fail("rank %d got something else of rank %d", rank_number(r), i, "");
	}
}

static bool receptive(const struct rank *r)
{
	enum tree_state s = r->t ? tree_state(r->t) : TREE_NEW;

	return !r->frozen && (tree_busy(r->t) || s == TREE_WATCHED);
}

static void set_timer(struct rank *r)
{
	int64_t next = r->t ? tree_next(r->t) : INT64_MAX;

	if (next == INT64_MAX || r->dead || !receptive(r) || (r->timer && r->timer <= next && r->timer >= sim.now))
		return;
	r->timer = next > sim.now ? next : sim.now + 1000;
	sim_post((struct event){.at = r->timer, .kind = EVENT_TIMER, .rank = rank_number(r)});
}

static void rank_end(struct rank *r, bool killed)
{
	struct waiting *held = r->held;

	if (killed && r->t)
		for (int i = 0; i < r->conn_room; i++)
			if (r->conn_of[i] >= 0)
				conn_end(r->conn_of[i], conn_side(&sim.conns[r->conn_of[i]], rank_number(r), i), -ECONNRESET);
	for (int p = 0; p < LISTENERS; p++)
		sim_net_unlisten(r, (enum message_purpose)p);
	r->dead = true;
	r->held = NULL;
	r->held_end = &r->held;
	reset_waiting(held);
	tree_free(r->t);
	r->t = NULL;
}

/* The call of the program is over: what comes next? */
static void rank_step(struct rank *r)
{
	enum tree_state s;

	if (r->dead || !r->t || tree_busy(r->t))
		return;
	s = tree_state(r->t);
	if (s == TREE_FAILED && !r->done) {
		r->done = true;
		r->failed_at = sim.now;
		tree_error(r->t);
		snprintf(r->text, sizeof(r->text), "%s", error_text());
		rank_end(r, true);
	} else if (s == TREE_LEFT && !r->left) {
		r->left = true;
		rank_end(r, true);
	} else if (s == TREE_JOINED && !r->calls) {
		r->calls = true; /* the next call of the program is under way */
		if (r->gathers)
			check_gathered(r);
		sim_post((struct event){.at = sim.now + sim_below(300000), .kind = EVENT_APP, .rank = rank_number(r)});
	}
}

static void rank_app(struct rank *r)
{
	static const uint8_t nothing[1];
	uint8_t record[RECORD_BYTES];
	struct bootstrap_events events = {.arg = r, .lost = on_lost, .left = on_left};

	r->calls = false;
	if (!r->started) {
		r->started = true;
		tree_start(r->t, sim.now);
	} else if (r->gathers < 2) {
		record_of(rank_number(r), record);
		r->gathers++;
		tree_gather(r->t, r->gathers == 1 ? record : nothing, r->gathers == 1 ? RECORD_BYTES : 0, sim.now);
	} else if (tree_state(r->t) == TREE_JOINED) {
		tree_watch(r->t, &events);
		r->watched = true;
		sim.finished++;
	}
}

static void handle(struct event *e);

static void release_held(struct rank *r)
{
	while (r->held && !r->dead && receptive(r)) {
		struct waiting *w = r->held;

		r->held = w->next;
		if (!r->held)
			r->held_end = &r->held;
		handle(&w->event);
		frame_unref(w->event.frame);
		free(w);
	}
}

static void keep(struct waiting ***end, const struct event *e)
{
	struct waiting *w = malloc(sizeof(*w));

	if (!w)
		abort();
	*w = (struct waiting){.event = *e};
	if (w->event.frame)
		frame_ref(w->event.frame);
	**end = w;
	*end = &w->next;
}

static void accept_waiting(struct rank *r)
{
	for (int p = 0; p < LISTENERS; p++)
		while (!r->dead && r->backlog[p] && receptive(r) && tree_accepts(r->t, (enum message_purpose)p)) {
			struct waiting *w = r->backlog[p];
			struct conn *c = &sim.conns[w->event.conn];
			struct message_address from = {.family = 4};
			int link;

			r->backlog[p] = w->next;
			if (!r->backlog[p])
				r->backlog_end[p] = &r->backlog[p];
			link = tree_on_accept(r->t, (enum message_purpose)p, &from, "memory", false, sim.now);
			c->link[1] = link;
			if (link >= 0)
				rank_bind(r, link, w->event.conn);
			free(w);
		}
}

static void on_frame(struct rank *r, struct event *e)
{
	struct conn *c = &sim.conns[e->conn];
	int link = c->link[e->side];

	if (link < 0)
		return;
	if (tree_expects(r->t, link, frame_kind(e->frame)) < (int64_t)e->frame->len) {
		fprintf(stderr, "kind %d of rank %d, %zu bytes: ", (int)frame_kind(e->frame), c->rank[!e->side], e->frame->len);
		sim_fail("rank %d does not expect a frame (link %d)", rank_number(r), link, "");
	}
	tree_on_frame(r->t, link, e->frame, sim.now);
}

static void handle(struct event *e)
{
	struct rank *r = &sim.rank[e->rank];
	struct conn *c = &sim.conns[e->conn];

	switch (e->kind) {
	case EVENT_FRAME: on_frame(r, e); break;
	case EVENT_CONNECTED:
		if (c->link[0] >= 0)
			tree_on_connected(r->t, c->link[0], false,
					  &(struct message_address){.family = 4, .port = (uint32_t)(ATTACH_PORT_BASE + c->rank[1])},
					  sim.now);
		break;
	case EVENT_DOWN:
		if (c->link[e->side] >= 0) {
			int link = c->link[e->side];

			c->link[e->side] = -1;
			r->conn_of[link] = -1;
			conn_end(e->conn, e->side, -ECONNRESET);
			tree_on_down(r->t, link, e->err, "the connection was closed", sim.now);
		}
		break;
	case EVENT_TIMER: tree_on_time(r->t, sim.now); break;
	case EVENT_LEAVE: tree_leave(r->t, sim.now); break;
	case EVENT_REPORT: tree_report_lost(r->t, e->side, "its process has ended", sim.now); break;
	case EVENT_APP: rank_app(r); break;
	case EVENT_ARRIVE:
	case EVENT_KILL: break;
	}
}

/* A connection that arrives where nobody listens any more is reset; events of frames that are not accepted yet wait. */
static bool defer(struct rank *r, struct event *e)
{
	struct conn *c = &sim.conns[e->conn];

	if (e->kind == EVENT_ARRIVE) {
		if (r->dead || !r->listens[c->purpose])
			conn_end(e->conn, 1, -ECONNRESET);
		else
			keep(&r->backlog_end[c->purpose], e);
		return true;
	}
	if (r->dead)
		return true;
	/* In the backlog: the frame stays behind its connection. */
	if ((e->kind == EVENT_FRAME || e->kind == EVENT_DOWN) && e->side == 1 && c->link[1] < 0 && !c->cut && r->backlog[c->purpose]) {
		struct event later = *e;

		for (struct waiting *w = r->backlog[c->purpose]; w; w = w->next)
			if (w->event.conn == e->conn) {
				later.at = sim.now + 50000;
				if (later.frame)
					frame_ref(later.frame);
				sim_post(later);
				return true;
			}
	}
	if ((e->kind == EVENT_FRAME || e->kind == EVENT_DOWN || e->kind == EVENT_CONNECTED) && !receptive(r)) {
		keep(&r->held_end, e);
		return true;
	}
	return false;
}

static void kill_rank(int rank)
{
	struct rank *r = &sim.rank[rank];

	if (r->dead)
		return;
	if (!sim.died_at)
		sim.died_at = sim.now;
	rank_end(r, true);
}

static void process(struct event *e)
{
	struct rank *r = &sim.rank[e->rank];

	if (e->kind == EVENT_TIMER && r->timer == e->at)
		r->timer = 0;
	if (e->kind == EVENT_KILL) {
		kill_rank(e->rank);
	} else if (!defer(r, e) && !r->frozen) {
		r->events++;
		if (e->rank == sim.victim && r->events == sim.victim_event && sim.scenario == DIE_START) {
			kill_rank(e->rank);
			return;
		}
		if (e->rank == sim.victim && r->events >= sim.victim_event && sim.scenario == SILENT_START) {
			r->frozen = true;
			sim.died_at = sim.now;
			return;
		}
		handle(e);
	}
	if (r->dead || !r->t)
		return;
	rank_step(r);
	if (!r->dead)
		release_held(r);
	if (!r->dead)
		accept_waiting(r);
	if (!r->dead)
		rank_step(r);
	if (!r->dead)
		set_timer(r);
}

static void name_of(void *arg, int rank, char *out, size_t size)
{
	(void)arg;
	snprintf(out, size, "rank %d", rank);
}

static void begin(void)
{
	static const struct log silence = {.level = LOG_OFF, .fd = -1};

	sim.rank = calloc((size_t)sim.ranks, sizeof(*sim.rank));
	if (!sim.rank)
		abort();
	for (int i = 0; i < sim.ranks; i++) {
		struct rank *r = &sim.rank[i];
		char host[16], node[17];
		struct tree_config cfg = {.rank = i,
					  .size = sim.ranks,
					  .pid = 100 + i,
					  .host = host,
					  .node = node,
					  .secret = "s",
					  .job_id = "",
					  .drawn_id = "0123456789abcdef0123456789abcdef",
					  .timeout_ms = 10000,
					  .local_ms = i % sim.per_node ? 100 : 0,
					  .addresses = 1,
					  .where = "there",
					  .log = &silence,
					  .net = &sim_net,
					  .net_arg = r,
					  .name = name_of};
		int64_t late = sim.scenario == LATE && sim_below(10) == 0 ? sim_below(2000 * MS) : sim_below(20 * MS);

		snprintf(host, sizeof(host), "node%d", i / sim.per_node);
		snprintf(node, sizeof(node), "%016x", i / sim.per_node);
		if (tree_new(&r->t, &cfg) < 0)
			abort();
		r->heard = calloc((size_t)sim.ranks, 1);
		r->first_lost = -1;
		r->held_end = &r->held;
		for (int p = 0; p < LISTENERS; p++)
			r->backlog_end[p] = &r->backlog[p];
		r->listens[MESSAGE_JOIN] = i == 0;
		sim_post((struct event){.at = late, .kind = EVENT_APP, .rank = i});
	}
}

static void finish(void)
{
	while (sim.heap_count > 0) {
		struct event e = sim_pop();

		frame_unref(e.frame);
	}
	for (int i = 0; i < sim.ranks; i++) {
		if (!sim.rank[i].dead)
			rank_end(&sim.rank[i], false);
		free(sim.rank[i].conn_of);
		free(sim.rank[i].heard);
	}
	free(sim.rank);
	free(sim.conns);
	free(sim.heap);
	sim.conns = NULL;
	sim.heap = NULL;
	sim.conn_count = sim.conn_room = 0;
	sim.heap_count = sim.heap_room = 0;
}

static void run_until(int64_t until, bool (*done)(void))
{
	while (sim.heap_count > 0 && sim.heap[0].at <= until && (!done || !done())) {
		struct event e = sim_pop();

		sim.now = e.at;
		process(&e);
		frame_unref(e.frame);
	}
}

static bool all_watch(void)
{
	return sim.finished == sim.ranks;
}

static bool all_ended(void)
{
	for (int i = 0; i < sim.ranks; i++)
		if (!sim.rank[i].dead && !sim.rank[i].frozen)
			return false;
	return true;
}

static bool all_ended_slow(void)
{
	static int64_t looked;

	if (sim.now - looked < 10 * MS && sim.now >= looked)
		return false;
	looked = sim.now;
	return all_ended();
}

static void cut_some(void)
{
	for (int tries = 0; tries < 1000 && sim.conn_count > 0; tries++) {
		int conn = (int)sim_below(sim.conn_count);

		if (!sim.conns[conn].down[0] && !sim.conns[conn].down[1]) {
			sim.conns[conn].cut = true;
			conn_end(conn, 0, -ECONNRESET);
			conn_end(conn, 1, -ECONNRESET);
			return;
		}
	}
}

/* Below a rank that stands still. */
static bool cut_off(int rank)
{
	return sim.scenario == SILENT_START && strstr(sim.rank[rank].text, "did not answer");
}

/* The start has a fault: all fail with the same text, or nobody noticed. */
static void check_failed_start(void)
{
	const char *text = NULL;
	bool started = sim.finished > 0;

	for (int i = 0; i < sim.ranks; i++) {
		struct rank *r = &sim.rank[i];

		if (i == sim.victim && (sim.scenario == DIE_START || sim.scenario == SILENT_START))
			continue;
		if (started && r->watched)
			continue;
		if (!r->done)
			sim_fail("rank %d of %d neither started nor failed", i, sim.ranks, "");
		/* A rank that was not admitted, or is cut off from rank 0 by the fault, has its own view. */
		if (sim.scenario == CUT_START || strstr(r->text, "did not let this rank in") || cut_off(i))
			continue;
		if (text && strcmp(text, r->text) != 0 && !started) {
			fprintf(stderr, "\"%s\"\n\"%s\"\n", text, r->text);
			sim_fail("rank %d of %d reports something else", i, sim.ranks, "");
		}
		text = r->text;
	}
}

static void start_fault(void)
{
	sim.victim = (int)sim_below(sim.ranks);
	if (sim_below(3) == 0)
		sim.victim = sim.victim / sim.per_node * sim.per_node;
	sim.victim_event = 1 + (int)sim_below(sim_below(2) ? 12 : 60);
	if (sim.scenario == CUT_START) {
		run_until(sim_below(60) * MS, NULL);
		cut_some();
	}
	run_until(20000 * MS, sim.scenario == CUT_START ? all_watch : all_ended_slow);
	check_failed_start();
}

static void expect_heard(int rank, int of, int what)
{
	if (sim.rank[rank].heard[of] != what) {
		fprintf(stderr, "%s of it: ", sim.rank[rank].heard[of] == 1 ? "lost" : sim.rank[rank].heard[of] == 2 ? "left" : "nothing");
		sim_fail("rank %d heard something else of rank %d", rank, of, "");
	}
}

/* Every rank that lives has heard of every rank that died, of nobody else, and in time. */
static void check_heard(const uint8_t *ends, int first)
{
	int64_t limit = sim.ranks <= 64 ? 2000 * MS : sim.ranks >= 4096 ? 5000 * MS : 2000 * MS + (int64_t)sim.ranks * MS;
	int64_t last = 0;

	for (int i = 0; i < sim.ranks; i++) {
		struct rank *r = &sim.rank[i];

		if (r->dead)
			continue;
		for (int k = 0; k < sim.ranks; k++)
			expect_heard(i, k, ends[k]);
		last = r->heard_last > last ? r->heard_last : last;
		if (first >= 0 && r->first_lost != first)
			sim_fail("rank %d names rank %d as the first that died", i, r->first_lost, "");
	}
	if (sim.died_at && last - sim.died_at > limit)
		sim_fail("%d ms until the last of %d ranks had heard", (int)((last - sim.died_at) / MS), sim.ranks, "");
	if (sim.shown)
		printf("  %d ms until all had heard\n", (int)((last - sim.died_at) / MS));
}

static void post_kill(int rank, int64_t after, uint8_t *ends)
{
	ends[rank] = 1;
	sim_post((struct event){.at = sim.now + after, .kind = EVENT_KILL, .rank = rank});
}

static void die(uint8_t *ends)
{
	int one = 1 + (int)sim_below(sim.ranks - 1), two = 1 + (int)sim_below(sim.ranks - 1), first = -1;

	if (sim_below(2))
		one = one / sim.per_node * sim.per_node;
	one = one ? one : sim.ranks - 1;
	if (sim.scenario == DIE_ONE || sim.scenario == DIE_TWO) {
		post_kill(first = one, 0, ends);
		if (sim.scenario == DIE_TWO && two != one)
			post_kill(two, 5 * MS + sim_below(300 * MS), ends);
		/* An orphan hears the first death later than others may hear of the second. */
		first = sim.scenario == DIE_TWO ? -1 : first;
	} else if (sim.scenario == DIE_NODE) {
		int node = one / sim.per_node ? one / sim.per_node : (sim.ranks - 1) / sim.per_node;

		for (int r = node * sim.per_node; r < (node + 1) * sim.per_node && r < sim.ranks; r++)
			if (r)
				post_kill(r, 0, ends);
	} else if (sim.scenario == DIE_LEADERS) {
		for (int r = sim.per_node; r < sim.ranks; r += sim.per_node)
			if (sim_below(4) == 0)
				post_kill(r, 0, ends);
	} else {
		for (int r = 1; r < sim.ranks; r++)
			if (sim_below(10) == 0)
				post_kill(r, sim_below(2000 * MS), ends);
	}
	run_until(sim.now + 12000 * MS, NULL);
	if (sim.scenario == DIE_MANY)
		sim.died_at += 2000 * MS;
	check_heard(ends, first);
}

static void leave(uint8_t *ends)
{
	int dies = sim.scenario == LEAVE_DIE ? 1 + (int)sim_below(sim.ranks - 1) : -1;
	int64_t within = sim_below(2) ? 5 * MS : 1500 * MS;

	for (int r = 1; r < sim.ranks; r++) {
		bool stays = sim.scenario == LEAVE_DIE && sim_below(8) == 0;

		if (r == dies) {
			post_kill(r, sim_below(within), ends);
		} else if (!stays) {
			ends[r] = 2;
			sim_post((struct event){.at = sim.now + sim_below(within), .kind = EVENT_LEAVE, .rank = r});
		}
	}
	run_until(sim.now + 30000 * MS, NULL);
	sim.died_at = 0;
	check_heard(ends, -1);
}

static void report(uint8_t *ends)
{
	int of = 1 + (int)sim_below(sim.ranks - 1), by = 1 + (int)sim_below(sim.ranks - 1);
	bool leaves = sim_below(2);

	if (by == of)
		by = 0;
	ends[of] = leaves ? 2 : 1;
	if (leaves) /* it was gone before anybody could see its process end */
		sim_post((struct event){.at = sim.now, .kind = EVENT_LEAVE, .rank = of});
	sim_post((struct event){.at = sim.now + 300 * MS, .kind = EVENT_REPORT, .rank = by, .side = of});
	if (!leaves)
		sim.rank[by].heard[of] = 1; /* no event follows there */
	run_until(sim.now + 5000 * MS, NULL);
	if (!leaves) {
		int heard = 0;

		for (int k = 0; k < sim.ranks; k++)
			heard += sim.rank[of].heard[k] == 1;
		if (heard != 1)
			sim_fail("rank %d, which was given up, heard of the loss of %d ranks", of, heard, "");
		sim.rank[of].dead = true;
	}
	check_heard(ends, -1);
	sim.rank[of].dead = sim.rank[of].t == NULL;
}

static void simulate(void)
{
	uint8_t *ends = calloc((size_t)sim.ranks, 1);

	sim.random = sim.seed * 0x9e3779b97f4a7c15u + (uint64_t)sim.scenario;
	sim.now = sim.died_at = 0;
	sim.finished = 0;
	sim.frames = sim.bytes = sim.root_bytes = 0;
	sim.victim = -1;
	begin();
	if (sim.scenario >= DIE_START && sim.scenario <= CUT_START) {
		start_fault();
	} else {
		run_until(20000 * MS, all_watch);
		if (!all_watch())
			sim_fail("%d of %d ranks have started", sim.finished, sim.ranks, sim.rank[0].text);
		if (sim.shown)
			printf("%s, %d ranks: started after %d ms, %llu frames, %llu bytes, %llu of them "
			       "from rank 0\n",
			       scenario_names[sim.scenario], sim.ranks, (int)(sim.now / MS), (unsigned long long)sim.frames,
			       (unsigned long long)sim.bytes, (unsigned long long)sim.root_bytes);
		if (sim.scenario == NORMAL || sim.scenario == LATE || sim.scenario == LEAVE_DIE)
			leave(ends);
		else if (sim.scenario == REPORTED)
			report(ends);
		else
			die(ends);
	}
	finish();
	free(ends);
}

int main(int argc, char **argv)
{
	int seeds = 10, only = -1;

	sim.ranks = 64;
	sim.per_node = 8;
	sim.seed = 1;
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--ranks") == 0 && i + 1 < argc) {
			sim.ranks = atoi(argv[++i]);
		} else if (strcmp(argv[i], "--per-node") == 0 && i + 1 < argc) {
			sim.per_node = atoi(argv[++i]);
		} else if (strcmp(argv[i], "--seeds") == 0 && i + 1 < argc) {
			seeds = atoi(argv[++i]);
		} else if (strcmp(argv[i], "--scenario") == 0 && i + 1 < argc) {
			for (only = 0, i++; only < SCENARIO_COUNT && strcmp(scenario_names[only], argv[i]) != 0;)
				only++;
		} else {
			sim.seed = strtoull(argv[i], NULL, 10);
		}
	}
	sim.shown = getenv("SIMULATE_VERBOSE") != NULL;
	for (int n = 0; n < seeds; n++, sim.seed++)
		for (int s = 0; s < SCENARIO_COUNT; s++)
			if (only < 0 || s == only) {
				sim.scenario = (enum scenario)s;
				simulate();
			}
	printf("%d ranks, %d a node: %d seeds passed\n", sim.ranks, sim.per_node, seeds);
	return 0;
}
