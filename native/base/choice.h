/* SPDX-License-Identifier: MIT */
#ifndef IBVX_BASE_CHOICE_H
#define IBVX_BASE_CHOICE_H
/*
 * choice: which of two methods to do the same thing is faster, learned from what doing it took.
 *
 * Which one it is depends on the machine and changes within seconds.  One side chooses a method each time and
 * explores the other one now and then: the slower that one is, the more seldom, so that exploration costs
 * about 1 %.  One side learns what each time took, and when hint_pending is set the one that chooses gets
 * a hint (in_best, in_interval).  The two sides may be one structure, or two in different processes.
 *
 * No locks, no clock, no memory of its own.
 */
#include <stdbool.h>
#include <stdint.h>

#define CHOICE_INTERVAL_MAX 1024u

struct choice {
	/* the side that chooses */
	uint8_t best;                 /* 0 or 1 */
	uint16_t interval, countdown; /* times between two explorations, until the next */
	uint32_t made;
	/* the side that learns */
	uint8_t in_best, confirmed, tries; /* tries: explorations so far, while they are few */
	bool hint_pending;
	uint16_t in_interval;
	uint32_t cost_ns[2];  /* by method; 0: not known */
	uint32_t explored_ns; /* cost of the best method when the other one was last tried */
};

void choice_init(struct choice *c);

/* The method to take now, 0 or 1. *timed: what it takes is to be learned. */
unsigned choice_make(struct choice *c, bool *timed);
/* This method is the faster one; explore the other one after so many times (1 to CHOICE_INTERVAL_MAX). */
void choice_hint(struct choice *c, unsigned method, unsigned interval);

/* This method took so long. */
void choice_learn(struct choice *c, unsigned method, uint64_t sample_ns);

#endif
