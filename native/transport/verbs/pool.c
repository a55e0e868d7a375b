/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "base/error.h"
#include "transport/verbs/verbs_state.h"

void pool_warn_memory(struct verbs *v, size_t bytes)
{
	struct rlimit limit = {0, 0};

	if (v->warned_memory)
		return;
	v->warned_memory = true;
	getrlimit(RLIMIT_MEMLOCK, &limit);
	log_warn(v->env.log,
		 "verbs: %zu bytes cannot be registered for lack of locked memory: smaller buffers and copies do instead, which is slower. "
		 "\"ulimit -l\" says %llu KB here: raise it (limits.conf: \"* - memlock unlimited\"; containers: --ulimit memlock=-1)",
		 bytes, (unsigned long long)limit.rlim_cur / 1024);
}

int slab_open(struct verbs_slab *s, struct verbs_device *d, uint32_t count, size_t piece_bytes)
{
	const struct verbs_provider *api = d->verbs->api;
	size_t bytes = (size_t)count * piece_bytes;
	/* pages of its own: what is registered must not share a page with what is not */
	void *mem = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	*s = (struct verbs_slab){.bytes = bytes, .piece_bytes = piece_bytes, .count = count};
	if (mem == MAP_FAILED)
		return error_sys(-errno, "no memory for %zu bytes of buffers", bytes);
	s->mr = api->reg_mr(d->pd, mem, bytes, IBV_ACCESS_LOCAL_WRITE);
	if (!s->mr) {
		int err = errno;

		munmap(mem, bytes);
		return error_sys(-err, "registering %zu bytes of buffers%s", bytes,
				 err == ENOMEM ? " (too little locked memory? see ulimit -l)" : "");
	}
	s->mem = mem;
	return 0;
}

void slab_close(struct verbs_slab *s, const struct verbs_provider *api)
{
	if (s->mr)
		api->dereg_mr(s->mr);
	if (s->mem)
		munmap(s->mem, s->bytes);
	*s = (struct verbs_slab){0};
}

/* With an SRQ the index is slab and piece, 16 bits each. */
static const struct verbs_slab *pool_slab(const struct verbs_device *d, const struct verbs_link *l, uint32_t *index)
{
	const struct verbs_slab *s = l ? &l->rx : NULL;

	if (d->srq) {
		s = *index >> 16 < d->srq_slab_count ? &d->srq_slabs[*index >> 16] : NULL;
		*index &= 0xffff;
	}
	return s && *index < s->count ? s : NULL;
}

char *pool_receive(const struct verbs_device *d, const struct verbs_link *l, uint32_t index)
{
	const struct verbs_slab *s = pool_slab(d, l, &index);

	return s ? slab_piece(s, index) : NULL;
}

int pool_post_receive(struct verbs_device *d, struct verbs_link *l, uint32_t index)
{
	const struct verbs_provider *api = d->verbs->api;
	uint64_t id = verbs_work_id(VERBS_WORK_RECV, d->srq ? 0 : l->number, index);
	const struct verbs_slab *s = pool_slab(d, l, &index);
	struct ibv_sge sge;
	struct ibv_recv_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1}, *bad;
	int err;

	if (!s)
		return error_set(-EINVAL, "there is no receive buffer %u", index);
	sge = (struct ibv_sge){(uint64_t)(uintptr_t)slab_piece(s, index), (uint32_t)s->piece_bytes, s->mr->lkey};
	err = d->srq ? api->post_srq_recv(d->srq, &wr, &bad) : api->post_recv(l->qp, &wr, &bad);
	return err ? error_sys(-err, "posting a receive") : 0;
}
