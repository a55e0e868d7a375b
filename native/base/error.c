/* SPDX-License-Identifier: MIT */
#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define TEXT_BYTES 1024

static _Thread_local char text[TEXT_BYTES];

/* Formats into a scratch buffer first: the arguments may point into text itself. */
static void format(char *out, const char *fmt, va_list args)
{
	if (vsnprintf(out, TEXT_BYTES, fmt, args) < 0)
		out[0] = '\0';
}

/* out := out + ": " + tail, cut to fit. */
static void append(char *out, const char *tail)
{
	size_t len = strlen(out);

	snprintf(out + len, TEXT_BYTES - len, ": %s", tail);
}

int error_set(int code, const char *fmt, ...)
{
	char scratch[TEXT_BYTES];
	int saved = errno;
	va_list args;

	va_start(args, fmt);
	format(scratch, fmt, args);
	va_end(args);
	memcpy(text, scratch, strlen(scratch) + 1);
	errno = saved;
	return code;
}

int error_sys(int code, const char *fmt, ...)
{
	char scratch[TEXT_BYTES], number[32];
	int saved = errno;
	const char *what;
	va_list args;

	va_start(args, fmt);
	format(scratch, fmt, args);
	va_end(args);
	/* Not strerror: the process (a JVM) may have set a locale, and texts should not mix. */
	what = strerrordesc_np(-code);
	if (!what) {
		snprintf(number, sizeof(number), "error %d", -code);
		what = number;
	}
	append(scratch, what);
	memcpy(text, scratch, strlen(scratch) + 1);
	errno = saved;
	return code;
}

int error_prefix(int code, const char *fmt, ...)
{
	char scratch[TEXT_BYTES];
	int saved = errno;
	va_list args;

	va_start(args, fmt);
	format(scratch, fmt, args);
	va_end(args);
	if (text[0])
		append(scratch, text);
	memcpy(text, scratch, strlen(scratch) + 1);
	errno = saved;
	return code;
}

const char *error_text(void)
{
	return text[0] ? text : "no error";
}
