/* SPDX-License-Identifier: MIT */
#include "core/send.h"

#include <errno.h>

#include "core/cost.h"
#include "core/eager.h"
#include "core/flow_control.h"
#include "core/packet.h"
#include "core/peer.h"
#include "core/rendezvous.h"

int send_emit(struct request *r)
{
	struct peer *p = r->peer;
	size_t total = request_total(r);

	p->talked = true;
	if (r->state == REQ_PUSHING)
		return eager_emit_more(r);
	if (r->method == COST_UNDECIDED)
		r->method = (uint8_t)cost_choose(r);
	if (total <= p->eager_max && r->method != COST_GET && flow_allows_eager(p, total))
		return total <= packet_piece_bytes(p, total) ? eager_emit(r) : eager_emit_first(r);
	if (!flow_allows_envelope(p))
		return -ENOBUFS;
	return rendezvous_announce(r);
}

void send_start(struct request *r)
{
	r->emit = send_emit;
	list_append(&r->peer->sends, &r->link);
	/* behind others there is nothing to try: the busy list or credit brings their turn */
	if (r->peer->sends.next == &r->link || !r->peer->stalled_sent)
		peer_flush(r->peer);
}
