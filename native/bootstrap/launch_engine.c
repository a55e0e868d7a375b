/* SPDX-License-Identifier: MIT */
/*
 * launch_engine: what all engines have in common: one session in a process, and rank 0's listener.
 *
 *   UNUSED --open--> OPEN --done--> MET      (every later open of this process: again)
 *                     `--close without done, failure--> FAILED (every later open: -ESTALE)
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "bootstrap/deadline.h"
#include "bootstrap/interfaces.h"
#include "bootstrap/launch_row.h"

/* A round that is ending may still hold the port for a moment. */
#define ENGINE_LISTEN_MS 2000

enum session_state { SESSION_UNUSED, SESSION_OPEN, SESSION_MET, SESSION_FAILED };

/* The engine has one session for this process, so the process has one memory of it. */
static struct {
	pthread_mutex_t lock;
	enum session_state state;
	const struct launch_row *row;
	int rank, size, local_size;
	struct card card;
} session = {.lock = PTHREAD_MUTEX_INITIALIZER};

int launch_variable(const char *name, int64_t min, int64_t max, int *out)
{
	const char *text = getenv(name);
	int64_t number;

	if (!text || !*text)
		return -ENOENT;
	if (conf_number(text, min, max, &number) < 0)
		return error_set(-EINVAL, "%s=%.40s of the environment is not a number from %lld to %lld", name, text, (long long)min,
				 (long long)max);
	*out = (int)number;
	return 0;
}

static int engine_claim(struct launch *l)
{
	int err = 0;

	pthread_mutex_lock(&session.lock);
	if (session.state != SESSION_UNUSED && session.row != l->row) {
		err = error_set(-EBUSY, "this process has used %s before and cannot turn to %s", session.row->title, l->row->title);
	} else if (session.state == SESSION_UNUSED) {
		session.state = SESSION_OPEN;
		session.row = l->row;
		l->holds = true;
	} else if (session.state == SESSION_OPEN) {
		err = error_set(-EBUSY, "another thread is opening an endpoint by %s; open one after the other", l->row->title);
	} else if (session.state == SESSION_FAILED) {
		err = error_set(-ESTALE,
				"a start by %s has failed in this process before, and its session serves once; "
				"start the job again",
				l->row->title);
	} else {
		l->again = true;
		l->rank = session.rank;
		l->size = session.size;
		l->local_size = session.local_size;
		l->card = session.card;
	}
	pthread_mutex_unlock(&session.lock);
	return err;
}

int launch_engine_open(struct launch *l, const struct bootstrap_config *cfg, int64_t deadline)
{
	int err = engine_claim(l);

	return err || l->again ? err : l->row->open(l, cfg, deadline);
}

static void engine_set_where(struct launch *l, int port)
{
	snprintf(l->where, sizeof(l->where), "%s port %d (from %s)", l->card.host, port, l->row->title);
}

void launch_engine_loopback(struct address_list *list)
{
	list->count = 2;
	address_from_numeric(&list->at[0], "127.0.0.1", 0);
	address_from_numeric(&list->at[1], "::1", 0);
}

int launch_engine_addresses(const struct launch *l, struct address_list *list, bool *only)
{
	bool narrowed = *settings_text(l->settings, SETTING_NET) != '\0';

	*only = narrowed || l->local_size == l->size;
	if (narrowed || !*only)
		return interfaces_find(list, l->settings);
	/* All ranks are on this node: nobody else has to see the port. */
	launch_engine_loopback(list);
	return 0;
}

int launch_engine_listen(struct launch *l, struct address_listener *listener, int64_t deadline)
{
	static const struct timespec pause = {.tv_nsec = 20 * CLOCK_NS_PER_MS};
	int64_t patience = deadline_earlier(deadline, deadline_after_ms(ENGINE_LISTEN_MS));
	int port = l->again ? address_port(&l->card.addresses.at[0]) : 0;
	struct address_list list;
	bool only;
	int err = launch_engine_addresses(l, &list, &only);

	if (err)
		return err;
	while ((err = address_listen(listener, only ? &list : NULL, port)) == -EADDRINUSE && port && deadline_left_ms(patience) > 0)
		nanosleep(&pause, NULL);
	if (err == -EADDRINUSE)
		return error_set(err,
				 "port %d, at which the ranks of this job have met before, is in use by another "
				 "process now; start the job again",
				 port);
	return err;
}

int launch_engine_publish(struct launch *l, struct card *card, const struct address_listener *listener, int64_t deadline)
{
	bool only;
	int err = 0;

	if (!l->again) {
		err = launch_engine_addresses(l, &card->addresses, &only);
		if (!err)
			err = card_draw(card);
		if (gethostname(card->host, sizeof(card->host) - 1) < 0)
			snprintf(card->host, sizeof(card->host), "rank 0");
		for (int i = 0; i < card->addresses.count; i++)
			address_set_port(&card->addresses.at[i], listener->port);
		l->card = *card;
		engine_set_where(l, listener->port);
		return err ? err : l->row->publish(l, card, listener, deadline);
	}
	*card = l->card;
	engine_set_where(l, listener->port);
	return 0;
}

int launch_engine_fetch(struct launch *l, struct card *card, int64_t deadline)
{
	int err = l->again ? 0 : l->row->fetch(l, &l->card, deadline);

	if (err)
		return err;
	*card = l->card;
	engine_set_where(l, address_port(&card->addresses.at[0]));
	return 0;
}

int launch_engine_done(struct launch *l, int64_t deadline)
{
	int err = l->again || !l->row->done ? 0 : l->row->done(l, deadline);

	if (err || !l->holds)
		return err;
	pthread_mutex_lock(&session.lock);
	session.state = SESSION_MET;
	session.rank = l->rank;
	session.size = l->size;
	session.local_size = l->local_size;
	session.card = l->card;
	pthread_mutex_unlock(&session.lock);
	l->holds = false;
	return 0;
}

void launch_engine_close(struct launch *l)
{
	if (l->session)
		l->row->close(l);
	l->session = NULL;
	if (!l->holds)
		return;
	pthread_mutex_lock(&session.lock);
	session.state = SESSION_FAILED;
	pthread_mutex_unlock(&session.lock);
	l->holds = false;
}
