/* SPDX-License-Identifier: MIT */
#ifndef TESTS_CHILD_H
#define TESTS_CHILD_H
/* child: the end of a forked process of a test. */
#include <unistd.h>

#ifdef COVERAGE
void __gcov_dump(void);
#endif

/* _exit(), after the coverage was written where the build measures it. */
static inline _Noreturn void child_exit(int status)
{
#ifdef COVERAGE
	__gcov_dump();
#endif
	_exit(status);
}

#endif
