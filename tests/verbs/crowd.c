/* SPDX-License-Identifier: MIT */
#include "crowd.h"

#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "transport/verbs/route.h"

#define CROWD_PORT 20000
#define CROWD_CREDIT 8
#define CROWD_CREDIT_MAX 32

static struct crowd *crowd;

static struct private_data crowd_data(const struct crowd_rank *f, enum refusal why)
{
	struct private_data d = {.magic = PRIVATE_DATA_MAGIC,
				 .rank = (uint32_t)f->rank,
				 .credit = CROWD_CREDIT,
				 .credit_max = CROWD_CREDIT_MAX,
				 .reads = 4,
				 .refusal = (uint16_t)why};

	for (int i = 0; i < 16; i++)
		d.job[i] = (uint8_t)("\x01\x23\x45\x67\x89\xab\xcd\xef"[i % 8]);
	return d;
}

/* --- packets --- */

static void crowd_put(struct crowd_rank *f, struct wire_hdr hdr)
{
	unsigned char packet[256];

	assert_true(f->credit > 0);
	assert_true(sizeof(hdr) + hdr.len <= sizeof(packet));
	hdr.stamp = (uint16_t)f->unreturned;
	memcpy(packet, &hdr, sizeof(hdr));
	for (uint32_t i = 0; i < hdr.len; i++)
		packet[sizeof(hdr) + i] = pair_byte(hdr.ctl.value, i);
	f->credit--;
	f->unreturned = 0;
	f->has_sent = true;
	crowd->actions++;
	assert_true(adapter_inject(packet, (uint32_t)sizeof(hdr) + hdr.len, f->id->qp));
}

static void crowd_own(struct crowd_rank *f, enum own_packet id)
{
	crowd_put(f, (struct wire_hdr){.kind = WIRE_NONE, .ctl = {.id = id}});
}

static bool crowd_send(struct crowd_rank *f)
{
	if (f->sent == f->to_send || f->credit < 2)
		return false;
	f->sent++;
	crowd_put(f, (struct wire_hdr){.kind = WIRE_CTS, .len = (uint32_t)(f->sent * 7 % 100), .ctl = {.value = f->sent}});
	return true;
}

static void crowd_packet(void *far, const void *bytes, uint32_t len)
{
	const unsigned char *payload = (const unsigned char *)bytes + sizeof(struct wire_hdr);
	struct crowd_rank *f = far;
	struct wire_hdr hdr;

	assert_true(len >= sizeof(hdr));
	memcpy(&hdr, bytes, sizeof(hdr));
	assert_int_equal(len, sizeof(hdr) + hdr.len);
	assert_non_null(f->id); /* nothing is sent before the connection stands */
	f->credit += hdr.stamp;
	f->unreturned++;
	assert_in_range(f->unreturned, 0, CROWD_CREDIT_MAX);
	crowd->actions++;
	if (hdr.kind != WIRE_NONE) {
		assert_int_equal(hdr.ctl.value, ++f->got);
		for (uint32_t i = 0; i < hdr.len; i++)
			assert_int_equal(payload[i], pair_byte(hdr.ctl.value, i));
	}
}

/* --- connecting --- */

static void *crowd_requested(struct rdma_cm_id *id, uint16_t port, const void *data)
{
	int r = ntohs(port) - CROWD_PORT;
	struct crowd_rank *f;
	struct private_data d;

	assert_in_range(r, 0, crowd->size - 1);
	assert_int_not_equal(r, crowd->me);
	f = &crowd->ranks[r];
	memcpy(&d, data, sizeof(d));
	assert_int_equal(d.rank, crowd->me);
	assert_null(f->asked); /* one request at a time */
	f->asked = id;
	if (!f->id && !f->accepted)
		f->credit = d.credit;
	crowd->actions++;
	return f;
}

static void crowd_answered(void *far, struct rdma_cm_id *id, bool accepted, const void *data)
{
	struct crowd_rank *f = far;
	struct private_data d;

	assert_ptr_equal(id, f->called);
	memcpy(&d, data, sizeof(d));
	crowd->actions++;
	if (accepted) {
		f->accepted = true;
		f->credit = d.credit;
		return;
	}
	assert_int_equal(d.refusal, REFUSAL_CROSSED);
	assert_true(f->rank < crowd->me); /* the request of the higher rank stands, and this one awaits it */
	crowd->crossed++;
	f->called = NULL;
	f->calls = false;
}

/* The transport has closed its end. */
static void crowd_ended(void *far, struct rdma_cm_id *id)
{
	struct crowd_rank *f = far;

	if (f->called == id) {
		f->called = NULL;
		f->accepted = false;
	}
	if (f->asked == id)
		f->asked = NULL;
	if (f->id == id)
		f->id = NULL;
	crowd->actions++;
}

static const struct adapter_far crowd_far = {crowd_requested, crowd_answered, crowd_packet, crowd_ended};

static bool crowd_trouble(struct crowd_rank *f)
{
	if (!f->never && (f->troubles == crowd->most || !rng_percent(&crowd->rng, crowd->trouble_percent)))
		return false;
	f->troubles++;
	crowd->troubles++;
	return true;
}

/* Without data: as if nobody had looked at it. */
static void crowd_turn_away(struct crowd_rank *f, struct rdma_cm_id *id)
{
	switch (f->never ? (uint64_t)(f->rank & 1) : rng_below(&crowd->rng, 3)) {
	case 0: adapter_answer(id, RDMA_CM_EVENT_REJECTED, ADAPTER_BUSY, NULL, 0); return;
	case 1: adapter_answer(id, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT, NULL, 0); return;
	default: adapter_answer(id, RDMA_CM_EVENT_REJECTED, -ECONNRESET, NULL, 0); return;
	}
}

/* The transport's request is answered. */
static void crowd_answer(struct crowd_rank *f)
{
	struct private_data d = crowd_data(f, REFUSAL_NONE);
	struct rdma_cm_id *id = f->asked;

	f->asked = NULL;
	if (f->id || f->accepted || (f->called && f->rank > crowd->me)) {
		d = crowd_data(f, REFUSAL_CROSSED);
		crowd->crossed++;
		adapter_answer(id, RDMA_CM_EVENT_REJECTED, ADAPTER_BUSY, &d, sizeof(d));
		return;
	}
	if (f->called) { /* theirs stands */
		adapter_hang_up(f->called);
		f->called = NULL;
	}
	if (crowd_trouble(f)) {
		crowd_turn_away(f, id);
		return;
	}
	f->calls = false;
	f->id = id;
	adapter_answer(id, RDMA_CM_EVENT_ESTABLISHED, 0, &d, sizeof(d));
}

/* Our request was accepted: the first packets, and the event, whichever comes first. */
static void crowd_establish(struct crowd_rank *f)
{
	struct rdma_cm_id *id = f->called;
	bool packets_first = rng_percent(&crowd->rng, 50);

	f->called = NULL;
	f->accepted = false;
	if (crowd_trouble(f)) {
		crowd_turn_away(f, id);
		return;
	}
	f->calls = false;
	f->id = id;
	if (!packets_first)
		adapter_answer(id, RDMA_CM_EVENT_ESTABLISHED, 0, NULL, 0);
	crowd_own(f, OWN_HELLO);
	while (packets_first && crowd_send(f))
		;
	if (packets_first)
		adapter_answer(id, RDMA_CM_EVENT_ESTABLISHED, 0, NULL, 0);
}

static void crowd_call(struct crowd_rank *f)
{
	struct private_data d = crowd_data(f, REFUSAL_NONE);

	f->called = adapter_call(crowd->port, f, &d, sizeof(d));
	if (!f->called)
		crowd->full++;
	crowd->actions++;
}

static void crowd_act(struct crowd_rank *f)
{
	if (f->asked) {
		crowd_answer(f);
	} else if (f->accepted) {
		crowd_establish(f);
	} else if (f->called) {
		if (!crowd_trouble(f))
			return;
		adapter_hang_up(f->called); /* and its sender does not wait any longer, but calls again */
		f->called = NULL;
	} else if (f->id) {
		if (!f->has_sent && f->unreturned > 0)
			crowd_own(f, OWN_HELLO);
		else if (f->has_sent && !crowd_send(f) && f->unreturned >= 2 && f->credit > 0)
			crowd_own(f, OWN_CREDIT);
		return;
	} else if (f->calls) {
		crowd_call(f);
	} else {
		return;
	}
	crowd->actions++;
}

int crowd_draw(struct crowd *c)
{
	int r = (int)rng_below(&c->rng, (uint64_t)c->size - 1);

	return r < c->me ? r : r + 1;
}

void crowd_step(struct crowd *c)
{
	crowd_act(&c->ranks[crowd_draw(c)]);
}

bool crowd_done(const struct crowd *c)
{
	for (int r = 0; r < c->size; r++) {
		const struct crowd_rank *f = &c->ranks[r];

		if (r != c->me && !f->never && (f->sent < f->to_send || f->got < f->to_get || c->side->from[r] < f->to_send))
			return false;
	}
	return true;
}

void crowd_open(struct crowd *c, struct side *s, int size, int me, uint64_t seed, const struct settings *settings, const struct log *log)
{
	struct transport_peer_info *info = calloc((size_t)size, sizeof(*info));
	struct route_blob *blobs = calloc((size_t)size, sizeof(*blobs)), own;
	int bytes = side_open(s, me, size, settings, log, &own, sizeof(own));

	assert_true(bytes > 0);
	*c = (struct crowd){.side = s, .size = size, .me = me, .port = own.entry[0].port, .rng = rng_seed(seed, 2)};
	c->ranks = calloc((size_t)size, sizeof(*c->ranks));
	s->from = calloc((size_t)size, sizeof(*s->from));
	for (int r = 0; r < size; r++) {
		c->ranks[r].rank = r;
		blobs[r] = own;
		blobs[r].entry[0].port = htons((uint16_t)(CROWD_PORT + r));
		info[r] = (struct transport_peer_info){.address = &blobs[r], .address_bytes = (size_t)bytes};
	}
	assert_int_equal(transport_verbs_ops.attach(s->t, info), 0);
	adapter_far = &crowd_far;
	adapter_locked = true;
	crowd = c;
	free(info);
	free(blobs);
}

void crowd_close(struct crowd *c)
{
	side_close(c->side);
	adapter_locked = false;
	free(c->side->from);
	free(c->ranks);
	crowd = NULL;
	adapter_far = NULL;
}
