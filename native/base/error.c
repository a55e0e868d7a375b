/* SPDX-License-Identifier: MIT */
#include "base/error.h"

#include <errno.h>
#include <locale.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_BYTES 1024

/* The text of one thread.  It is not thread-local storage: that of a library which is loaded at run time comes out of
 * the small static surplus of the C library, and a JVM may load many copies of this one. */
struct error_text {
	char text[TEXT_BYTES];
	int rank;
	struct error_text *next, **prev;
};

static pthread_key_t error_key;
static pthread_once_t error_once = PTHREAD_ONCE_INIT;
static bool error_key_made;
/* All texts, so that error_unload() finds those of threads that live on. */
static struct error_text *error_texts;
static pthread_mutex_t error_lock = PTHREAD_MUTEX_INITIALIZER;

/* A thread ends. */
static void error_thread_end(void *arg)
{
	struct error_text *own = arg;

	pthread_mutex_lock(&error_lock);
	*own->prev = own->next;
	if (own->next)
		own->next->prev = own->prev;
	pthread_mutex_unlock(&error_lock);
	free(own);
}

static void error_init(void)
{
	error_key_made = pthread_key_create(&error_key, error_thread_end) == 0;
}

/* The calling thread's text; NULL: it has none yet. */
static struct error_text *error_own(void)
{
	pthread_once(&error_once, error_init);
	return error_key_made ? pthread_getspecific(error_key) : NULL;
}

/* The same, made if need be; NULL: no memory. */
static struct error_text *error_make(void)
{
	struct error_text *own = error_own();

	if (own || !error_key_made)
		return own;
	own = calloc(1, sizeof(*own));
	if (!own)
		return NULL;
	if (pthread_setspecific(error_key, own) != 0) {
		free(own);
		return NULL;
	}
	pthread_mutex_lock(&error_lock);
	own->prev = &error_texts;
	own->next = error_texts;
	if (own->next)
		own->next->prev = &own->next;
	error_texts = own;
	pthread_mutex_unlock(&error_lock);
	return own;
}

/* The calling thread's text becomes this one; errno is what it was. */
static void error_store(const char *text, int rank, int saved)
{
	struct error_text *own = error_make();

	if (own) {
		memcpy(own->text, text, strlen(text) + 1);
		own->rank = rank;
	}
	errno = saved;
}

/* No thread may call error_thread_end() when the library has been unmapped. */
__attribute__((destructor)) static void error_forget_threads(void)
{
	if (error_key_made)
		pthread_key_delete(error_key);
	error_key_made = false;
}

void error_unload(void)
{
	struct error_text *all;

	error_forget_threads();
	pthread_mutex_lock(&error_lock);
	all = error_texts;
	error_texts = NULL;
	pthread_mutex_unlock(&error_lock);
	while (all) {
		struct error_text *next = all->next;

		free(all);
		all = next;
	}
}

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
	error_store(scratch, -1, saved);
	return code;
}

/* Not strerror(): the process (a JVM) may have set a locale, and texts should not mix. Locale "C" takes no memory. */
const char *error_words(int number)
{
	return strerror_l(number, newlocale(LC_ALL_MASK, "C", NULL));
}

int error_sys(int code, const char *fmt, ...)
{
	char scratch[TEXT_BYTES];
	int saved = errno;
	va_list args;

	va_start(args, fmt);
	format(scratch, fmt, args);
	va_end(args);
	append(scratch, error_words(-code));
	error_store(scratch, -1, saved);
	return code;
}

int error_prefix(int code, const char *fmt, ...)
{
	const struct error_text *own;
	char scratch[TEXT_BYTES];
	int saved = errno;
	va_list args;

	va_start(args, fmt);
	format(scratch, fmt, args);
	va_end(args);
	own = error_own();
	if (own && own->text[0])
		append(scratch, own->text);
	error_store(scratch, own ? own->rank : -1, saved);
	return code;
}

int error_concerns(int code, int rank)
{
	struct error_text *own = error_own();

	if (own)
		own->rank = rank;
	return code;
}

int error_rank(void)
{
	const struct error_text *own = error_own();

	return own && own->text[0] ? own->rank : -1;
}

const char *error_text(void)
{
	const struct error_text *own = error_own();

	return own && own->text[0] ? own->text : "no error";
}
