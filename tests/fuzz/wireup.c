/* SPDX-License-Identifier: MIT */
/*
 * The frames of the TCP wire-up between two ranks of the transport verbs, over doubles of its libraries.
 *
 * Input: [how: 1], then what the other side sends.  how, bit 0: this rank connects, else it is connected to; bit 1: the ends
 * of frames are sent apart; bit 2: magic, nonce and proof of each frame are what they should be, as only they keep a stranger out.
 */
#include "fuzz.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../verbs/pair.h"
#include "transport/verbs/wireup.h"
#include "transport/verbs/wireup_socket.h"

#define FRAMES 4

static struct verbs *verbs_of(struct pair *p, int rank)
{
	return (struct verbs *)p->side[rank].t;
}

static void run(struct side *s)
{
	for (int i = 0; i < 4; i++)
		side_step(s);
}

/* To the listener of rank 0, as rank 1. */
static int call(struct pair *p)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = wireup_port(verbs_of(p, 0)), .sin_addr = {htonl(INADDR_LOOPBACK)}};
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	fuzz_check(fd >= 0 && connect(fd, (struct sockaddr *)&at, sizeof(at)) == 0);
	run(&p->side[0]);
	return fd;
}

/* Rank 1 connects to rank 0, whose listener is taken away from it. */
static int be_called(struct pair *p)
{
	struct side *s = &p->side[0];
	int fd = -1;

	pair_send(p, 1, 1, 8);
	run(&p->side[1]);
	for (int i = 0; i < s->watch_count && fd < 0; i++) {
		int listens = 0;
		socklen_t len = sizeof(listens);

		if (s->watch[i].fn && getsockopt(s->watch[i].fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &len) == 0 && listens)
			fd = accept(s->watch[i].fd, NULL, NULL);
	}
	fuzz_check(fd >= 0);
	return fd;
}

/* The proofs of a peer that has the secret; `heard` is the last frame from it. */
static void mend(struct proof *proof, struct wireup_frame *f, const struct wireup_frame *heard, int how)
{
	struct private_data magic = {.magic = PRIVATE_DATA_MAGIC};

	f->magic = heard->magic;
	memcpy(&f->data.magic, &magic.magic, sizeof(magic.magic));
	memcpy(f->data.job,
	       (const uint8_t[]){0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, 0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef}, 16);
	if (how & 1) {
		proof->rank = 1;
		proof->size = -1;
		if (f->kind == WIREUP_CHALLENGE)
			memcpy(proof->listener_nonce, f->nonce, sizeof(f->nonce));
		memcpy(proof->rank_nonce, heard->nonce, sizeof(f->nonce));
		proof_make(proof, PROOF_LISTENER, f->proof);
	} else {
		proof->rank = (int)f->data.rank;
		proof->size = -1;
		memcpy(proof->listener_nonce, heard->nonce, sizeof(f->nonce));
		memcpy(proof->rank_nonce, f->nonce, sizeof(f->nonce));
		proof_make(proof, PROOF_RANK, f->proof);
	}
}

static void talk(struct side *s, int fd, struct fuzz_input *in, int how)
{
	struct wireup_frame heard = {.magic = 0x33584249u};
	struct proof proof = {.rank = 0};

	proof_set_key(&proof, "s3cret");
	for (int i = 0; i < FRAMES && in->left; i++) {
		struct wireup_frame f;
		size_t size, first;

		recv(fd, &heard, sizeof(heard), MSG_DONTWAIT);
		size = fuzz_take(in, &f, sizeof(f));
		if (how & 4)
			mend(&proof, &f, &heard, how);
		first = how & 2 ? size / 2 : size;
		send(fd, &f, first, MSG_NOSIGNAL);
		run(s);
		send(fd, (const char *)&f + first, size - first, MSG_NOSIGNAL);
		run(s);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const settings[] = {"verbs_connect=tcp", "job_secret=s3cret", "verbs_slots=4", NULL};
	struct linger reset = {.l_onoff = 1, .l_linger = 0};
	struct fuzz_input in = {data, size};
	int how = fuzz_below(&in, 8), fd;
	struct pair p;

	adapter_reset();
	pair_open(&p, settings);
	fd = how & 1 ? be_called(&p) : call(&p);
	talk(&p.side[how & 1], fd, &in, how);
	/* without a rest of it in the kernel, or the ports would soon be used up */
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	close(fd);
	run(&p.side[how & 1]);
	pair_close(&p);
	fuzz_check(adapter_live() == 0);
	return 0;
}
