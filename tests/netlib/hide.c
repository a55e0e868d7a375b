/* SPDX-License-Identifier: MIT */
/* An audit library (LD_AUDIT): the libraries whose names begin with HIDDEN_LIBRARY are not found. */
#include <link.h>
#include <stdlib.h>
#include <string.h>

unsigned int la_version(unsigned int version)
{
	(void)version;
	return LAV_CURRENT;
}

char *la_objsearch(const char *name, uintptr_t *cookie, unsigned int flag)
{
	const char *hidden = getenv("HIDDEN_LIBRARY"), *base = strrchr(name, '/');

	(void)cookie;
	(void)flag;
	base = base ? base + 1 : name;
	return hidden && flag != LA_SER_ORIG && strncmp(base, hidden, strlen(hidden)) == 0 ? NULL : (char *)(uintptr_t)name;
}
