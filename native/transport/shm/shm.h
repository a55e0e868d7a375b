/* SPDX-License-Identifier: MIT */
#ifndef IBVX_TRANSPORT_SHM_H
#define IBVX_TRANSPORT_SHM_H
/*
 * shm: the ranks of one node over shared memory.
 *
 * One segment per job and node, /dev/shm/ibvdev-<job id>-<node id>, mode 0600, unlinked as soon as
 * everybody is attached.  It begins with a door per rank (the bell on which the rank sleeps, a bit per
 * neighbour that has opened a ring to it, its farewell) and is followed by a window for each ordered
 * pair: the ring of ring.h.  The file is sparse: a window costs memory only once its pair talks, and
 * is mapped then by the two of them.
 *
 * Deaths are noticed by pidfd; what the dead rank had committed is delivered first.
 */
#include "transport/transport.h"

extern const struct transport_ops transport_shm_ops;

#endif
