/* SPDX-License-Identifier: MIT */
#include "transport/loader.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/error.h"

/* Tables that other threads may still read are kept; the next but one call frees them. */
#define LOADER_KEPT 2

static pthread_mutex_t loader_lock = PTHREAD_MUTEX_INITIALIZER;
static char **loader_kept[LOADER_KEPT];

static bool loader_names(const char *entry, const char *name)
{
	size_t len = strlen(name);

	return strncmp(entry, name, len) == 0 && entry[len] == '=';
}

/* The variables that count: those which the user has not set, or which override that. */
static bool loader_applies(const struct loader_variable *v)
{
	return v->overrides || !getenv(v->name);
}

/* One block: the table, then the new strings. */
static char **loader_table(const struct loader_variable *variables, size_t count)
{
	size_t entries = 0, bytes = 0, at = 0;
	char **table, *text;

	while (environ && environ[entries])
		entries++;
	for (size_t i = 0; i < count; i++)
		bytes += strlen(variables[i].name) + strlen(variables[i].value) + 2;
	table = malloc((entries + count + 1) * sizeof(*table) + bytes);
	if (!table)
		return NULL;
	text = (char *)(table + entries + count + 1);
	for (size_t i = 0; i < count; i++) {
		if (!loader_applies(&variables[i]))
			continue;
		table[at++] = text;
		text += sprintf(text, "%s=%s", variables[i].name, variables[i].value) + 1;
	}
	for (size_t e = 0; e < entries; e++) {
		bool replaced = false;

		for (size_t i = 0; i < count; i++)
			replaced = replaced || (variables[i].overrides && loader_names(environ[e], variables[i].name));
		if (!replaced)
			table[at++] = environ[e];
	}
	table[at] = NULL;
	return table;
}

/* By the system call: what stands between it and sigaction() in a JVM (libjsig) would note a change that is none. */
static long loader_action_swap(int number, const struct loader_action *to, struct loader_action *from)
{
	return syscall(SYS_rt_sigaction, number, to, from, LOADER_SIGNALS / 8);
}

/* Those between belong to the C library, which installs its handlers when it first needs them. */
static bool loader_watches(int number)
{
	return number < 32 || number >= SIGRTMIN;
}

int loader_begin(struct loader *l, const struct loader_variable *variables, size_t count)
{
	sigset_t all;

	memset(l, 0, sizeof(*l));
	pthread_mutex_lock(&loader_lock);
	l->ours = loader_table(variables, count);
	if (!l->ours) {
		pthread_mutex_unlock(&loader_lock);
		return error_set(-ENOMEM, "no memory for the environment of a library");
	}
	free(loader_kept[LOADER_KEPT - 1]);
	memmove(loader_kept + 1, loader_kept, (LOADER_KEPT - 1) * sizeof(*loader_kept));
	loader_kept[0] = l->ours;
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &l->signals);
	for (int s = 1; s <= LOADER_SIGNALS; s++) {
		if (loader_watches(s))
			loader_action_swap(s, NULL, &l->action[s - 1]);
	}
	l->environment = environ;
	__atomic_store_n(&environ, l->ours, __ATOMIC_RELEASE);
	return 0;
}

int loader_end(struct loader *l)
{
	int changed = 0;

	if (environ == l->ours) /* else another thread has called setenv(), which has copied the table */
		__atomic_store_n(&environ, l->environment, __ATOMIC_RELEASE);
	for (int s = 1; s <= LOADER_SIGNALS; s++) {
		struct loader_action now = {0};

		if (!loader_watches(s) || loader_action_swap(s, NULL, &now) || memcmp(&now, &l->action[s - 1], sizeof(now)) == 0)
			continue;
		loader_action_swap(s, &l->action[s - 1], NULL);
		changed++;
	}
	pthread_sigmask(SIG_SETMASK, &l->signals, NULL);
	pthread_mutex_unlock(&loader_lock);
	return changed;
}

void loader_describe(const struct loader_variable *variables, size_t count, char *out, size_t size)
{
	size_t used = strlen(out);

	used += (size_t)snprintf(out + used, size - used, "  set for it, unless the environment has it:");
	for (size_t i = 0; i < count && used < size; i++)
		used += (size_t)snprintf(out + used, size - used, " %s=%s", variables[i].name, variables[i].value);
}

int loader_open(const char *library, const struct loader_symbol *symbols, size_t count)
{
	/* never closed: it has threads and exit handlers */
	void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);

	if (!handle) {
		const char *why = dlerror();
		size_t len = strlen(library);

		/* in whatever language: the linker names the file that it has not found, and that which is broken by its path */
		return error_set(strncmp(why, library, len) == 0 && why[len] == ':' ? -ENOENT : -ENOEXEC, "%.300s", why);
	}
	for (size_t i = 0; i < count; i++) {
		void *found = dlsym(handle, symbols[i].name);

		if (!found)
			return error_set(-EPROTO, "%s has no function %s", library, symbols[i].name);
		memcpy(symbols[i].to, &found, sizeof(found));
	}
	return 0;
}
