/* SPDX-License-Identifier: MIT */
#include "bootstrap/hostlist.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "bootstrap/conf.h"

#define HOSTLIST_DIGITS "0123456789"

/* "01-16,20]" -> the digits before the first of "-,]"; *end: behind the bracket. */
static size_t hostlist_bracket(const char *list, const char **end)
{
	size_t n = strspn(list, HOSTLIST_DIGITS);
	const char *close = strchr(list, ']');

	if (n == 0 || !close || !strchr("-,]", list[n]))
		return 0;
	*end = close + 1;
	return n;
}

int hostlist_first(const char *list, char *out, size_t size)
{
	size_t len = 0;

	while (*list && *list != ',') {
		const char *next = list + 1;
		size_t n = 1;

		if (*list == '[')
			n = hostlist_bracket(++list, &next);
		else if (*list <= ' ' || *list > '~' || *list == ']')
			n = 0;
		if (n == 0 || len + n >= size)
			return -EINVAL;
		memcpy(out + len, list, n);
		len += n;
		list = next;
	}
	out[len] = '\0';
	return len > 0 ? 0 : -EINVAL;
}

static int hostlist_range(const char *text, size_t len, int64_t *first, int64_t *last)
{
	char copy[16], *dash;

	if (len >= sizeof(copy))
		return -EINVAL;
	memcpy(copy, text, len);
	copy[len] = '\0';
	dash = strchr(copy, '-');
	if (dash)
		*dash = '\0';
	if (conf_number(copy, 1, 65535, first) < 0)
		return -EINVAL;
	*last = *first;
	return dash ? conf_number(dash + 1, *first, 65535, last) : 0;
}

int hostlist_ports(const char *list, int *out, int max)
{
	int count = 0;

	for (;;) {
		size_t len = strcspn(list, ",");
		int64_t port, last;

		if (hostlist_range(list, len, &port, &last) < 0)
			return -EINVAL;
		for (; port <= last && count < max; port++)
			out[count++] = (int)port;
		if (!list[len])
			return count;
		list += len + 1;
	}
}
