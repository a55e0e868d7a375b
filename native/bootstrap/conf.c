/* SPDX-License-Identifier: MIT */
#include "bootstrap/conf.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/siphash.h"

#define CONF_FIELDS_MAX 6
#define CONF_HOST_BYTES_MAX 255
/* An mxdev line has a board number where a niodev line has a port; no niodev port is below this. */
#define CONF_PORT_MIN 1024
#define CONF_DERIVED_PORT_FIRST 20000
#define CONF_DERIVED_PORT_COUNT 10000
/* How much of a bad value an error text repeats. */
#define CONF_SHOW 60

struct conf_reader {
	struct conf *conf;
	const char *name;
	int line;
	int values; /* plain lines so far: 1st is the size, 2nd the psl, then hosts */
	int hosts;
	int settings;
	bool boards; /* an mxdev line was seen */
};

int conf_number(const char *text, int64_t min, int64_t max, int64_t *out)
{
	char *end;
	long long value;

	if (!(*text >= '0' && *text <= '9') && *text != '-')
		return -EINVAL;
	errno = 0;
	value = strtoll(text, &end, 10);
	if (errno || end == text || *end || value < min || value > max)
		return -EINVAL;
	*out = value;
	return 0;
}

static char *conf_trim(char *text)
{
	size_t len;

	text += strspn(text, " \t\r\v\f");
	len = strlen(text);
	while (len > 0 && strchr(" \t\r\v\f", text[len - 1]))
		text[--len] = '\0';
	return text;
}

static int conf_add_setting(struct conf_reader *r, const char *pair)
{
	struct conf *conf = r->conf;
	char **settings;
	int *lines;

	if (!strchr(pair, '=') || *pair == '=')
		return error_set(-EINVAL, "%s line %d: \"#ibvdev %.*s\" is not of the form #ibvdev name=value", r->name, r->line, CONF_SHOW,
				 pair);
	settings = realloc(conf->settings, ((size_t)r->settings + 2) * sizeof(*settings));
	if (!settings)
		return error_set(-ENOMEM, "%s: no memory", r->name);
	conf->settings = settings;
	settings[r->settings] = NULL;
	lines = realloc(conf->settings_lines, ((size_t)r->settings + 1) * sizeof(*lines));
	if (!lines)
		return error_set(-ENOMEM, "%s: no memory", r->name);
	conf->settings_lines = lines;
	lines[r->settings] = r->line;
	settings[r->settings] = strdup(pair);
	if (!settings[r->settings])
		return error_set(-ENOMEM, "%s: no memory", r->name);
	settings[++r->settings] = NULL;
	return 0;
}

/* "#ibvdev name=value" is ours, every other comment is not. */
static int conf_comment(struct conf_reader *r, char *text)
{
	static const char mark[] = "#ibvdev";

	if (strncmp(text, mark, sizeof(mark) - 1) != 0)
		return 0;
	text += sizeof(mark) - 1;
	if (*text && !strchr(" \t", *text))
		return 0;
	return conf_add_setting(r, conf_trim(text));
}

static int conf_set_size(struct conf_reader *r, const char *text)
{
	int64_t size;

	if (conf_number(text, 1, CONF_RANKS_MAX, &size) < 0)
		return error_set(-EINVAL, "%s line %d: number of processes \"%.*s\" is not a number from 1 to %d", r->name, r->line,
				 CONF_SHOW, text, CONF_RANKS_MAX);
	r->conf->size = (int)size;
	return 0;
}

static int conf_set_psl(struct conf_reader *r, const char *text)
{
	if (conf_number(text, 0, INT64_MAX, &r->conf->psl_bytes) < 0)
		return error_set(-EINVAL, "%s line %d: protocol switch limit \"%.*s\" is not a number of bytes", r->name, r->line,
				 CONF_SHOW, text);
	r->conf->psl_line = r->line;
	return 0;
}

static int conf_split(char *text, char *fields[CONF_FIELDS_MAX])
{
	int count = 0;

	for (char *field; count < CONF_FIELDS_MAX && (field = strsep(&text, "@"));)
		fields[count++] = conf_trim(field);
	return count;
}

static int conf_check_host(struct conf_reader *r, const char *host)
{
	size_t len = strlen(host);

	if (len == 0 || len > CONF_HOST_BYTES_MAX)
		return error_set(-EINVAL, "%s line %d: the host name has %zu characters, allowed are 1 to %d", r->name, r->line, len,
				 CONF_HOST_BYTES_MAX);
	for (size_t i = 0; i < len; i++)
		if (host[i] <= ' ' || host[i] > '~')
			return error_set(-EINVAL, "%s line %d: host name with a blank or non-ASCII character", r->name, r->line);
	return 0;
}

static int conf_field(struct conf_reader *r, const char *what, const char *text, int64_t min, int64_t max, int64_t *out)
{
	if (conf_number(text, min, max, out) < 0)
		return error_set(-EINVAL, "%s line %d: %s \"%.*s\" is not a number from %lld to %lld", r->name, r->line, what, CONF_SHOW,
				 text, (long long)min, (long long)max);
	return 0;
}

static int conf_put_host(struct conf_reader *r, int64_t rank, const char *name, int port)
{
	struct conf_host *host;

	if (rank < 0 || rank >= r->conf->size)
		return error_set(-EINVAL, "%s line %d: rank %lld, but the file states %d processes (ranks 0 to %d)", r->name, r->line,
				 (long long)rank, r->conf->size, r->conf->size - 1);
	host = &r->conf->hosts[rank];
	if (host->host)
		return error_set(-EINVAL, "%s line %d: rank %lld is already on line %d; give every rank once", r->name, r->line,
				 (long long)rank, host->line);
	host->host = strdup(name);
	if (!host->host)
		return error_set(-ENOMEM, "%s: no memory", r->name);
	host->port = port;
	host->line = r->line;
	r->hosts++;
	return 0;
}

static int conf_add_host(struct conf_reader *r, char *text)
{
	char *fields[CONF_FIELDS_MAX];
	int count = conf_split(text, fields);
	int64_t first, second, rank, debug = 0;
	int err;

	if (count != 4 && count != 5)
		return error_set(-EINVAL,
				 "%s line %d: not a process line; expected host@port@port@rank@debugport, "
				 "host@port@port@rank or host@board@rank@debugport",
				 r->name, r->line);
	err = conf_check_host(r, fields[0]);
	if (!err)
		err = conf_field(r, "port", fields[1], 0, 65535, &first);
	if (!err)
		err = conf_field(r, count == 4 ? "second number" : "second port", fields[2], 0, 65535, &second);
	if (!err)
		err = conf_field(r, count == 4 ? "third number" : "rank", fields[3], 0, INT32_MAX, &rank);
	if (!err && count == 5)
		err = conf_field(r, "debug port", fields[4], 0, INT32_MAX, &debug);
	if (err)
		return err;
	if (count == 4 && first < CONF_PORT_MIN) {
		r->boards = true;
		return conf_put_host(r, second, fields[0], 0);
	}
	if (first == 0)
		return error_set(-EINVAL, "%s line %d: port 0; give a port from 1 to 65535", r->name, r->line);
	return conf_put_host(r, rank, fields[0], (int)first);
}

static int conf_line(struct conf_reader *r, char *text)
{
	text = conf_trim(text);
	if (*text == '#')
		return conf_comment(r, text);
	if (!*text)
		return 0;
	switch (r->values++) {
	case 0: return conf_set_size(r, text);
	case 1: return conf_set_psl(r, text);
	default: break;
	}
	if (r->hosts == r->conf->size)
		return error_set(-EINVAL, "%s line %d: one process line too many; the file states %d processes", r->name, r->line,
				 r->conf->size);
	if (!r->conf->hosts) {
		r->conf->hosts = calloc((size_t)r->conf->size, sizeof(*r->conf->hosts));
		if (!r->conf->hosts)
			return error_set(-ENOMEM, "%s: no memory for %d processes", r->name, r->conf->size);
	}
	return conf_add_host(r, text);
}

/* mpjrun writes mxdev files without ports.  All ranks read the same file, so its
 * content and salt give them the same port. */
static void conf_derive_port(struct conf *conf, const char *bytes, size_t len, uint64_t salt)
{
	uint8_t key[16] = "ibvdev mxdev ", hash[16];

	memcpy(key + 8, &salt, sizeof(salt));
	siphash128(key, bytes, len, hash);
	conf->hosts[0].port = CONF_DERIVED_PORT_FIRST + (hash[0] | hash[1] << 8) % CONF_DERIVED_PORT_COUNT;
	conf->derived_port = true;
}

static int conf_check_complete(const struct conf_reader *r)
{
	int missing = 0;

	if (r->values < 2)
		return error_set(-EINVAL,
				 "%s ends after line %d without %s; is it truncated? (first value: number of "
				 "processes, second: protocol switch limit, then one line per process)",
				 r->name, r->line, r->values == 0 ? "any value" : "a protocol switch limit");
	if (r->hosts == r->conf->size)
		return 0;
	while (r->conf->hosts && r->conf->hosts[missing].host)
		missing++;
	return error_set(-EINVAL,
			 "%s ends after line %d with %d process lines, but states %d processes; rank %d is the first "
			 "without a line",
			 r->name, r->line, r->hosts, r->conf->size, missing);
}

int conf_parse_file(struct conf *conf, const char *name, const char *bytes, size_t len, uint64_t salt)
{
	struct conf_reader r = {.conf = conf, .name = name};
	char *copy, *rest, *line;
	int err = 0;

	conf->psl_bytes = -1;
	if (memchr(bytes, '\0', len))
		return error_set(-EINVAL, "%s holds a NUL byte; it is not a conf file", name);
	copy = strndup(bytes, len);
	if (!copy)
		return error_set(-ENOMEM, "%s: no memory", name);
	if (len > 0 && copy[len - 1] == '\n')
		copy[len - 1] = '\0';
	rest = copy;
	while (!err && (line = strsep(&rest, "\n"))) {
		r.line++;
		err = conf_line(&r, line);
	}
	free(copy);
	if (!err)
		err = conf_check_complete(&r);
	if (!err && conf->hosts[0].port == 0)
		conf_derive_port(conf, bytes, len, salt);
	return err;
}

static int conf_read_bytes(int fd, const char *path, off_t size, char *bytes, size_t *len)
{
	while (*len < (size_t)size) {
		ssize_t got = read(fd, bytes + *len, (size_t)size - *len);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return error_sys(-errno, "reading conf file %s", path);
		if (got == 0)
			break;
		*len += (size_t)got;
	}
	return 0;
}

static int conf_read_file(struct conf *conf, const char *path)
{
	struct statx st;
	char *bytes = NULL;
	size_t len = 0;
	uint64_t salt;
	int err;
	/* O_NONBLOCK: a FIFO must not make us wait for a writer. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0) {
		err = -errno;
		return error_sys(err,
				 strstr(path, "://") ? "conf \"%s\" (URLs are not supported, give a file)"
						     : "conf file \"%s\" cannot be opened",
				 path);
	}
	if (statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &st) < 0) {
		err = error_sys(-errno, "conf file \"%s\"", path);
		goto close_file;
	}
	if (!S_ISREG(st.stx_mode) || st.stx_size > CONF_FILE_BYTES_MAX) {
		err = error_set(-EINVAL, "conf \"%s\" is %s", path, S_ISREG(st.stx_mode) ? "larger than 16 MB" : "not a regular file");
		goto close_file;
	}
	bytes = malloc((size_t)st.stx_size + 1);
	if (!bytes) {
		err = error_set(-ENOMEM, "conf file %s: no memory", path);
		goto close_file;
	}
	err = conf_read_bytes(fd, path, st.stx_size, bytes, &len);
	salt = (uint64_t)st.stx_ino ^ ((uint64_t)st.stx_mtime.tv_sec << 20) ^ (uint64_t)st.stx_mtime.tv_nsec;
	if (!err)
		err = conf_parse_file(conf, path, bytes, len, salt);
close_file:
	free(bytes);
	close(fd);
	return err;
}

int conf_read(struct conf *conf, const char *text)
{
	int err;

	memset(conf, 0, sizeof(*conf));
	conf->psl_bytes = -1;
	if (strstr(text, "#Number of Processes") && strchr(text, ';'))
		err = conf_parse_string(conf, text);
	else
		err = conf_read_file(conf, text);
	if (err)
		conf_fini(conf);
	return err;
}

void conf_fini(struct conf *conf)
{
	for (int i = 0; conf->hosts && i < conf->size; i++)
		free(conf->hosts[i].host);
	for (int i = 0; conf->settings && conf->settings[i]; i++)
		free(conf->settings[i]);
	free(conf->hosts);
	free(conf->settings);
	free(conf->settings_lines);
	free(conf->starter_host);
	memset(conf, 0, sizeof(*conf));
}
