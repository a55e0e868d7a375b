/* SPDX-License-Identifier: MIT */
#include "bootstrap/node.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/proof.h"
#include "base/siphash.h"

struct node_facts {
	char boot_id[40];
	uint64_t pid_namespace;
	uint64_t ipc_namespace;
	uint64_t shm_device;
};

static int node_read_boot_id(char *out, size_t size)
{
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t got;

	if (fd < 0)
		return -errno;
	got = read(fd, out, size);
	close(fd);
	return got > 0 ? 0 : -EIO;
}

static int node_read_facts(struct node_facts *facts)
{
	struct statx pid, ipc, shm;

	memset(facts, 0, sizeof(*facts));
	if (node_read_boot_id(facts->boot_id, sizeof(facts->boot_id)) < 0)
		return -ENOENT;
	if (statx(AT_FDCWD, "/proc/self/ns/pid", 0, STATX_BASIC_STATS, &pid) < 0 ||
	    statx(AT_FDCWD, "/proc/self/ns/ipc", 0, STATX_BASIC_STATS, &ipc) < 0)
		return -errno;
	facts->pid_namespace = pid.stx_ino;
	facts->ipc_namespace = ipc.stx_ino;
	if (statx(AT_FDCWD, "/dev/shm", 0, STATX_BASIC_STATS, &shm) == 0)
		facts->shm_device = makedev(shm.stx_dev_major, shm.stx_dev_minor);
	return 0;
}

int node_id(char out[17])
{
	static const uint8_t key[16] = "ibvdev node id 1";
	struct node_facts facts;
	uint8_t hash[16];

	if (node_read_facts(&facts) == 0) {
		siphash128(key, &facts, sizeof(facts), hash);
	} else {
		int err = proof_random(hash, sizeof(hash));

		if (err)
			return err;
	}
	for (int i = 0; i < 8; i++)
		snprintf(out + 2 * i, 3, "%02x", hash[i]);
	return 0;
}
