/* SPDX-License-Identifier: MIT */
#include "base/near.h"

#include <ctype.h>
#include <string.h>

#define LEN_MAX 63

static size_t min(size_t a, size_t b)
{
	return a < b ? a : b;
}

static bool same(char a, char b)
{
	return tolower((unsigned char)a) == tolower((unsigned char)b);
}

size_t near_distance(const char *a, const char *b)
{
	size_t rows[3][LEN_MAX + 1]; /* the row being filled and the two before it, in turn */
	size_t n = strlen(a), m = strlen(b);

	if (n > LEN_MAX || m > LEN_MAX)
		return n > m ? n : m;
	for (size_t j = 0; j <= m; j++)
		rows[0][j] = j;
	for (size_t i = 1; i <= n; i++) {
		size_t *row = rows[i % 3], *up = rows[(i + 2) % 3], *up2 = rows[(i + 1) % 3];

		row[0] = i;
		for (size_t j = 1; j <= m; j++) {
			row[j] = min(up[j - 1] + !same(a[i - 1], b[j - 1]), min(up[j], row[j - 1]) + 1);
			if (i > 1 && j > 1 && same(a[i - 1], b[j - 2]) && same(a[i - 2], b[j - 1]))
				row[j] = min(row[j], up2[j - 2] + 1);
		}
	}
	return rows[n % 3][m];
}

bool near_miss(const char *unknown, const char *known)
{
	size_t n = strlen(unknown), m = strlen(known);

	if (n >= 3 && m >= 3 && (strcasestr(known, unknown) || strcasestr(unknown, known)))
		return true;
	return near_distance(unknown, known) * 3 <= (n > m ? n : m);
}
