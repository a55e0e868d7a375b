/* SPDX-License-Identifier: MIT */
/* A launcher's answers on the PMI wire: the input is all that it ever sends.  With a first byte of '0' to rank 0, else to rank 1. */
#include "fuzz.h"

#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"
#include "bootstrap/deadline.h"
#include "bootstrap/launch_row.h"

#define SENT_MAX 65536

static void judge(int err)
{
	fuzz_check(err == 0 || strcmp(error_text(), "unset") != 0);
}

/* As a rank goes through its start. */
static void talk(struct launch *l, int64_t deadline)
{
	struct card card = {0};
	int err = launch_pmi.open(l, NULL, deadline);

	if (!err) {
		fuzz_check(l->size == 2 && (l->rank == 0 || l->rank == 1) && l->local_size >= 0);
		snprintf(card.secret, sizeof(card.secret), "00112233445566778899aabbccddeeff");
		err = l->rank == 0 ? launch_pmi.publish(l, &card, NULL, deadline) : launch_pmi.fetch(l, &card, deadline);
		if (!err)
			err = launch_pmi.done(l, deadline);
	}
	judge(err);
	launch_pmi.close(l);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct launch l = {0};
	char number[16];
	int pair[2];

	if (size < 1 || size > SENT_MAX)
		return 0;
	fuzz_check(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
	fuzz_check(send(pair[1], data + 1, size - 1, MSG_DONTWAIT) == (ssize_t)(size - 1));
	shutdown(pair[1], SHUT_WR); /* so that nothing waits for more */
	snprintf(number, sizeof(number), "%d", pair[0]);
	setenv("PMI_FD", number, 1);
	setenv("PMI_RANK", data[0] == '0' ? "0" : "1", 1);
	setenv("PMI_SIZE", "2", 1);
	error_set(-1, "unset");
	talk(&l, deadline_after_ms(60000));
	close(pair[0]);
	close(pair[1]);
	return 0;
}
