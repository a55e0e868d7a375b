/* SPDX-License-Identifier: MIT */
#ifndef IBVX_BOOTSTRAP_STATE_H
#define IBVX_BOOTSTRAP_STATE_H
/*
 * bootstrap_state: the inside of struct bootstrap: a launcher below, the protocol engine and its sockets.
 */
#include "bootstrap/bootstrap.h"
#include "bootstrap/launch.h"
#include "bootstrap/net.h"

#define BOOTSTRAP_NAME_BYTES 192

struct bootstrap {
	int rank, size;
	struct launch *launch;
	struct settings *settings;
	const struct log *log;
	struct net net;
	struct tree *tree; /* NULL before the join */
	bool joins;        /* a join was tried */
	bool in_event;     /* inside an upcall */
	uint32_t gathers;
	char node[17];
	char where[LAUNCH_WHERE_BYTES];
	char failure[MESSAGE_TEXT_BYTES + 1]; /* a join that failed before there was a tree */
	int failure_code;
	char name[BOOTSTRAP_NAME_BYTES];
};

/* What is known of a rank before it is known from itself; the signature is that of tree_config.name. */
void bootstrap_early_name(const struct bootstrap *b, int rank, char *out, size_t size);

#endif
