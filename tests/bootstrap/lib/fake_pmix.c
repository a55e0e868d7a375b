/* SPDX-License-Identifier: MIT */
/*
 * A double of libpmix.so.2 for tests.  The ranks share the folder FAKE_PMIX_FOLDER: what rank r puts is a file there, and a
 * fence is over when all FAKE_PMIX_SIZE ranks have left a mark.
 *
 *   FAKE_PMIX_FAIL=PMIx_Put      that call fails
 *   FAKE_PMIX_HANG=PMIx_Fence    that call never returns
 *   FAKE_PMIX_VERSION=2.2.0      what PMIx_Get_version reports
 *   FAKE_PMIX_CARD=text          what PMIx_Get gives for a put value
 *   FAKE_PMIX_TYPE=3             the type of every value that PMIx_Get gives
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "bootstrap/pmix_abi.h"

static int fences;

#pragma GCC visibility push(default)
const char *PMIx_Get_version(void);
const char *PMIx_Error_string(int status);
int PMIx_Init(struct pmix_abi_proc *self, struct pmix_abi_info *info, size_t count);
int PMIx_Finalize(const struct pmix_abi_info *info, size_t count);
int PMIx_Put(uint8_t scope, const char *key, struct pmix_abi_value *value);
int PMIx_Commit(void);
int PMIx_Fence(const struct pmix_abi_proc *procs, size_t proc_count, const struct pmix_abi_info *info, size_t count);
int PMIx_Get(const struct pmix_abi_proc *proc, const char *key, const struct pmix_abi_info *info, size_t count,
	     struct pmix_abi_value **value);
#pragma GCC visibility pop

static const char *variable(const char *name, const char *fallback)
{
	return getenv(name) ? getenv(name) : fallback;
}

static void moment(void)
{
	nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
}

static int begin(const char *call)
{
	while (strcmp(variable("FAKE_PMIX_HANG", ""), call) == 0)
		moment();
	return strcmp(variable("FAKE_PMIX_FAIL", ""), call) == 0 ? -1 : 0;
}

static void path_of(char out[4096], const char *what, int number, uint32_t rank)
{
	snprintf(out, 4096, "%s/%s.%d.%u", variable("FAKE_PMIX_FOLDER", "."), what, number, rank);
}

static uint32_t own_rank(void)
{
	return (uint32_t)atoi(variable("PMIX_RANK", "0"));
}

static void write_file(const char *path, const char *bytes, size_t len)
{
	char fresh[4200];
	int fd;

	snprintf(fresh, sizeof(fresh), "%s.new", path);
	fd = open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, bytes, len) != (ssize_t)len)
		abort();
	close(fd);
	rename(fresh, path);
}

const char *PMIx_Get_version(void)
{
	return variable("FAKE_PMIX_VERSION", "FakePMIx 4.2.2 (PMIx Standard: 4.1)");
}

const char *PMIx_Error_string(int status)
{
	return status == -1 ? "FAKE-ERROR" : "?";
}

int PMIx_Init(struct pmix_abi_proc *self, struct pmix_abi_info *info, size_t count)
{
	(void)info;
	(void)count;
	snprintf(self->nspace, sizeof(self->nspace), "fake");
	self->rank = own_rank();
	return begin("PMIx_Init");
}

int PMIx_Finalize(const struct pmix_abi_info *info, size_t count)
{
	char path[4096];

	(void)info;
	(void)count;
	path_of(path, "finalized", 0, own_rank());
	write_file(path, "", 0);
	return begin("PMIx_Finalize");
}

int PMIx_Put(uint8_t scope, const char *key, struct pmix_abi_value *value)
{
	char path[4096];

	if (scope != PMIX_ABI_SCOPE_GLOBAL || value->type != PMIX_ABI_BYTE_OBJECT)
		return -2;
	path_of(path, key, 0, own_rank());
	write_file(path, value->data.bo.bytes, value->data.bo.size);
	return begin("PMIx_Put");
}

int PMIx_Commit(void)
{
	return begin("PMIx_Commit");
}

int PMIx_Fence(const struct pmix_abi_proc *procs, size_t proc_count, const struct pmix_abi_info *info, size_t count)
{
	int size = atoi(variable("FAKE_PMIX_SIZE", "1")), status = begin("PMIx_Fence");
	struct stat st;
	char path[4096];

	if (status)
		return status;
	if (proc_count != 1 || procs->rank != PMIX_ABI_RANK_WILDCARD || count != 1 || strcmp(info->key, PMIX_ABI_COLLECT) != 0 ||
	    !info->value.data.flag)
		return -2;
	path_of(path, "fence", ++fences, own_rank());
	write_file(path, "", 0);
	for (int r = 0; r < size; r++)
		for (path_of(path, "fence", fences, (uint32_t)r); stat(path, &st) < 0;)
			moment();
	return 0;
}

static void get_card(struct pmix_abi_value *v, const struct pmix_abi_proc *proc, const char *key)
{
	char path[4096], *bytes = calloc(1, 4096);
	const char *forged = getenv("FAKE_PMIX_CARD");
	ssize_t len;
	int fd;

	path_of(path, key, 0, proc->rank);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	len = fd >= 0 ? read(fd, bytes, 4096) : 0;
	close(fd);
	if (forged)
		len = snprintf(bytes, 4096, "%s", forged);
	v->type = PMIX_ABI_BYTE_OBJECT;
	v->data.bo.bytes = bytes;
	v->data.bo.size = (size_t)len;
}

int PMIx_Get(const struct pmix_abi_proc *proc, const char *key, const struct pmix_abi_info *info, size_t count,
	     struct pmix_abi_value **value)
{
	struct pmix_abi_value *v;
	int status = begin(strcmp(key, PMIX_ABI_JOB_SIZE) == 0     ? "PMIx_Get size"
			   : strcmp(key, PMIX_ABI_LOCAL_SIZE) == 0 ? "PMIx_Get local"
								   : "PMIx_Get");

	(void)info;
	(void)count;
	if (status)
		return status;
	v = calloc(1, sizeof(*v));
	*v = (struct pmix_abi_value){.type = PMIX_ABI_UINT32};
	if (strcmp(key, PMIX_ABI_JOB_SIZE) == 0)
		v->data.uint32 = (uint32_t)atoi(variable("FAKE_PMIX_SIZE", "1"));
	else if (strcmp(key, PMIX_ABI_LOCAL_SIZE) == 0)
		v->data.uint32 = (uint32_t)atoi(variable("FAKE_PMIX_LOCAL", "1"));
	else
		get_card(v, proc, key);
	if (getenv("FAKE_PMIX_TYPE"))
		v->type = (uint16_t)atoi(getenv("FAKE_PMIX_TYPE"));
	*value = v;
	return 0;
}
