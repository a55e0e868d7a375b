/* SPDX-License-Identifier: MIT */
#ifndef IBVX_BASE_LOG_H
#define IBVX_BASE_LOG_H
/*
 * log: one log per endpoint, off by default, to stderr or a file, never stdout.
 * Lines: "ibvdev[rank] LEVEL seconds.micros text".  Thread-safe: one write(2) a line.
 */
enum log_level { LOG_OFF, LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG, LOG_TRACE };

struct log {
	enum log_level level;
	int fd;
	int rank;
};

/* path == NULL or "": stderr; "%r" in path becomes the rank; a file is appended to.  0 or -errno
 * with text (the log is off then, and may be closed). */
int log_open(struct log *log, enum log_level level, const char *path, int rank);
void log_close(struct log *log);
/* Writes whatever log->level is (what the user asked for explicitly, such as counters, comes
 * as LOG_OFF).  Control characters become blanks, long lines are cut; errno is preserved. */
void log_write(const struct log *log, enum log_level level, const char *fmt, ...) __attribute__((cold, format(printf, 3, 4)));

/* The arguments are evaluated only if the level is on. */
#define LOG_AT(log, lvl, ...)                                 \
	do {                                                  \
		if ((log)->level >= (lvl))                    \
			log_write((log), (lvl), __VA_ARGS__); \
	} while (0)
#define log_error(log, ...) LOG_AT(log, LOG_ERROR, __VA_ARGS__)
#define log_warn(log, ...) LOG_AT(log, LOG_WARN, __VA_ARGS__)
#define log_info(log, ...) LOG_AT(log, LOG_INFO, __VA_ARGS__)
#define log_debug(log, ...) LOG_AT(log, LOG_DEBUG, __VA_ARGS__)
#define log_trace(log, ...) LOG_AT(log, LOG_TRACE, __VA_ARGS__)
#endif
