/* SPDX-License-Identifier: MIT */
#include "transport/verbs/memory.h"

#include <errno.h>
#include <string.h>

void memory_warn(const struct rma_memory *m, struct verbs *v, int err)
{
	size_t bytes = m->use[0].len + m->use[1].len;

	if (err == -ENOMEM || err == -EAGAIN)
		device_warn_memory(v, bytes);
	else
		log_info(v->env.log, "verbs: memory of %zu bytes cannot be registered: %s", bytes, strerror(-err));
}

int memory_register(struct rma_memory *m, struct regcache *regs, void *const base[2], const size_t len[2], int access,
		    void (*ready)(struct regcache_use *use, int err), void *owner)
{
	bool joined = len[0] && len[1] && (char *)base[0] + len[0] == base[1];
	int rc = 0;

	m->regs = regs;
	for (int i = 0; i < 2 && rc == 0; i++) {
		m->use[i] = (struct regcache_use){.ready = ready, .owner = owner};
		if (!len[i])
			continue;
		rc = regcache_use(regs, &m->use[i], joined ? base[0] : base[i], joined ? len[0] + len[1] : len[i], access);
		m->pending += rc == -EINPROGRESS;
		rc = rc == -EINPROGRESS ? 0 : rc;
	}
	if (rc == 0)
		return m->pending > 0 ? -EINPROGRESS : 0;
	for (int i = 0; i < 2; i++)
		regcache_unuse(regs, &m->use[i]);
	return rc;
}

void memory_release(struct rma_memory *m)
{
	for (int i = 0; i < 2; i++)
		regcache_unuse(m->regs, &m->use[i]);
	m->pending = 0;
}

bool memory_revoke(struct rma_memory *m)
{
	m->pending = 0;
	for (int i = 0; i < 2; i++)
		m->pending += regcache_revoke(m->regs, &m->use[i]);
	return m->pending > 0;
}
