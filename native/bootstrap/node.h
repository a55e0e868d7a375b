/* SPDX-License-Identifier: MIT */
#ifndef IBVX_BOOTSTRAP_NODE_H
#define IBVX_BOOTSTRAP_NODE_H
/*
 * node: a name for "where memory and process ids can be shared".
 *
 * Equal exactly for processes of one boot of one kernel that are in the same pid and ipc
 * namespaces and see the same /dev/shm: two containers on one machine are two nodes
 * unless they share all of that.
 */

/* 16 hex digits and NUL.  If the kernel does not report it (no /proc), the name is random: such a rank
 * is alone on its node.  0 or -errno with text. */
int node_id(char out[17]);

#endif
