/* SPDX-License-Identifier: MIT */
#include "core/agree.h"

#include <errno.h>
#include <string.h>

#include "base/error.h"

/* A run of ranks that the same transports reach: so many ranks in the upper bits, a bit for each transport in the lower ones, in
 * the order of the address. */
#define AGREE_BITS 8u
#define AGREE_MASK 0xffu
static_assert(sizeof(((struct ibvx *)0)->transports) / sizeof(struct transport *) == AGREE_BITS, "a bit for each transport");

static uint32_t agree_reached(const struct ibvx *ep, int rank)
{
	uint32_t mask = 0;

	for (int i = 0; i < ep->transport_count; i++)
		mask |= (uint32_t)ep->transports[i]->ops->reaches(ep->transports[i], rank) << i;
	return mask;
}

size_t agree_reach_max(int size)
{
	return (size_t)size * sizeof(uint32_t);
}

int core_reach(struct ibvx *ep, void *out, size_t size)
{
	uint32_t run = 0, last = 0;
	size_t at = 0;

	core_lock(ep);
	for (int r = 0; r < ep->size; r++) {
		uint32_t mask = r == ep->rank && r > 0 ? last : agree_reached(ep, r); /* nobody asks about the rank itself */

		if (run > 0 && mask == last) {
			run++;
		} else {
			last = mask;
			run = 1;
			at += sizeof(run);
		}
		if (at > size)
			break;
		run = run << AGREE_BITS | mask;
		memcpy((char *)out + at - sizeof(run), &run, sizeof(run));
		run >>= AGREE_BITS;
	}
	core_unlock(ep);
	return at <= size ? (int)at
			  : error_set(-ENOBUFS, "%d ranks are reached in too many different combinations of transports", ep->size);
}

int core_agree(struct ibvx *ep, int rank, const void *reach, size_t bytes)
{
	struct peer *p = &ep->peers[rank];
	uint64_t from = 0;
	uint32_t run;

	for (size_t at = 0; at + sizeof(run) <= bytes; at += sizeof(run), from += run >> AGREE_BITS) {
		memcpy(&run, (const char *)reach + at, sizeof(run));
		if ((uint64_t)ep->rank < from || (uint64_t)ep->rank >= from + (run >> AGREE_BITS))
			continue;
		p->reached_by = (uint8_t)(run & AGREE_MASK);
		p->reach_known = true;
		return 0;
	}
	return error_set(-EPROTO, "rank %d did not report how it reaches rank %d: do all ranks run the same ibvdev?", rank, ep->rank);
}

void agree_note_order(struct peer *p, int i, const char *name)
{
	if (i == 0)
		p->order_count = 0;
	if (i >= (int)AGREE_BITS)
		return;
	p->order[i] = AGREE_BITS;
	p->order_count = (uint8_t)(i + 1);
	for (int mine = 0; mine < p->ep->transport_count; mine++) {
		if (strncmp(p->ep->transports[mine]->ops->name, name, TRANSPORT_NAME_BYTES) == 0)
			p->order[i] = (uint8_t)mine;
	}
}

/* Which of our transports the peer uses to reach us. */
static uint32_t agree_theirs(const struct peer *p)
{
	uint32_t mask = 0;

	for (int i = 0; i < p->order_count; i++) {
		if (p->order[i] < AGREE_BITS && (p->reached_by >> i & 1u))
			mask |= 1u << p->order[i];
	}
	return mask;
}

struct transport *agree_choose(struct peer *p)
{
	const struct ibvx *ep = p->ep;
	uint32_t mine = agree_reached(ep, p->rank), both = mine;

	if (p->rank != ep->rank && p->reach_known)
		both &= agree_theirs(p);
	if (mine & ~both)
		log_info(&ep->log, "rank %d: transport %s reaches it from here, but not from there", p->rank,
			 ep->transports[__builtin_ctz(mine & ~both)]->ops->name);
	for (int i = 0; ep->rank > p->rank && p->reach_known && i < p->order_count; i++) {
		if (p->order[i] < AGREE_BITS && (both >> p->order[i] & 1u))
			return ep->transports[p->order[i]];
	}
	if (both)
		return ep->transports[__builtin_ctz(both)];
	error_concerns(error_set(-EHOSTUNREACH, "no transport of \"%s\" reaches rank %d%s: ibvdev-info reports what each can do",
				 settings_text(ep->settings, SETTING_TRANSPORTS), p->rank, mine ? " in both directions" : ""),
		       p->rank);
	return NULL;
}
