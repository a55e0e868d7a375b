/* SPDX-License-Identifier: MIT */
#ifndef IBVX_TRANSPORT_VERBS_QP_H
#define IBVX_TRANSPORT_VERBS_QP_H
/* qp: a queue pair that is connected by hand, without RDMA CM.  Every function calls the adapter: lock released, monitor thread. */
#include "transport/verbs/connection.h"

/* A queue pair in the state INIT; NULL: errno. */
struct ibv_qp *qp_make(struct verbs_conn *c, struct ibv_qp_init_attr *attr);
/* Fills in c->here. 0 or -errno with text. */
int qp_describe(struct verbs_conn *c);
/* Connects the queue pair to the other; after connection_take_credit(). 0 or -errno with text. */
int qp_connect(struct verbs_conn *c, const struct qp_address *there);

#endif
