/* SPDX-License-Identifier: MIT */
#ifndef TESTS_VERBS_PAIR_H
#define TESTS_VERBS_PAIR_H
/* pair: two verbs transports in this process, joined by the adapter's doubles, and what they reported to their cores. */
#include "adapter.h"
#include "transport/verbs/verbs.h"

#define PAIR_WATCHES 128
#define PAIR_PACKETS 4096

struct side {
	struct transport *t;
	struct transport_env env;
	struct transport_wakeups wakeups;
	struct {
		int fd;
		void (*fn)(void *arg);
		void *arg;
	} watch[PAIR_WATCHES];
	int watch_count;
	bool polls_first; /* a thread polls before the monitor has looked at what is watched */
	int packets;
	uint64_t last_value;  /* ctl.value of the last packet */
	uint64_t *from;       /* more than two sides: of the last packet of each, from 1 on */
	bool in_order, whole; /* values counted up by one; payloads held what they should */
	int gets, puts, get_error;
	uint64_t get_cookie;
	int cancels; /* on_cancelled */
	int downs, down_error;
	int packets_at_down;
	char why[512];
};

struct pair {
	struct settings *settings;
	struct log log;
	struct side side[2];
	bool sockets;
};

/* Opens, exchanges, attaches. settings: "name=value" strings, NULL at the end, or NULL. */
void pair_open(struct pair *p, const char *const *settings);
/* Ends the program if a descriptor is still watched. */
void pair_close(struct pair *p);
/* Opens one side of a job of so many ranks; blob: what it writes as its address. Returns the blob's length. */
int side_open(struct side *s, int rank, int size, const struct settings *settings, const struct log *log, void *blob, size_t blob_bytes);
/* Byte i of the payload of the packet with this value. */
unsigned char pair_byte(uint64_t value, size_t i);
/* One side ends, without a word. */
void side_close(struct side *s);
/* One turn of one side: how many events there were. */
int side_step(struct side *s);
/* One turn of both sides: how many events there were. */
int pair_step(struct pair *p);
/* Until nothing happens any more. */
void pair_run(struct pair *p);
/* Sends one packet of len payload bytes whose ctl.value is `value`: what reserve() returns. */
int pair_send(struct pair *p, int from, uint64_t value, size_t len);
/* pack_rkey() of one side for the other, run until it is not in preparation any more: its answer. */
int pair_pack(struct pair *p, int owner, uint64_t cookie, enum transport_access access, const void *base[2], const size_t len[2],
	      void *desc);
/* Sends until it is accepted, running both; false: never. */
bool pair_send_until(struct pair *p, int from, uint64_t value, size_t len);

#endif
