/* SPDX-License-Identifier: MIT */
#ifndef IBVX_TRANSPORT_SHM_H
#define IBVX_TRANSPORT_SHM_H
/*
 * shm: the ranks of one node over shared memory.
 *
 * One segment per job and node: anonymous memory (memfd, mode 0600, named after the job) of the first local rank,
 * which the others open through /proc/PID/fd and know by its seals and by a random nonce in it.  It has no name in the file system at any moment, so a job that is
 * killed leaves nothing behind, and the size of /dev/shm does not matter.  It begins with a doorbell per rank (the word on which the rank sleeps, a bit per
 * neighbour that has opened a ring to it, its farewell) and is followed by a ring mapping for each ordered
 * pair: the ring of ring.h.  The file is sparse: a ring mapping costs memory only once its pair talks, and
 * is mapped then by the two of them.
 *
 * Deaths are noticed by pidfd; what the dead rank had committed is delivered first.
 */
#include "transport/transport.h"

extern const struct transport_ops transport_shm_ops;

#endif
