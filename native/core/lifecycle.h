/* SPDX-License-Identifier: MIT */
#ifndef IBVX_CORE_LIFECYCLE_H
#define IBVX_CORE_LIFECYCLE_H
/*
 * lifecycle: how an endpoint comes to be from settings and bootstrap, and how it ends.
 */
#include "core/core.h"

/* The settings that a configuration asks for, conf file aside. 0 or -errno with text. */
int life_settings(struct settings **out, const struct ibvx_config *cfg);

/* Announces the end over the control tree. Lock held. */
void life_leave(struct ibvx *ep);

/* Frees the endpoint and what ibvx_open made for it. No lock, no other thread inside. */
void life_end(struct ibvx *ep);

#endif
