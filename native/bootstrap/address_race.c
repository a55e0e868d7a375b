/* SPDX-License-Identifier: MIT */
/*
 * address_race: connecting to a host by whichever of its addresses answers first.
 */
#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "bootstrap/address.h"
#include "bootstrap/deadline.h"

struct race {
	const struct address_list *list;
	uint32_t *tried;
	struct pollfd polls[ADDRESS_MAX]; /* fd < 0: not started, or over */
	int64_t next;                     /* when the next address may start */
	int started, running;
	int err;
};

static void race_lose(struct race *r, int i, int err)
{
	if (r->polls[i].fd >= 0) {
		close(r->polls[i].fd);
		r->running--;
	}
	r->polls[i].fd = -1;
	*r->tried |= UINT32_C(1) << i;
	/* That one family has no route means less than the result of the other's attempt. */
	if (r->err == -EHOSTUNREACH || r->err == -ENETUNREACH || r->err == -EADDRNOTAVAIL)
		r->err = err;
	r->next = 0;
}

/* Starts what is due. */
static void race_start(struct race *r)
{
	while (r->started < r->list->count && (r->running == 0 || clock_now_ns() >= r->next)) {
		int i = r->started++, fd;

		if (*r->tried >> i & 1)
			continue;
		fd = address_connect(&r->list->at[i]);
		if (fd < 0) {
			race_lose(r, i, fd);
			continue;
		}
		r->polls[i] = (struct pollfd){.fd = fd, .events = POLLOUT};
		r->running++;
		r->next = deadline_after_ms(ADDRESS_STAGGER_MS);
	}
}

/* The winner's index, or -1. */
static int race_look(struct race *r)
{
	for (int i = 0; i < r->started; i++) {
		int err;

		if (r->polls[i].fd < 0 || !r->polls[i].revents)
			continue;
		err = address_connected(r->polls[i].fd);
		if (!err)
			return i;
		race_lose(r, i, err);
	}
	return -1;
}

int address_connect_any(const struct address_list *list, uint32_t *tried, int64_t deadline, int *which)
{
	struct race r = {.list = list, .tried = tried, .err = -EHOSTUNREACH};
	int winner = -1, fd;

	for (int i = 0; i < ADDRESS_MAX; i++)
		r.polls[i].fd = -1;
	for (;;) {
		int64_t until;

		race_start(&r);
		if (r.running == 0)
			return r.err;
		until = r.started < list->count ? deadline_earlier(deadline, r.next) : deadline;
		if (poll(r.polls, (nfds_t)r.started, deadline_left_ms(until)) > 0)
			winner = race_look(&r);
		if (winner >= 0 || deadline_left_ms(deadline) == 0)
			break;
	}
	fd = winner >= 0 ? r.polls[winner].fd : -ETIMEDOUT;
	for (int i = 0; i < list->count; i++) {
		if (i == winner || winner < 0)
			*tried |= UINT32_C(1) << i;
		if (i != winner && r.polls[i].fd >= 0)
			close(r.polls[i].fd);
	}
	if (winner >= 0)
		*which = winner;
	return fd;
}
