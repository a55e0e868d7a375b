/* SPDX-License-Identifier: MIT */
/* Handles: null, stale, forged, given up, shown by peek; and arguments out of range. */
#include "directed.h"

#include <errno.h>

static void null_and_stale_handles(void **state)
{
	struct world w;
	struct text t = text_of(1, 8);
	struct ibvx_status s;
	ibvx_req null = IBVX_REQ_NULL, forged = 0xdeadbeef00000007u, kept, recv, send, list[3] = {0};
	char mem[8];

	(void)state;
	begin(&w, calm(2, 0), NULL);
	memset(&s, 0x55, sizeof(s));
	assert_int_equal(ibvx_wait(w.ep[0], &null, &s), 0);
	assert_int_equal(s.head_bytes + s.body_bytes, 0);
	assert_int_equal(s.error, 0);
	assert_null(s.body);
	assert_int_equal(ibvx_test(w.ep[0], &null, &s), 1);
	assert_int_equal(ibvx_waitany(w.ep[0], 3, list, &s), -ENOENT);
	assert_int_equal(ibvx_waitany(w.ep[0], 0, NULL, &s), -ENOENT);
	assert_int_equal(ibvx_wait(w.ep[0], &forged, &s), -EINVAL);
	assert_int_equal(ibvx_test(w.ep[0], &forged, &s), -EINVAL);
	assert_int_equal(ibvx_cancel(w.ep[0], forged), -EINVAL);
	assert_int_equal(ibvx_isend(w.ep[0], &(struct ibvx_sbuf){.body = mem, .body_bytes = (size_t)1 << 62}, 1, 1, CTX, &send), -EINVAL);
	assert_int_equal(
		ibvx_send(w.ep[0], &(struct ibvx_sbuf){.head = mem, .head_bytes = SIZE_MAX, .body = mem, .body_bytes = 8}, 1, 1, CTX),
		-EINVAL);
	assert_int_equal(ibvx_request_free(w.ep[0], &forged), -EINVAL);
	recv = kept = take(&w, 0, 1, 1, mem, 8);
	send = put(&w, 1, 0, 1, t, 1, false);
	assert_int_equal(finish(&w, 0, &recv, &s), 0);
	assert_true(recv == IBVX_REQ_NULL);
	assert_int_equal(ibvx_wait(w.ep[0], &kept, &s), -EINVAL);
	assert_int_equal(ibvx_cancel(w.ep[0], kept), -EINVAL);
	/* the slot may serve another request by now: the old handle is still stale */
	recv = take(&w, 0, 1, 1, mem, 8);
	assert_true(recv != kept);
	assert_int_equal(ibvx_test(w.ep[0], &kept, &s), -EINVAL);
	assert_int_equal(ibvx_cancel(w.ep[0], recv), 0);
	assert_int_equal(ibvx_wait(w.ep[0], &recv, &s), -ECANCELED);
	assert_int_equal(finish(&w, 1, &send, NULL), 0);
	end(&w);
	text_free(t);
}

static void waitany_skips_null(void **state)
{
	struct world w;
	struct text t = text_of(1, 8);
	struct ibvx_status s;
	ibvx_req list[4] = {0}, send;
	char mem[3][8];

	(void)state;
	begin(&w, calm(2, 0), NULL);
	list[1] = take(&w, 0, 1, 1, mem[0], 8);
	list[2] = take(&w, 0, 1, 2, mem[1], 8);
	list[3] = take(&w, 0, 1, 3, mem[2], 4);
	send = put(&w, 1, 0, 2, t, 1, false);
	settle(&w);
	assert_int_equal(ibvx_waitany(w.ep[0], 4, list, &s), 2);
	assert_true(list[2] == IBVX_REQ_NULL);
	assert_int_equal(s.tag, 2);
	assert_int_equal(s.error, 0);
	assert_int_equal(finish(&w, 1, &send, NULL), 0);
	/* one that failed counts, and its error is in the status */
	send = put(&w, 1, 0, 3, t, 1, false);
	settle(&w);
	assert_int_equal(ibvx_waitany(w.ep[0], 4, list, &s), 3);
	assert_int_equal(s.error, -EMSGSIZE);
	assert_int_equal(finish(&w, 1, &send, NULL), 0);
	assert_int_equal(ibvx_cancel(w.ep[0], list[1]), 0);
	assert_int_equal(ibvx_waitany(w.ep[0], 4, list, &s), 1);
	assert_int_equal(s.error, -ECANCELED);
	assert_int_equal(ibvx_waitany(w.ep[0], 4, list, &s), -ENOENT);
	end(&w);
	text_free(t);
}

static void peek_newest_first_and_once(void **state)
{
	struct world w;
	struct text t = text_of(1, 8);
	struct ibvx_status s;
	ibvx_req recv[3], send[3], shown;
	char mem[3][8];

	(void)state;
	begin(&w, calm(2, 0), NULL);
	for (int i = 0; i < 3; i++)
		recv[i] = take(&w, 0, 1, i, mem[i], 8);
	for (int i = 0; i < 3; i++) {
		send[i] = put(&w, 1, 0, i, t, (uint64_t)i, false);
		settle(&w);
	}
	assert_int_equal(ibvx_peek(w.ep[0], &shown), 0);
	assert_true(shown == recv[2]);
	assert_int_equal(ibvx_peek(w.ep[0], &shown), 0);
	assert_true(shown == recv[1]);
	assert_int_equal(finish(&w, 0, &recv[0], &s), 0); /* consumed before it was shown */
	assert_int_equal(finish(&w, 0, &recv[1], &s), 0);
	assert_int_equal(finish(&w, 0, &recv[2], &s), 0);
	assert_int_equal(s.user, 2);
	recv[0] = take(&w, 0, 1, 9, mem[0], 8);
	assert_int_equal(ibvx_cancel(w.ep[0], recv[0]), 0);
	assert_int_equal(ibvx_peek(w.ep[0], &shown), 0);
	assert_true(shown == recv[0]);
	assert_int_equal(ibvx_wait(w.ep[0], &recv[0], NULL), -ECANCELED);
	for (int i = 0; i < 3; i++)
		assert_int_equal(finish(&w, 1, &send[i], NULL), 0);
	end(&w);
	text_free(t);
}

static void given_up(void **state)
{
	struct world w;
	struct text t = text_of(1, 8), big = text_of(2, 60000);
	static char mem[60000];
	char small[8];
	ibvx_req recv, send, shown;

	(void)state;
	begin(&w, calm(2, 512), "psl=4000", NULL);
	recv = take(&w, 0, 1, 1, small, 8);
	assert_int_equal(ibvx_request_free(w.ep[0], &recv), 0);
	assert_true(recv == IBVX_REQ_NULL);
	recv = take(&w, 0, 1, 2, mem, sizeof(mem));
	assert_int_equal(ibvx_request_free(w.ep[0], &recv), 0);
	send = put(&w, 1, 0, 2, big, 2, true);
	assert_int_equal(ibvx_request_free(w.ep[1], &send), 0);
	send = put(&w, 1, 0, 1, t, 1, false);
	assert_int_equal(finish(&w, 1, &send, NULL), 0);
	settle(&w);
	assert_text(small, 1, 8);
	assert_text(mem, 2, sizeof(mem));
	/* a request that was given up is nobody's to see */
	recv = take(&w, 0, 1, 3, small, 8);
	assert_int_equal(ibvx_cancel(w.ep[0], recv), 0);
	assert_int_equal(ibvx_peek(w.ep[0], &shown), 0);
	assert_true(shown == recv);
	assert_int_equal(ibvx_wait(w.ep[0], &recv, NULL), -ECANCELED);
	end(&w);
	text_free(t);
	text_free(big);
}

static void refused(int err, const char *named)
{
	assert_int_equal(err, -EINVAL);
	if (!strstr(ibvx_error(), named))
		fail_msg("the text \"%s\" does not name %s", ibvx_error(), named);
}

static void arguments(void **state)
{
	struct world w;
	struct ibvx_sbuf out = {NULL, 0, "12345678", 8, 0};
	char mem[8];
	struct ibvx_rbuf in = {mem, 8, 0};
	struct ibvx_status s;
	ibvx_req r = IBVX_REQ_NULL;

	(void)state;
	begin(&w, calm(2, 0), NULL);
	refused(ibvx_isend(w.ep[0], &out, 2, 1, CTX, &r), "2");
	refused(ibvx_isend(w.ep[0], &out, -1, 1, CTX, &r), "-1");
	refused(ibvx_send(w.ep[0], &out, IBVX_ANY_SOURCE, 1, CTX), "-2");
	refused(ibvx_issend(w.ep[0], &out, 77, 1, CTX, &r), "77");
	refused(ibvx_ssend(w.ep[0], &out, 78, 1, CTX), "78");
	refused(ibvx_irecv(w.ep[0], &in, 2, 1, CTX, &r), "2");
	refused(ibvx_recv(w.ep[0], &in, -3, 1, CTX, &s), "-3");
	refused(ibvx_iprobe(w.ep[0], 99, 1, CTX, &s), "99");
	refused(ibvx_probe(w.ep[0], 98, 1, CTX, &s), "98");
	assert_true(r == IBVX_REQ_NULL);
	/* a split receive needs somewhere to hand the body over */
	in.split = 1;
	assert_int_equal(ibvx_recv(w.ep[0], &in, 1, 1, CTX, NULL), -EINVAL);
	end(&w);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(null_and_stale_handles),
	cmocka_unit_test(waitany_skips_null),
	cmocka_unit_test(peek_newest_first_and_once),
	cmocka_unit_test(given_up),
	cmocka_unit_test(arguments),
};

int main(void)
{
	return cmocka_run_group_tests_name("requests", tests, NULL, NULL);
}
