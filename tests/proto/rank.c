/* SPDX-License-Identifier: MIT */
#include "traffic.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static size_t seen_size(const struct traffic_config *cfg)
{
	return (size_t)cfg->channels * (size_t)cfg->ranks * cfg->messages;
}

static void actor_init(struct traffic_rank *t, int channel, bool sends, bool receives)
{
	struct actor *a = &t->actors[t->actor_count];

	a->cfg = t->cfg;
	a->ep = t->ep;
	a->rank = t->rank;
	a->channel = channel;
	a->sends = sends;
	a->receives = receives;
	a->inbox = &t->inbox[t->cfg->shared ? 0 : channel];
	a->rng = rng_seed(t->cfg->seed, 4711 + (uint64_t)(t->rank * 100 + t->actor_count));
	t->actor_count++;
}

struct traffic_rank *traffic_rank_new(const struct traffic_config *cfg, struct ibvx *ep, int rank)
{
	struct traffic_rank *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->cfg = cfg;
	t->ep = ep;
	t->rank = rank;
	for (int channel = 0; channel < cfg->channels; channel++) {
		t->inbox[channel].seen = calloc(seen_size(cfg) + 1, 1);
		if (!t->inbox[channel].seen) {
			traffic_rank_free(t);
			return NULL;
		}
		actor_init(t, channel, true, !cfg->halves);
		if (cfg->halves)
			actor_init(t, channel, false, true);
	}
	t->actors[0].alone = t->actor_count == 1;
	return t;
}

void traffic_rank_free(struct traffic_rank *t)
{
	if (!t)
		return;
	for (int i = 0; i < t->actor_count; i++) {
		struct actor *a = &t->actors[i];

		for (unsigned k = 0; k < a->kept_count; k++)
			free(a->kept[k]);
		free(a->kept);
		free(a->events);
	}
	for (int channel = 0; channel < TRAFFIC_CHANNELS_MAX; channel++)
		free(t->inbox[channel].seen);
	free(t);
}

void traffic_rank_begin(struct traffic_rank *t, int round)
{
	const struct traffic_config *cfg = t->cfg;
	struct message m;

	t->round = round;
	for (int channel = 0; channel < cfg->channels; channel++) {
		memset(t->inbox[channel].seen, 0, seen_size(cfg));
		atomic_store(&t->inbox[channel].remaining, 0);
	}
	for (int channel = 0; channel < cfg->channels; channel++)
		for (int src = 0; src < cfg->ranks; src++)
			for (unsigned seq = 0; seq < cfg->messages; seq++) {
				message_make(cfg, src, channel, round, seq, &m);
				if (m.dst == t->rank)
					atomic_fetch_add(&t->inbox[cfg->shared ? 0 : channel].remaining, 1);
			}
	for (int i = 0; i < t->actor_count; i++) {
		t->actors[i].round = round;
		t->actors[i].seq = 0;
		t->actors[i].event_count = 0;
		t->actors[i].next_index = 0;
		t->actors[i].idle = 0;
	}
}

void traffic_rank_check(struct traffic_rank *t)
{
	const struct traffic_config *cfg = t->cfg;
	struct message m;

	for (int channel = 0; channel < cfg->channels; channel++) {
		struct inbox *box = &t->inbox[cfg->shared ? 0 : channel];

		for (int src = 0; src < cfg->ranks; src++)
			for (unsigned seq = 0; seq < cfg->messages; seq++) {
				size_t at = (size_t)(channel * cfg->ranks + src) * cfg->messages + seq;

				message_make(cfg, src, channel, t->round, seq, &m);
				if ((m.dst == t->rank) != (atomic_load(&box->seen[at]) != 0))
					traffic_fail(cfg, "rank %d: message %llx was not received", t->rank, (unsigned long long)m.user);
			}
	}
	for (int i = 0; i < t->actor_count; i++) {
		struct ibvx_status s;
		const struct actor *a = &t->actors[i];

		if (ibvx_iprobe(t->ep, IBVX_ANY_SOURCE, IBVX_ANY_TAG, traffic_context(cfg, a->channel), &s) != 0)
			traffic_fail(cfg, "rank %d: the round is over, and a message from rank %d is there", t->rank, s.source);
		if (!a->receives)
			continue;
		if (cfg->shared)
			verify_pairwise(a);
		else
			verify_exact(a);
	}
}

void traffic_rank_print(const struct traffic_rank *t)
{
	for (int i = 0; i < t->actor_count; i++) {
		const struct actor *a = &t->actors[i];

		fprintf(stderr, "rank %d round %d channel %d %s%s: %s, %u of %u sent, %u to come, %u open, %lu steps\n", t->rank, t->round,
			a->channel, a->sends ? "S" : "", a->receives ? "R" : "",
			atomic_load(&a->doing) ? atomic_load(&a->doing) : "not begun", a->seq, t->cfg->messages,
			atomic_load(&a->inbox->remaining), a->op_count, atomic_load(&a->steps));
		for (unsigned k = 0; k < a->op_count && k < 8; k++) {
			const struct operation *op = a->ops[k];

			if (op->send)
				fprintf(stderr, "    %s %llx to rank %d tag %d, %zu + %zu bytes\n", op->m.sync ? "issend" : "isend",
					(unsigned long long)op->m.user, op->m.dst, op->m.tag, op->m.bytes[0], op->m.bytes[1]);
			else
				fprintf(stderr, "    irecv from rank %d tag %d, %zu bytes%s\n", op->source, op->tag, op->capacity,
					op->split ? ", split" : "");
		}
	}
}
