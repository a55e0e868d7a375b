/* SPDX-License-Identifier: MIT */
#ifndef IBVX_TRANSPORT_LOADER_H
#define IBVX_TRANSPORT_LOADER_H
/*
 * loader: opens a communication library at run time and keeps it from changing the process.
 *
 * Such libraries install signal handlers, which a JVM does not survive, and patch the code of mmap.  Both can be
 * forbidden by variables of the environment, which they read when they are loaded and when they are initialised.
 * Between loader_begin() and loader_end() the process has these variables, the thread takes no signals (nor do
 * threads that are made meanwhile, ever), and afterwards every signal action is what it was.
 *
 * setenv() may free what getenv() of another thread reads.  So the environment is not changed but replaced: `environ`
 * points to a longer table for a while.  Other threads see the one or the other.
 */
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

struct loader_variable {
	const char *name, *value;
	bool overrides; /* also where the user has set it */
};

#define LOADER_SIGNALS 64
struct loader {
	char **environment; /* the process's own */
	char **ours;
	sigset_t signals;
	struct loader_action {
		unsigned char bytes[64]; /* as the kernel has it */
	} action[LOADER_SIGNALS];
};

/* One thread of the process at a time: others wait.  0, or -ENOMEM with text: loader_end() must not follow. */
int loader_begin(struct loader *l, const struct loader_variable *variables, size_t count);
/* How many signal actions the library had changed; they are restored. */
int loader_end(struct loader *l);

/* Appends a line without its end: what is set for the library. */
void loader_describe(const struct loader_variable *variables, size_t count, char *out, size_t size);

struct loader_symbol {
	const char *name;
	void *to; /* a pointer to a function */
};
/* Opens the library for good and finds the functions.  0; -ENOENT: it is not installed; -ENOEXEC: it is, but cannot be loaded, or a
 * library that it needs; -EPROTO: it lacks a function, the text names it. */
int loader_open(const char *library, const struct loader_symbol *symbols, size_t count);

#endif
