/* SPDX-License-Identifier: MIT */
/* The operations of traffic whose memory moves (ibvx_heap.h). */
#include "moving.h"
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
	struct ibvx_sbuf buf = { NULL, op->m.bytes[0], NULL, op->m.bytes[1], op->m.user };
	char *copy = send_copy(a, op);

	buf.head = copy;
	buf.body = copy + op->m.bytes[0];
	return ibvx_heap_isend_copy(a->ep, copy, &buf, op->m.dst, op->m.tag, op->m.context, op->m.sync, &op->req);
}

static atomic_uint returned;

int op_lent_send(struct actor *a, struct operation *op)
{
	const struct ibvx_sbuf buf = { NULL, op->m.bytes[0], NULL, op->m.bytes[1], op->m.user };
	struct ibvx_heap *lent = moving_lend(send_copy(a, op), op->m.bytes[0] + op->m.bytes[1], op->m.user, &returned);

	((struct moving *)lent)->refuse = rng_percent(&a->rng, 5);
	return ibvx_heap_isend(a->ep, lent, &buf, op->m.dst, op->m.tag, op->m.context, op->m.sync, &op->req);
}

int op_moving_send(struct actor *a, struct operation *op)
{
	const struct ibvx_sbuf buf = { NULL, op->m.bytes[0], NULL, op->m.bytes[1], op->m.user };
	struct moving m;
	int err;

	moving_init(&m, send_copy(a, op), op->m.bytes[0] + op->m.bytes[1], op->m.user);
	m.refuse = rng_percent(&a->rng, 5);
	err = ibvx_heap_send(a->ep, &m.heap, &buf, op->m.dst, op->m.tag, op->m.context, op->m.sync);
	memset(m.at, 0xdd, m.bytes);
	free(m.at);
	return err;
}

/* One call that brings a message to memory that moves. */
int op_heap_receive(struct actor *a, struct operation *op, enum heap_call call, ibvx_req *req,
			struct ibvx_status *s)
{
	const struct ibvx_want want = { op->source, op->tag, traffic_context(a->cfg, a->lane), op->capacity, 0, 0, NULL };
	struct moving m;
	int err = 0;

	moving_init(&m, op->memory[0], op->capacity, rng_next(&a->rng));
	m.refuse = rng_percent(&a->rng, 5);
	switch (call) {
	case HEAP_RECV:
		err = ibvx_heap_recv(a->ep, &m.heap, &want, s);
		break;
	case HEAP_MRECV:
		err = ibvx_heap_mrecv(a->ep, req, &m.heap, &want, s);
		break;
	case HEAP_WAIT:
		err = ibvx_heap_wait(a->ep, req, &m.heap, s);
		break;
	case HEAP_TEST:
		err = ibvx_heap_test(a->ep, req, &m.heap, s);
		break;
	}
	moving_bring(&m);
	op->memory[0] = m.at;
	return err;
}
