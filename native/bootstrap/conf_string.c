/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "bootstrap/conf.h"

/* Texts of mpjrun are short; a longer one is something else. */
#define CONF_STRING_BYTES_MAX (1 << 20)
#define CONF_SHOW 60

static int string_number(const char *name, const char *value, int64_t min, int64_t max, int64_t *out)
{
	if (conf_number(value, min, max, out) < 0)
		return error_set(-EINVAL, "conf string: the value \"%.*s\" of \"%s\" is not a number from %lld to %lld", CONF_SHOW, value,
				 name, (long long)min, (long long)max);
	return 0;
}

static int string_host(struct conf *conf, const char *value)
{
	if (!*value || strlen(value) > 255)
		return error_set(-EINVAL, "conf string: \"#Server Name\" has no usable value");
	free(conf->starter_host);
	conf->starter_host = strdup(value);
	return conf->starter_host ? 0 : error_set(-ENOMEM, "conf string: no memory");
}

/* One "#name;value" pair; unknown names are other devices' business. */
static int string_pair(struct conf *conf, const char *name, const char *value)
{
	int64_t number;
	int err;

	if (strcmp(name, "#Number of Processes") == 0) {
		err = string_number(name, value, 1, CONF_RANKS_MAX, &number);
		if (!err)
			conf->size = (int)number;
		return err;
	}
	if (strcmp(name, "#Protocol Switch Limit") == 0)
		return string_number(name, value, 0, INT64_MAX, &conf->psl_bytes);
	if (strcmp(name, "#Server Name") == 0)
		return string_host(conf, value);
	if (strcmp(name, "#Server Port") == 0) {
		err = string_number(name, value, 1, 65535, &number);
		if (!err)
			conf->starter_port = (int)number;
		return err;
	}
	return 0;
}

static bool string_known(const char *name)
{
	static const char *const names[] = {"#Number of Processes", "#Protocol Switch Limit", "#Server Name", "#Server Port"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return false;
}

static int string_check(const struct conf *conf)
{
	if (conf->size == 0)
		return error_set(-EINVAL, "conf string: no \"#Number of Processes\"");
	if (conf->size > 1 && (!conf->starter_host || !conf->starter_port))
		return error_set(-EINVAL,
				 "conf string for %d processes without \"%s\"; without a starter to ask for the other "
				 "ranks give a conf file",
				 conf->size, conf->starter_host ? "#Server Port" : "#Server Name");
	return 0;
}

int conf_parse_string(struct conf *conf, const char *text)
{
	char *copy, *rest, *token;
	int err = 0;

	conf->psl_bytes = -1;
	if (strlen(text) > CONF_STRING_BYTES_MAX)
		return error_set(-EINVAL, "conf string of %zu bytes; the limit is %d", strlen(text), CONF_STRING_BYTES_MAX);
	copy = strdup(text);
	if (!copy)
		return error_set(-ENOMEM, "conf string: no memory");
	rest = copy;
	while (!err && (token = strsep(&rest, ";"))) {
		char *value;

		if (!string_known(token))
			continue;
		value = strsep(&rest, ";");
		if (!value)
			err = error_set(-EINVAL, "conf string ends after \"%s\"; is it truncated?", token);
		else
			err = string_pair(conf, token, value);
	}
	free(copy);
	return err ? err : string_check(conf);
}
