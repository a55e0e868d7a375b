/* SPDX-License-Identifier: MIT */
#include "base/settings.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/error.h"
#include "base/near.h"

#define KIB INT64_C(1024)
#define MIB (1024 * KIB)
#define GIB (1024 * MIB)
#define NAME_BYTES 64

struct value {
	int64_t number; /* -1: auto; of texts 0 */
	char *text;     /* canonical */
	char *origin;   /* NULL: default */
	enum settings_layer layer;
};

struct settings {
	struct value values[SETTING_COUNT];
};

static bool is_power_of_two(enum setting id)
{
	return id == SETTING_SHM_SLOTS || id == SETTING_SHM_RING || id == SETTING_VERBS_SLOTS;
}

/* "262144" -> "256k" where that loses nothing. */
static void format_bytes(char *out, size_t size, int64_t bytes)
{
	if (bytes && bytes % GIB == 0)
		snprintf(out, size, "%lldg", (long long)(bytes / GIB));
	else if (bytes && bytes % MIB == 0)
		snprintf(out, size, "%lldm", (long long)(bytes / MIB));
	else if (bytes && bytes % KIB == 0)
		snprintf(out, size, "%lldk", (long long)(bytes / KIB));
	else
		snprintf(out, size, "%lld", (long long)bytes);
}

static void format_number(char *out, size_t size, const struct setting_info *info, int64_t number)
{
	if (info->accepts_auto && number == -1)
		snprintf(out, size, "auto");
	else if (info->kind == SETTING_KIND_BYTES)
		format_bytes(out, size, number);
	else if (info->kind == SETTING_KIND_CHOICE)
		snprintf(out, size, "%s", info->choices[number]);
	else
		snprintf(out, size, "%lld", (long long)number);
}

/* What the setting accepts, for error texts. */
static void format_accepted(char *out, size_t size, enum setting id)
{
	const struct setting_info *info = setting_info(id);
	const char *power = is_power_of_two(id) ? ", a power of two" : "";
	const char *automatic = info->accepts_auto ? ", or auto" : "";
	char lo[32], hi[32];
	size_t used = 0;

	switch (info->kind) {
	case SETTING_KIND_INT:
		snprintf(out, size, "a number from %lld to %lld%s%s%s%s", (long long)info->min, (long long)info->max,
			 strcmp(info->unit, "count") ? " " : "", strcmp(info->unit, "count") ? info->unit : "", power, automatic);
		break;
	case SETTING_KIND_BYTES:
		format_bytes(lo, sizeof(lo), info->min);
		format_bytes(hi, sizeof(hi), info->max);
		snprintf(out, size, "bytes from %s to %s (k, m, g: powers of 1024)%s%s", lo, hi, power, automatic);
		break;
	case SETTING_KIND_BOOL: snprintf(out, size, "0 or 1, on or off, true or false, yes or no"); break;
	case SETTING_KIND_CHOICE:
		used += (size_t)snprintf(out, size, "one of");
		for (int i = 0; info->choices[i] && used < size; i++)
			used += (size_t)snprintf(out + used, size - used, "%s %s", i ? "," : "", info->choices[i]);
		break;
	case SETTING_KIND_TEXT:
		if (id == SETTING_JOB_ID)
			snprintf(out, size, "32 hexadecimal digits, or nothing");
		else if (id == SETTING_TRANSPORTS)
			snprintf(out, size, "names separated by commas, such as self,shm");
		else
			snprintf(out, size, "at most %lld bytes of text", (long long)info->max);
		break;
	}
}

static int reject(enum setting id, const char *value, const char *origin, const char *why)
{
	char accepted[256];

	format_accepted(accepted, sizeof(accepted), id);
	/* A secret stays one, also when it is too long. */
	if (id == SETTING_JOB_SECRET)
		value = "(not shown)";
	return error_set(-EINVAL, "setting %s=%.200s (%s): %s; give %s", setting_info(id)->name, value, origin, why, accepted);
}

/* 0x and at most 15 digits. */
static bool parse_hexadecimal(const char *text, int64_t *out)
{
	size_t digits = strspn(text + 2, "0123456789abcdefABCDEF");

	if (digits == 0 || digits > 15 || text[2 + digits])
		return false;
	*out = strtoll(text, NULL, 16);
	return true;
}

/* Digits and, for sizes, one of kKmMgG; other numbers may be hexadecimal.  False: malformed; an overflow reads as INT64_MAX. */
static bool parse_number(const char *text, bool units, int64_t *out)
{
	int64_t number = 0, scale = 1;

	if (!units && text[0] == '0' && (text[1] == 'x' || text[1] == 'X'))
		return parse_hexadecimal(text, out);
	if (!isdigit((unsigned char)*text))
		return false;
	for (; *text >= '0' && *text <= '9'; text++) {
		if (__builtin_mul_overflow(number, 10, &number) || __builtin_add_overflow(number, *text - '0', &number))
			number = INT64_MAX;
	}
	if (units && *text) {
		switch (*text++) {
		case 'k':
		case 'K': scale = KIB; break;
		case 'm':
		case 'M': scale = MIB; break;
		case 'g':
		case 'G': scale = GIB; break;
		default: return false;
		}
	}
	if (__builtin_mul_overflow(number, scale, &number))
		number = INT64_MAX;
	*out = number;
	return *text == '\0';
}

static bool parse_word(const char *text, const char *const *words, int64_t *out)
{
	for (int64_t i = 0; words[i]; i++) {
		if (strcasecmp(text, words[i]) == 0) {
			*out = i;
			return true;
		}
	}
	return false;
}

/* NULL, or why the text is not one for this setting. */
static const char *check_text(enum setting id, const char *text)
{
	size_t len = strlen(text);

	if (len > (size_t)setting_info(id)->max)
		return "too long";
	if (id == SETTING_JOB_ID && len && (len != 32 || strspn(text, "0123456789abcdefABCDEF") != 32))
		return "not a job id";
	if (id == SETTING_TRANSPORTS && (!len || strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_,") != len || text[0] == ',' ||
					 text[len - 1] == ',' || strstr(text, ",,")))
		return "not a list of names";
	return NULL;
}

/* The value is the index's lowest bit. */
static const char *const bool_words[] = {"0", "1", "off", "on", "false", "true", "no", "yes", NULL};

/* NULL and *out, or what is wrong with the value. */
static const char *parse(enum setting id, const char *text, int64_t *out)
{
	const struct setting_info *info = setting_info(id);

	*out = 0;
	if (info->accepts_auto && strcasecmp(text, "auto") == 0) {
		*out = -1;
		return NULL;
	}
	switch (info->kind) {
	case SETTING_KIND_TEXT: return check_text(id, text);
	case SETTING_KIND_BOOL:
		if (!parse_word(text, bool_words, out))
			return "not a truth value";
		*out &= 1;
		return NULL;
	case SETTING_KIND_CHOICE: return parse_word(text, info->choices, out) ? NULL : "no such choice";
	case SETTING_KIND_INT:
	case SETTING_KIND_BYTES:
		if (!parse_number(text, info->kind == SETTING_KIND_BYTES, out))
			return text[0] == '-' ? "out of range" : "not a number";
		if (*out < info->min || *out > info->max)
			return "out of range";
		if (is_power_of_two(id) && (*out & (*out - 1)))
			return "not a power of two";
		return NULL;
	}
	return "of an unknown kind";
}

static int store(struct settings *s, enum setting id, enum settings_layer layer, const char *text, int64_t number, const char *origin)
{
	const struct setting_info *info = setting_info(id);
	struct value *value = &s->values[id];
	char canonical[64];
	char *new_text, *new_origin;

	if (info->kind != SETTING_KIND_TEXT) {
		format_number(canonical, sizeof(canonical), info, number);
		text = canonical;
	}
	new_text = strdup(text);
	new_origin = origin ? strdup(origin) : NULL;
	if (!new_text || (origin && !new_origin)) {
		free(new_text);
		free(new_origin);
		return error_set(-ENOMEM, "setting %s: no memory", info->name);
	}
	if (id == SETTING_JOB_ID) {
		for (char *p = new_text; *p; p++)
			*p = (char)tolower((unsigned char)*p);
	}
	free(value->text);
	free(value->origin);
	*value = (struct value){.number = number, .text = new_text, .origin = new_origin, .layer = layer};
	return 0;
}

struct settings *settings_new(void)
{
	struct settings *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	for (int id = 0; id < SETTING_COUNT; id++) {
		int64_t number;

		if (parse((enum setting)id, setting_info(id)->fallback, &number) ||
		    store(s, (enum setting)id, SETTINGS_LIBRARY, setting_info(id)->fallback, number, NULL) < 0) {
			settings_free(s);
			return NULL;
		}
	}
	return s;
}

void settings_free(struct settings *s)
{
	if (!s)
		return;
	for (int id = 0; id < SETTING_COUNT; id++) {
		free(s->values[id].text);
		free(s->values[id].origin);
	}
	free(s);
}

static int find(const char *name)
{
	for (int id = 0; id < SETTING_COUNT; id++) {
		if (strcmp(name, setting_info(id)->name) == 0)
			return id;
	}
	return -1;
}

static int unknown(const char *name, const char *origin)
{
	char near[256] = "";
	size_t used = 0;

	for (int id = 0; id < SETTING_COUNT && used < sizeof(near); id++) {
		if (near_miss(name, setting_info(id)->name))
			used += (size_t)snprintf(near + used, sizeof(near) - used, "%s%s", used ? ", " : "", setting_info(id)->name);
	}
	if (used)
		return error_set(-EINVAL, "there is no setting \"%.64s\" (%s); did you mean %s?", name, origin, near);
	return error_set(-EINVAL, "there is no setting \"%.64s\" (%s); ibvdev-info lists them all", name, origin);
}

int settings_set(struct settings *s, enum settings_layer layer, const char *name, const char *value, const char *origin)
{
	int id = find(name);
	const char *wrong;
	int64_t number;

	if (id < 0)
		return unknown(name, origin);
	/* Checked also where a higher layer wins: a mistake should not wait for its day. */
	wrong = parse((enum setting)id, value, &number);
	if (wrong)
		return reject((enum setting)id, value, origin, wrong);
	if (s->values[id].origin && s->values[id].layer > layer)
		return 0;
	return store(s, (enum setting)id, layer, value, number, origin);
}

int settings_set_pair(struct settings *s, enum settings_layer layer, const char *pair, const char *origin)
{
	const char *equals = strchr(pair, '=');
	char name[NAME_BYTES];

	if (!equals)
		return error_set(-EINVAL, "\"%.200s\" (%s) is not a setting: write name=value", pair, origin);
	/* A name that is cut here is too long to be one of ours, and still shows what was meant. */
	snprintf(name, sizeof(name), "%.*s", (int)(equals - pair < NAME_BYTES ? equals - pair : NAME_BYTES), pair);
	return settings_set(s, layer, name, equals + 1, origin);
}

static bool is_setting_variable(const char *name)
{
	static const char *const others[] = {"IBVDEV_BUILD", "IBVDEV_LIBRARY", "IBVDEV_HOME", "IBVDEV_VM", NULL};

	for (int i = 0; others[i]; i++) {
		if (strcmp(name, others[i]) == 0)
			return false;
	}
	return strncmp(name, "IBVDEV_", 7) == 0 && strncmp(name, "IBVDEV_TEST_", 12) != 0 && strncmp(name, "IBVDEV_VM_", 10) != 0;
}

int settings_set_environment(struct settings *s)
{
	for (char **variable = environ; variable && *variable; variable++) {
		const char *equals = strchr(*variable, '=');
		char name[NAME_BYTES], lower[NAME_BYTES], origin[NAME_BYTES + 16];
		int err;

		if (!equals || strncmp(*variable, "IBVDEV_", 7) != 0)
			continue;
		snprintf(name, sizeof(name), "%.*s", (int)(equals - *variable < NAME_BYTES ? equals - *variable : NAME_BYTES), *variable);
		if (!is_setting_variable(name))
			continue;
		for (size_t i = 0; i <= strlen(name); i++)
			lower[i] = (char)tolower((unsigned char)name[i]);
		snprintf(origin, sizeof(origin), "environment %s", name);
		err = settings_set(s, SETTINGS_ENVIRONMENT, lower + 7, equals + 1, origin);
		if (err < 0)
			return err;
	}
	return 0;
}

int64_t settings_int(const struct settings *s, enum setting id)
{
	return s->values[id].number;
}

const char *settings_text(const struct settings *s, enum setting id)
{
	if (id == SETTING_JOB_SECRET && s->values[id].text[0])
		return "(set)";
	return s->values[id].text;
}

const char *settings_secret(const struct settings *s)
{
	return s->values[SETTING_JOB_SECRET].text;
}

const char *settings_origin(const struct settings *s, enum setting id)
{
	return s->values[id].origin ? s->values[id].origin : "default";
}
