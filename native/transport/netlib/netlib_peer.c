/* SPDX-License-Identifier: MIT */
#include "transport/netlib/netlib_peer.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "transport/netlib/netlib_packet.h"

static void netlib_peer_note(struct netlib_peer *p)
{
	struct netlib *f = p->netlib;

	if (p->noted)
		return;
	p->noted = true;
	p->next_note = f->notes;
	f->notes = p;
	work_signal(&f->work);
}

void netlib_peer_connect(struct netlib_peer *p)
{
	if (p->state != NETLIB_IDLE)
		return;
	p->state = NETLIB_CONNECTING;
	netlib_peer_note(p);
}

void netlib_peer_end(struct netlib_peer *p, unsigned grace, int code, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	if (p->state == NETLIB_ENDING || p->state == NETLIB_DOWN)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	p->end_code = code;
	p->end_text = strdup(text);
	p->state = NETLIB_ENDING;
	p->grace = grace;
	p->netlib->chores += grace == 0;
}

void netlib_peer_forget(struct netlib_peer *p)
{
	if (p->state == NETLIB_DOWN)
		return;
	if (p->state == NETLIB_ENDING && p->grace == 0)
		p->netlib->chores--;
	if (p->ack_wanted)
		p->netlib->chores--;
	p->ack_wanted = false;
	p->state = NETLIB_DOWN;
	netlib_packet_drop(p);
	if (p->connected)
		netlib_peer_note(p);
}

/* On the monitor thread: the state may be another one when the lock is back. */
static void netlib_peer_make(struct netlib_peer *p)
{
	struct netlib *f = p->netlib;
	int status;

	f->outside = true;
	work_unlock(&f->work);
	status = f->ops->connect(p, p->address, &p->endpoint);
	work_lock(&f->work);
	f->outside = false;
	if (status) {
		netlib_peer_end(p, 0, f->ops->errno_of(status), "rank %d cannot be connected to by %s: %s", p->rank, f->ops->product,
				f->ops->text_of(f, status));
		return;
	}
	p->connected = true;
	if (p->state == NETLIB_CONNECTING)
		p->state = NETLIB_UP;
	else
		netlib_peer_note(p);
}

void netlib_peer_disconnect(struct netlib_peer *p, bool force)
{
	p->connected = false;
	p->netlib->ops->disconnect(p, p->endpoint, force);
}

void netlib_peer_on_work(void *netlib)
{
	struct netlib *f = netlib;

	work_begin(&f->work);
	while (f->notes) {
		struct netlib_peer *p = f->notes;

		f->notes = p->next_note;
		p->noted = false;
		if (p->state == NETLIB_CONNECTING && !p->connected) {
			netlib_peer_make(p);
		} else if (p->state == NETLIB_DOWN && p->connected) {
			f->outside = true;
			work_unlock(&f->work);
			netlib_peer_disconnect(p, true);
			work_lock(&f->work);
			f->outside = false;
		}
	}
}
