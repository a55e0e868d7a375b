/* SPDX-License-Identifier: MIT */
/*
 * join: everybody finds rank 0.  What happens there is in door.c and knock.c.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "bootstrap/address.h"
#include "bootstrap/deadline.h"
#include "bootstrap/door.h"
#include "bootstrap/knock.h"
#include "bootstrap/launch.h"
#include "bootstrap/node.h"
#include "base/proof.h"
#include "bootstrap/star.h"

static int join_check_job_id(const char *id, const char *origin)
{
	size_t len = strlen(id);

	if (len != 0 && (len != MESSAGE_ID_BYTES || strspn(id, "0123456789abcdefABCDEF") != len))
		return error_set(-EINVAL, "job_id \"%.64s\" (%s) is not 32 hexadecimal digits", id, origin);
	return 0;
}

static int join_choose_job_id(struct bootstrap *b, const char *id)
{
	uint8_t drawn[MESSAGE_ID_BYTES / 2];
	int err;

	if (*id) {
		memcpy(b->job_id, id, MESSAGE_ID_BYTES);
		return 0;
	}
	err = proof_random(drawn, sizeof(drawn));
	for (size_t i = 0; !err && i < sizeof(drawn); i++)
		snprintf(b->job_id + 2 * i, 3, "%02x", drawn[i]);
	return err;
}

static int join_describe_self(struct bootstrap *b)
{
	struct message_rank *me = &b->peers[b->rank].who;

	me->rank = b->rank;
	me->size = b->size;
	me->pid = (int)getpid();
	if (gethostname(me->host, sizeof(me->host) - 1) < 0)
		snprintf(me->host, sizeof(me->host), "?");
	star_name_peer(b, b->rank);
	return node_id(me->node);
}

static int join_listen(struct bootstrap *b, struct address_listener *listener, int64_t deadline)
{
	int err = launch_listen(b->launch, listener, b->log, deadline);

	if (err == -EMFILE)
		err = star_no_descriptors("listening", b->size);
	return err ? error_prefix(err, "rank 0") : 0;
}

/* The card's secret becomes that of the job, unless the user has set one. */
static int join_take_card(struct bootstrap *b, const struct card *card)
{
	return *card->secret ? settings_set(b->settings, SETTINGS_CONF_FILE, setting_info(SETTING_JOB_SECRET)->name,
					    card->secret, "rank 0's card")
			     : 0;
}

static int join_as_root(struct bootstrap *b, const char *id, int64_t deadline)
{
	struct address_listener listener = {.count = 0};
	struct card card = {.host = ""};
	int err = join_choose_job_id(b, id);

	if (err || b->size == 1)
		return err;
	err = join_listen(b, &listener, deadline);
	if (err)
		return err;
	log_debug(b->log, "bootstrap: listening on port %d", listener.port);
	err = launch_publish(b->launch, &card, &listener, deadline);
	for (int i = 1; !err && i < b->size; i++)
		star_name_peer(b, i);
	if (!err)
		err = join_take_card(b, &card);
	if (err) {
		address_unlisten(&listener);
		return err;
	}
	return door_meet(b, &listener, settings_secret(b->settings), *id ? id : card.job_id, deadline);
}

static int join_as_leaf(struct bootstrap *b, const char *id, int64_t deadline)
{
	char where[LAUNCH_WHERE_BYTES];
	struct card card;
	int err = launch_fetch(b->launch, &card, deadline);

	if (!err)
		err = join_take_card(b, &card);
	if (err)
		return err;
	star_name_peer(b, 0);
	launch_where(b->launch, where);
	return knock(b, &card, where, settings_secret(b->settings), *id ? id : card.job_id, deadline);
}

int bootstrap_join(struct bootstrap *b, const struct log *log, char job_id[33])
{
	const char *id = settings_text(b->settings, SETTING_JOB_ID);
	int64_t deadline;
	int err;

	if (b->state != STAR_NEW)
		return error_set(-EINVAL, "a bootstrap joins once");
	b->log = log;
	b->timeout_ms = settings_int(b->settings, SETTING_START_TIMEOUT_MS);
	deadline = deadline_after_ms(b->timeout_ms);
	err = join_check_job_id(id, settings_origin(b->settings, SETTING_JOB_ID));
	if (!err)
		err = join_describe_self(b);
	if (!err)
		err = b->rank == 0 ? join_as_root(b, id, deadline)
				   : join_as_leaf(b, id, deadline);
	if (!err)
		err = watch_open(b);
	if (!err)
		err = launch_done(b->launch, deadline);
	if (err) {
		launch_abort(b->launch);
		return star_fail(b, err);
	}
	star_set_state(b, STAR_JOINED);
	memcpy(job_id, b->job_id, sizeof(b->job_id));
	return 0;
}
