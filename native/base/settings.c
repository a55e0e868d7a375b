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
#define MS_MAX INT64_C(86400000) /* a day */
#define NAME_BYTES 64

static const char *const cma_choices[] = {"auto", "always", "never", NULL};
static const char *const stores_choices[] = {"auto", "cached", "streaming", NULL};
static const char *const scope_choices[] = {"peer", "job", NULL};
static const char *const connect_choices[] = {"auto", "cm", "tcp", NULL};
static const char *const rendezvous_choices[] = {"auto", "read", "write", NULL};
static const char *const launcher_choices[] = {"auto", "conf", "pmix", "pmi", "slurm", "single", NULL};
static const char *const barrier_choices[] = {"auto", "dissemination", "linear", NULL};
static const char *const bcast_choices[] = {"auto", "binomial", "scatter_allgather", "chain", "linear", NULL};
static const char *const gather_choices[] = {"auto", "linear", "binomial", NULL};
static const char *const allgather_choices[] = {"auto", "ring", "doubling", "bruck", NULL};
static const char *const alltoall_choices[] = {"auto", "linear", "pairwise", "bruck", NULL};
static const char *const reduce_choices[] = {"auto", "binomial", "rabenseifner", "linear", NULL};
static const char *const allreduce_choices[] = {"auto", "doubling", "rabenseifner", "ring", "linear", NULL};
static const char *const reduce_scatter_choices[] = {"auto", "pairwise", "halving", NULL};
static const char *const log_choices[] = {"off", "error", "warn", "info", "debug", "trace", NULL};

/* Columns: kind, name, unit, min, max, accepts auto, choices, fallback, help.
 * Of a text, max is the longest length in bytes. */
#define ENTRY(knd, nm, un, lo, hi, aut, ch, fb, hlp)                                                                                      \
	{                                                                                                                                 \
		.name = (nm), .kind = SETTING_KIND_##knd, .unit = (un), .min = (lo), .max = (hi), .accepts_auto = (aut), .choices = (ch), \
		.fallback = (fb), .help = (hlp)                                                                                           \
	}
#define INT(nm, un, lo, hi, aut, fb, hlp) ENTRY(INT, nm, un, lo, hi, aut, NULL, fb, hlp)
#define BYTES(nm, lo, hi, aut, fb, hlp) ENTRY(BYTES, nm, "bytes", lo, hi, aut, NULL, fb, hlp)
#define BOOL(nm, fb, hlp) ENTRY(BOOL, nm, "", 0, 1, false, NULL, fb, hlp)
#define CHOICE(nm, ch, hi, fb, hlp) ENTRY(CHOICE, nm, "", 0, hi, false, ch, fb, hlp)
#define TEXT(nm, longest, fb, hlp) ENTRY(TEXT, nm, "", 0, longest, false, NULL, fb, hlp)

/* clang-format off: a row is a line and its help */
static const struct setting_info table[SETTING_COUNT] = {
	[SETTING_PSL] = BYTES("psl", 0, GIB, false, "128k", "protocol switch limit: longer messages wait for the receiver (rendezvous)"),
	[SETTING_EAGER_WINDOW] = BYTES("eager_window", 64 * KIB, GIB, false, "8m",
				       "unexpected eager data that a receiver keeps for one sender, overhead included"),
	[SETTING_SPIN_US] = INT("spin_us", "us", 0, 1000000, true, "auto", "busy polling of a waiting call before it yields the processor"),
	[SETTING_YIELD_US] =
		INT("yield_us", "us", 0, 1000000, true, "auto", "polling between sched_yield calls before a waiting call sleeps"),
	[SETTING_PROGRESS_THREAD] = BOOL("progress_thread", "1", "a thread that continues long messages while no call polls"),
	[SETTING_LEASE_US] = INT("lease_us", "us", 50, 1000000, false, "2000",
				 "how long a collector may have to wait for one piece of an array that is copied straight to a peer's"),
	[SETTING_TRANSPORTS] =
		TEXT("transports", 255, "self,shm,verbs,ucx,ofi", "transports that may be used, best first, separated by commas"),
	[SETTING_SHM_SLOTS] =
		INT("shm_slots", "count", 16, 65536, false, "256", "packets that one shared-memory ring holds (a power of two)"),
	[SETTING_SHM_RING] = BYTES("shm_ring", 16 * KIB, 64 * MIB, false, "256k", "data area of one shared-memory ring (a power of two)"),
	[SETTING_SHM_CHUNK] = BYTES("shm_chunk", KIB, MIB, false, "64k", "largest piece that goes through a shared-memory ring at once"),
	[SETTING_SHM_STORES] = CHOICE(
		"shm_stores", stores_choices, 2, "auto",
		"how long pieces are written into the ring: so that they stay in the caches, or past them; auto learns which is faster"),
	[SETTING_CMA] = CHOICE("cma", cma_choices, 2, "auto",
			       "one copy between two processes (process_vm_readv) for long messages: auto learns when it is faster"),
	[SETTING_CMA_MIN] = BYTES("cma_min", 0, GIB, true, "auto", "smallest message that may take one copy"),
	[SETTING_VERBS_DEVICE] =
		TEXT("verbs_device", 70, "",
		     "RDMA device to use, as name or name:port (ibv_devices lists them); empty: the one on the route to each peer"),
	[SETTING_VERBS_GID_INDEX] =
		INT("verbs_gid_index", "count", 0, 65535, true, "auto", "entry of the port's GID table whose address is to be used"),
	[SETTING_VERBS_SLOTS] =
		INT("verbs_slots", "count", 4, 4096, false, "32",
		    "packets that a peer may send before this rank polls, and send buffers per connection (a power of two)"),
	[SETTING_VERBS_CHUNK] =
		BYTES("verbs_chunk", 512, MIB, false, "8k", "size of a packet buffer on an RDMA connection, header included"),
	[SETTING_VERBS_BUFFER_BYTES] = BYTES("verbs_buffer_bytes", 64 * KIB, 64 * GIB, false, "64m",
					     "memory that packets may take on each RDMA device, for all connections together"),
	[SETTING_VERBS_INLINE] = BYTES("verbs_inline", 0, 4 * KIB, true, "auto",
				       "largest packet whose bytes go to the adapter with the work request; auto: what the adapter allows"),
	[SETTING_VERBS_SRQ] = BOOL("verbs_srq", "1", "one receive queue for all connections where the adapter has it"),
	[SETTING_VERBS_GET_MIN] =
		BYTES("verbs_get_min", 0, GIB, false, "32k", "smallest message that is transferred from memory to memory by RDMA"),
	[SETTING_VERBS_CONNECT] =
		CHOICE("verbs_connect", connect_choices, 2, "auto",
		       "how RDMA connections are made: by RDMA CM, or by a wire-up over TCP; auto: RDMA CM where it can be used"),
	[SETTING_VERBS_RENDEZVOUS] = CHOICE(
		"verbs_rendezvous", rendezvous_choices, 2, "auto",
		"which side transfers long messages by RDMA: the receiver (read) or the sender (write); auto: the receiver if it can"),
	[SETTING_VERBS_CACHE_ENTRIES] =
		INT("verbs_cache_entries", "count", 0, 65536, false, "128",
		    "registered buffers (of C, of Java, of MPJ Express's pool) that stay registered between messages"),
	[SETTING_VERBS_CACHE_BYTES] = BYTES("verbs_cache_bytes", 0, 1024 * GIB, false, "256m", "how large they may be together"),
	[SETTING_VERBS_ODP] =
		BOOL("verbs_odp", "0", "register message memory for on-demand paging where the adapter has it: nothing is locked"),
	[SETTING_VERBS_TIMEOUT_MS] = INT("verbs_timeout_ms", "ms", 10, 60000, false, "8000",
					 "how long an RDMA adapter repeats a packet that is not acknowledged, about"),
	[SETTING_UCX_TLS] =
		TEXT("ucx_tls", 255, "tcp", "what UCX may use, as its UCX_TLS: tcp; rc_verbs,tcp; all; empty: what UCX chooses"),
	[SETTING_UCX_NET_DEVICES] =
		TEXT("ucx_net_devices", 255, "",
		     "devices that UCX may use, as its UCX_NET_DEVICES (eth0, mlx5_0:1); empty: with tcp the interfaces that are up"),
	[SETTING_UCX_TIMEOUT_MS] =
		INT("ucx_timeout_ms", "ms", 0, MS_MAX, false, "15000",
		    "how long a peer may be silent, also a stopped one, until UCX's connection to it is given up; 0: for ever"),
	[SETTING_OFI_PROVIDER] =
		TEXT("ofi_provider", 63, "",
		     "provider of libfabric: tcp;ofi_rxm, verbs;ofi_rxm, efa, cxi; empty: the first of efa, cxi, psm3, tcp that is here"),
	[SETTING_OFI_TIMEOUT_MS] =
		INT("ofi_timeout_ms", "ms", 0, MS_MAX, false, "15000",
		    "how long a peer may be silent, also a stopped one, until libfabric's connection to it is given up; 0: for ever"),
	[SETTING_COLL_BARRIER] =
		CHOICE("coll_barrier", barrier_choices, 2, "auto", "algorithm of barrier; auto: by number of ranks and processors"),
	[SETTING_COLL_BCAST] = CHOICE("coll_bcast", bcast_choices, 4, "auto", "algorithm of bcast; auto: by size and number of ranks"),
	[SETTING_COLL_GATHER] = CHOICE("coll_gather", gather_choices, 2, "auto", "algorithm of gather; auto: by size and number of ranks"),
	[SETTING_COLL_SCATTER] =
		CHOICE("coll_scatter", gather_choices, 2, "auto", "algorithm of scatter; auto: by size and number of ranks"),
	[SETTING_COLL_ALLGATHER] =
		CHOICE("coll_allgather", allgather_choices, 3, "auto", "algorithm of allgather; auto: by size and number of ranks"),
	[SETTING_COLL_ALLTOALL] =
		CHOICE("coll_alltoall", alltoall_choices, 3, "auto", "algorithm of alltoall; auto: by size and number of ranks"),
	[SETTING_COLL_REDUCE] = CHOICE("coll_reduce", reduce_choices, 3, "auto", "algorithm of reduce; auto: by size and number of ranks"),
	[SETTING_COLL_ALLREDUCE] =
		CHOICE("coll_allreduce", allreduce_choices, 4, "auto", "algorithm of allreduce; auto: by size and number of ranks"),
	[SETTING_COLL_REDUCE_SCATTER] = CHOICE("coll_reduce_scatter", reduce_scatter_choices, 2, "auto",
					       "algorithm of reduce_scatter; auto: by size and number of ranks"),
	[SETTING_LAUNCHER] = CHOICE("launcher", launcher_choices, 5, "auto",
				    "what provides rank, size and the address of rank 0; auto: the conf, else what the environment shows"),
	[SETTING_NET] = TEXT("net", 255, "",
			     "interfaces, addresses or subnets (eth0, 10.1.0.0/16) where rank 0 listens for the others; empty: all"),
	[SETTING_MUNGE_SOCKET] =
		TEXT("munge_socket", 107, "", "where the munge daemon listens (plain Slurm), if not where its library expects it"),
	[SETTING_START_TIMEOUT_MS] = INT("start_timeout_ms", "ms", 1, MS_MAX, false, "60000", "how long the start waits for missing ranks"),
	[SETTING_FINISH_TIMEOUT_MS] =
		INT("finish_timeout_ms", "ms", 0, MS_MAX, false, "30000", "how long the close waits for accepted sends to drain"),
	[SETTING_NODE_TIMEOUT_MS] = INT("node_timeout_ms", "ms", 2000, 3600000, false, "10000",
					"how long the kernel of another machine may answer nothing before its ranks are lost, about"),
	[SETTING_FAULT_SCOPE] = CHOICE("fault_scope", scope_choices, 1, "peer",
				       "what a dead rank ends: the requests that need it, or all requests of the job"),
	[SETTING_LOG] = CHOICE("log", log_choices, 5, "off", "how much is logged"),
	[SETTING_LOG_FILE] = TEXT("log_file", 4095, "", "file that takes the log; %r becomes the rank; empty: standard error"),
	[SETTING_COUNTERS] = BOOL("counters", "0", "print the counters of every peer when the endpoint closes"),
	[SETTING_JOB_ID] = TEXT("job_id", 32, "", "32 hexadecimal digits, the same on every rank; empty: rank 0 draws them"),
	[SETTING_JOB_SECRET] = TEXT("job_secret", 1023, "", "text that every rank of the job must know to be let in"),
};
/* clang-format on */

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

const struct setting_info *setting_info(enum setting id)
{
	return &table[id];
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
	const struct setting_info *info = &table[id];
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
	return error_set(-EINVAL, "setting %s=%.200s (%s): %s; give %s", table[id].name, value, origin, why, accepted);
}

/* Digits and, for sizes, one of kKmMgG.  False: malformed; an overflow reads as INT64_MAX. */
static bool parse_number(const char *text, bool units, int64_t *out)
{
	int64_t number = 0, scale = 1;

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

	if (len > (size_t)table[id].max)
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
	const struct setting_info *info = &table[id];

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
	const struct setting_info *info = &table[id];
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

		if (parse((enum setting)id, table[id].fallback, &number) ||
		    store(s, (enum setting)id, SETTINGS_LIBRARY, table[id].fallback, number, NULL) < 0) {
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
		if (strcmp(name, table[id].name) == 0)
			return id;
	}
	return -1;
}

static int unknown(const char *name, const char *origin)
{
	char near[256] = "";
	size_t used = 0;

	for (int id = 0; id < SETTING_COUNT && used < sizeof(near); id++) {
		if (near_miss(name, table[id].name))
			used += (size_t)snprintf(near + used, sizeof(near) - used, "%s%s", used ? ", " : "", table[id].name);
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
