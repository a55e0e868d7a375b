/* SPDX-License-Identifier: MIT */
#ifndef IBVX_BASE_ERROR_H
#define IBVX_BASE_ERROR_H
/*
 * error: the text of an error and the rank that it concerns, kept per thread, set where the error is born.
 *
 * Returns are 0 or positive, or a negative errno.  A function that fails sets the
 * text; a caller may put a phrase in front.  A thread's first error allocates 1 KB, which is freed when the thread
 * ends; without that memory the code is returned and there is no text.  All functions are cold: the compiler takes a
 * branch that ends in one for the unlikely one.
 */

/* Sets the calling thread's text (truncated at 1023 bytes) and returns code. */
int error_set(int code, const char *fmt, ...) __attribute__((cold, format(printf, 2, 3)));

/* Same, and appends ": " and the errno text of -code. */
int error_sys(int code, const char *fmt, ...) __attribute__((cold, format(printf, 2, 3)));

/* The C library's words for an errno, in English; good until the thread's next call. */
const char *error_words(int number);

/* Puts "phrase: " in front of the present text and returns code. */
int error_prefix(int code, const char *fmt, ...) __attribute__((cold, format(printf, 2, 3)));

/* The present error concerns this rank; error_set() and error_sys() begin with none.  Returns code. */
int error_concerns(int code, int rank) __attribute__((cold));

/* The present text; never NULL; "no error" if none was set. */
const char *error_text(void);

/* The rank that the present error concerns; -1: none. */
int error_rank(void);

/* The library is about to be unmapped and no thread is inside: frees the texts of all threads. Nothing else may follow. */
void error_unload(void);

#endif
