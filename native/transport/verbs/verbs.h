/* SPDX-License-Identifier: MIT */
#ifndef IBVX_TRANSPORT_VERBS_H
#define IBVX_TRANSPORT_VERBS_H
/*
 * verbs: ranks that an RDMA adapter reaches (InfiniBand, RoCE, iWARP).
 *
 * One reliable connection (RC queue pair) per pair of ranks, made by RDMA CM, or by a
 * wire-up over TCP, when the pair first talks.
 * Packets are sends into registered buffers of the receiver, bounded by credit; gets and puts are
 * RDMA reads and writes of memory that is registered for the time of the message.
 *
 * env.test, where it is not NULL, is the struct verbs_provider to call instead of the libraries.
 */
#include "transport/transport.h"

extern const struct transport_ops transport_verbs_ops;

#endif
