/* SPDX-License-Identifier: MIT */
/* The hash against its authors' vectors (also checked with OpenSSL's SIPHASH), proofs, messages. */
#include "party.h"

#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "base/proof.h"
#include "base/siphash.h"
#include "bootstrap/gather.h"
#include "bootstrap/message.h"
#include "bootstrap/node.h"

static void test_siphash(void **state)
{
	static const struct {
		size_t len;
		uint8_t hash[16];
	} vectors[] = {
		{0, {0xa3, 0x81, 0x7f, 0x04, 0xba, 0x25, 0xa8, 0xe6, 0x6d, 0xf6, 0x72, 0x14, 0xc7, 0x55, 0x02, 0x93}},
		{1, {0xda, 0x87, 0xc1, 0xd8, 0x6b, 0x99, 0xaf, 0x44, 0x34, 0x76, 0x59, 0x11, 0x9b, 0x22, 0xfc, 0x45}},
		{15, {0x54, 0x93, 0xe9, 0x99, 0x33, 0xb0, 0xa8, 0x11, 0x7e, 0x08, 0xec, 0x0f, 0x97, 0xcf, 0xc3, 0xd9}},
		{63, {0x51, 0x50, 0xd1, 0x77, 0x2f, 0x50, 0x83, 0x4a, 0x50, 0x3e, 0x06, 0x9a, 0x97, 0x3f, 0xbd, 0x7c}},
	};
	uint8_t key[16], data[64], hash[16];

	(void)state;
	for (int i = 0; i < 64; i++)
		data[i] = (uint8_t)i;
	memcpy(key, data, sizeof(key));
	for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
		siphash128(key, data, vectors[i].len, hash);
		assert_memory_equal(hash, vectors[i].hash, 16);
	}
}

static void test_proof(void **state)
{
	struct proof p = {.rank = 3, .size = 8}, q;
	uint8_t mac[MESSAGE_PROOF_BYTES];

	(void)state;
	assert_int_equal(proof_random(p.rank_nonce, sizeof(p.rank_nonce)), 0);
	assert_int_equal(proof_random(p.listener_nonce, sizeof(p.listener_nonce)), 0);
	proof_set_key(&p, "secret");
	proof_make(&p, PROOF_RANK, mac);
	assert_true(proof_holds(&p, PROOF_RANK, mac));
	assert_false(proof_holds(&p, PROOF_LISTENER, mac)); /* no reflection */
	q = p;
	proof_set_key(&q, "secreT");
	assert_false(proof_holds(&q, PROOF_RANK, mac));
	q = p;
	q.rank = 4;
	assert_false(proof_holds(&q, PROOF_RANK, mac));
	q = p;
	q.listener_nonce[15] ^= 1; /* no replay */
	assert_false(proof_holds(&q, PROOF_RANK, mac));
}

static void test_hello(void **state)
{
	struct message_rank in = {.rank = 2,
				  .size = 4,
				  .pid = 77,
				  .left_ms = 1234,
				  .secret = true,
				  .job_id = "0123456789abcdef0123456789abcdef",
				  .node = "0011223344556677",
				  .host = "node7"};
	struct message_rank out = {0};
	struct message_hello hello, bad;

	(void)state;
	message_put_hello(&hello, &in);
	assert_int_equal(message_get_hello(&hello, sizeof(hello), &out), 0);
	assert_int_equal(out.rank, 2);
	assert_int_equal(out.size, 4);
	assert_int_equal(out.pid, 77);
	assert_int_equal(out.left_ms, 1234);
	assert_true(out.secret);
	assert_string_equal(out.job_id, in.job_id);
	assert_string_equal(out.node, in.node);
	assert_string_equal(out.host, "node7");
	for (size_t len = 0; len < sizeof(hello); len++)
		assert_int_equal(message_get_hello(&hello, len, &out), -EPROTO);

	bad = hello;
	message_put32(&bad.version, 99u << 16 | 7);
	assert_int_equal(message_get_hello(&bad, sizeof(bad), &out), -EPROTONOSUPPORT);
	assert_non_null(strstr(error_text(), "99.7"));
	assert_int_equal(message_get_hello(&bad, 16, &out), -EPROTONOSUPPORT); /* whatever else it brings */
	bad = hello;
	bad.order = __builtin_bswap32(bad.order);
	assert_int_equal(message_get_hello(&bad, sizeof(bad), &out), -EPROTONOSUPPORT);
	assert_non_null(strstr(error_text(), "byte order"));
	bad = hello;
	memset(bad.host, '\n', sizeof(bad.host));
	assert_int_equal(message_get_hello(&bad, sizeof(bad), &out), 0);
	assert_int_equal(strlen(out.host), MESSAGE_HOST_BYTES);
	assert_int_equal(strspn(out.host, "?"), MESSAGE_HOST_BYTES);
}

static void test_gathered(void **state)
{
	uint8_t in[8 + 8 + 5] = {0}, out[8];
	uint32_t lengths[2];

	(void)state;
	message_put32(in, 9);
	message_put32(in + 4, GATHER_DIFFERENT);
	message_put32(in + 8, 2);
	message_put32(in + 12, 3);
	memcpy(in + 16, "abcde", 5);
	assert_int_equal(gather_unpack(in, sizeof(in), 2, 9, out, 5, lengths), 0);
	assert_int_equal(lengths[1], 3);
	assert_memory_equal(out, "abcde", 5);
	assert_int_equal(gather_unpack(in, sizeof(in), 2, 9, out, 4, lengths), -ENOBUFS);
	assert_int_equal(gather_unpack(in, sizeof(in), 2, 8, out, 5, lengths), -EPROTO);
	assert_int_equal(gather_unpack(in, sizeof(in) - 1, 2, 9, out, 5, lengths), -EPROTO);
	assert_int_equal(gather_unpack(in, 15, 2, 9, out, 5, lengths), -EPROTO);
	message_put32(in + 12, UINT32_MAX);
	assert_int_equal(gather_unpack(in, sizeof(in), 2, 9, out, 5, lengths), -EPROTO);
	/* All of one length, which is then there once. */
	message_put32(in + 4, 2);
	memcpy(in + 8, "abcd", 4);
	assert_int_equal(gather_unpack(in, 12, 2, 9, out, 4, lengths), 0);
	assert_int_equal(lengths[0], 2);
	assert_int_equal(lengths[1], 2);
	assert_memory_equal(out, "abcd", 4);
	assert_int_equal(gather_unpack(in, 11, 2, 9, out, 4, lengths), -EPROTO);
}

static void test_node(void **state)
{
	char one[17], two[17];

	(void)state;
	assert_int_equal(node_id(one), 0);
	assert_int_equal(node_id(two), 0);
	assert_string_equal(one, two);
	assert_int_equal(strspn(one, "0123456789abcdef"), 16);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_siphash),  cmocka_unit_test(test_proof), cmocka_unit_test(test_hello),
		cmocka_unit_test(test_gathered), cmocka_unit_test(test_node),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
