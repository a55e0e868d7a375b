/* SPDX-License-Identifier: MIT */
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"

#define LINE_BYTES 2048

static const char *level_name(enum log_level level)
{
	switch (level) {
	case LOG_OFF: return "NOTE";
	case LOG_ERROR: return "ERROR";
	case LOG_WARN: return "WARN";
	case LOG_INFO: return "INFO";
	case LOG_DEBUG: return "DEBUG";
	case LOG_TRACE: return "TRACE";
	}
	return "?";
}

/* Copies path to out with every %r replaced.  -ENAMETOOLONG if it does not fit. */
static int expand(char *out, size_t size, const char *path, int rank)
{
	size_t used = 0;

	while (*path) {
		if (path[0] == '%' && path[1] == 'r') {
			used += (size_t)snprintf(out + used, size - used, "%d", rank);
			path += 2;
		} else {
			out[used++] = *path++;
		}
		if (used + 1 >= size)
			return -ENAMETOOLONG;
	}
	out[used] = '\0';
	return 0;
}

int log_open(struct log *log, enum log_level level, const char *path, int rank)
{
	char name[PATH_MAX];
	int fd = STDERR_FILENO;

	*log = (struct log){.level = LOG_OFF, .fd = STDERR_FILENO, .rank = rank};
	if (path && path[0]) {
		if (expand(name, sizeof(name), path, rank) < 0)
			return error_sys(-ENAMETOOLONG, "log file \"%.200s...\"", path);
		fd = open(name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0644);
		if (fd < 0)
			return error_sys(-errno, "cannot open the log file \"%s\" (setting log_file)", name);
	}
	log->fd = fd;
	log->level = level;
	return 0;
}

void log_close(struct log *log)
{
	if (log->fd > STDERR_FILENO)
		close(log->fd);
	log->fd = STDERR_FILENO;
	log->level = LOG_OFF;
}

static void write_all(int fd, const char *data, size_t len)
{
	while (len > 0) {
		ssize_t n = write(fd, data, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return; /* a full disk or a closed pipe must not stop the program */
		data += n;
		len -= (size_t)n;
	}
}

void log_write(const struct log *log, enum log_level level, const char *fmt, ...)
{
	char line[LINE_BYTES];
	int saved = errno;
	struct timespec now;
	va_list args;
	size_t start, len;
	int n;

	clock_gettime(CLOCK_REALTIME, &now);
	start = (size_t)snprintf(line, sizeof(line), "ibvdev[%d] %s %lld.%06ld ", log->rank, level_name(level), (long long)now.tv_sec,
				 now.tv_nsec / 1000);
	va_start(args, fmt);
	n = vsnprintf(line + start, sizeof(line) - start - 1, fmt, args);
	va_end(args);
	len = n < 0 ? start : start + strlen(line + start);
	/* One call is one line, whatever a peer or a file name put into the arguments. */
	for (size_t i = start; i < len; i++) {
		if ((unsigned char)line[i] < ' ')
			line[i] = ' ';
	}
	line[len++] = '\n';
	write_all(log->fd, line, len);
	errno = saved;
}
