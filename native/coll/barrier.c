/* SPDX-License-Identifier: MIT */
#include "coll/build.h"

enum { BARRIER_AUTO, BARRIER_DISSEMINATION, BARRIER_LINEAR };

/* After round k a member has heard, directly or not, of 2^(k+1) members. */
static void barrier_dissemination(struct schedule *s)
{
	int p = s->comm->size, r = s->comm->rank;

	for (int64_t d = 1; d < p; d *= 2) {
		int step;

		schedule_send(s, build_around(r, (int)d, p), NULL, 0, NULL);
		step = schedule_recv(s, build_around(r, -(int)d, p), NULL, 0, NULL);
		schedule_await(s, step);
	}
}

/* Member 0 collects and answers. */
static void barrier_linear(struct schedule *s)
{
	int p = s->comm->size;

	if (s->comm->rank) {
		schedule_send(s, 0, NULL, 0, NULL);
		schedule_recv(s, 0, NULL, 0, NULL);
		return;
	}
	for (int i = 1; i < p; i++)
		schedule_recv(s, i, NULL, 0, NULL);
	schedule_await_all(s);
	for (int i = 1; i < p; i++)
		schedule_send(s, i, NULL, 0, NULL);
}

void coll_build_barrier(struct schedule *s, const struct ibvx_coll *a)
{
	int choice = build_choice(s, SETTING_COLL_BARRIER);

	(void)a;
	if (choice == BARRIER_AUTO)
		choice = build_prefers_linear(s, true) ? BARRIER_LINEAR : BARRIER_DISSEMINATION;
	if (choice == BARRIER_LINEAR)
		barrier_linear(s);
	else
		barrier_dissemination(s);
}
