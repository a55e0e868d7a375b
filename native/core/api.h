/* SPDX-License-Identifier: MIT */
#ifndef IBVX_CORE_API_H
#define IBVX_CORE_API_H
/*
 * api: what the files behind ibvx.h share.  The caller holds the core's lock.
 */
#include "core/core.h"

/* -ESHUTDOWN with its text once the endpoint is closing. */
int api_check_open(const struct ibvx *ep);

/* 0, or -EINVAL with a text that says what the rank is of. */
int api_check_rank(const struct ibvx *ep, int rank, const char *what);
int api_check_send(struct ibvx *ep, const struct ibvx_sbuf *buf, int dest);

/* A fresh request, or NULL with the text set. The arguments have been checked. */
struct request *api_new_send(struct ibvx *ep, const struct ibvx_sbuf *buf, int dest, int tag, int context, bool sync);
struct request *api_new_recv(struct ibvx *ep, const struct ibvx_rbuf *buf, int source, int tag, int context);

/* 1: the message has left as one packet; 0: it takes the general way; or an error. */
int api_at_once(struct ibvx *ep, const struct ibvx_sbuf *buf, int dest, int tag, int context);

/* Sets a non-blocking send going; it may be complete afterwards. */
void api_start_send(struct ibvx *ep, struct request *r, const struct ibvx_sbuf *buf);

/* Takes the message out of its handle, which is gone; NULL with the text set. */
struct umsg *api_take_message(struct ibvx *ep, ibvx_req *message);

/* The request behind a handle that may be waited for, or NULL with the text set. */
struct request *api_find(struct ibvx *ep, ibvx_req req);

/* For wait_until(): is the request (arg) complete? */
bool api_request_done(struct ibvx *ep, void *arg);

/* Waits for a request that no other thread waits for, and consumes it. */
int api_wait_request(struct ibvx *ep, struct request *r, struct ibvx_status *status);

#endif
