/* SPDX-License-Identifier: MIT */
/* The operations of traffic with pinnable memory (ibvx_pin.h). */
#include "fake_array.h"
#include "traffic.h"

#include <stdlib.h>
#include <string.h>

/* Both segments in one block, as heap sends want them. */
static char *send_copy(struct actor *a, const struct operation *op)
{
	char *copy = malloc(op->m.bytes[0] + op->m.bytes[1] + 1);

	if (!copy)
		traffic_fail(a->cfg, "no memory");
	for (int i = 0; i < 2; i++)
		memcpy(copy + (i ? op->m.bytes[0] : 0), op->memory[i], op->m.bytes[i]);
	return copy;
}

int op_copied_send(struct actor *a, struct operation *op)
{
	struct ibvx_sbuf buf = {NULL, op->m.bytes[0], NULL, op->m.bytes[1], op->m.user};
	char *copy = send_copy(a, op);

	buf.head = copy;
	buf.body = copy + op->m.bytes[0];
	return ibvx_pin_isend_copy(a->ep, copy, &buf, op->m.dst, op->m.tag, op->m.context, op->m.sync, &op->req);
}

static atomic_uint returned;

int op_zero_copy_send(struct actor *a, struct operation *op)
{
	const struct ibvx_sbuf buf = {NULL, op->m.bytes[0], NULL, op->m.bytes[1], op->m.user};
	struct ibvx_pin *donated = fake_array_donate(send_copy(a, op), op->m.bytes[0] + op->m.bytes[1], op->m.user, &returned);

	((struct fake_array *)donated)->refuse = rng_percent(&a->rng, 5);
	return ibvx_pin_isend(a->ep, donated, &buf, op->m.dst, op->m.tag, op->m.context, op->m.sync, &op->req);
}

int op_pinned_send(struct actor *a, struct operation *op)
{
	const struct ibvx_sbuf buf = {NULL, op->m.bytes[0], NULL, op->m.bytes[1], op->m.user};
	struct fake_array m;
	int err;

	fake_array_init(&m, send_copy(a, op), op->m.bytes[0] + op->m.bytes[1], op->m.user);
	m.refuse = rng_percent(&a->rng, 5);
	err = ibvx_pin_send(a->ep, &m.pinnable, &buf, op->m.dst, op->m.tag, op->m.context, op->m.sync);
	memset(m.at, 0xdd, m.bytes);
	free(m.at);
	return err;
}

/* One call that brings a message to pinnable memory. */
int op_heap_receive(struct actor *a, struct operation *op, enum pin_call call, ibvx_req *req, struct ibvx_status *s)
{
	const struct ibvx_want want = {op->source, op->tag, traffic_context(a->cfg, a->channel), op->capacity, 0, 0, NULL};
	struct fake_array m;
	int err = 0;

	fake_array_init(&m, op->memory[0], op->capacity, rng_next(&a->rng));
	m.refuse = rng_percent(&a->rng, 5);
	switch (call) {
	case PIN_RECV: err = ibvx_pin_recv(a->ep, &m.pinnable, &want, s); break;
	case PIN_MRECV: err = ibvx_pin_mrecv(a->ep, req, &m.pinnable, &want, s); break;
	case PIN_WAIT: err = ibvx_pin_wait(a->ep, req, &m.pinnable, s, -1); break;
	case PIN_TEST: err = ibvx_pin_test(a->ep, req, &m.pinnable, s); break;
	}
	fake_array_bring(&m);
	op->memory[0] = m.at;
	return err;
}
