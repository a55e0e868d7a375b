/* SPDX-License-Identifier: MIT */
#ifndef IBVX_BASE_SETTINGS_H
#define IBVX_BASE_SETTINGS_H
/*
 * settings: every knob of the library in one table (settings.c), with name, kind,
 * unit, range, default and a line of help.
 *
 * A setting called `psl` is the environment variable IBVDEV_PSL, the Java system
 * property ibvdev.psl (which the JNI layer hands over as "psl=..."), and in a conf
 * file the line "#ibvdev psl=65536" (a comment to other devices).
 * Precedence: caller (system properties), environment, conf file, embedding layer's
 * defaults, library defaults.  An unknown name or a malformed or out-of-range value
 * is an error that names the setting, the value, where it was set, the range, and for a name
 * the near misses (edit distance).  Sizes accept k, m, g (powers of 1024); times are
 * plain numbers in the unit that the name ends with; booleans accept 0/1, on/off,
 * true/false, yes/no; "auto" is accepted where the table allows it and reads as -1.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum setting {
	SETTING_PSL,                 /* bytes: protocol switch limit */
	SETTING_EAGER_WINDOW,        /* bytes per peer of unexpected eager data, overhead included */
	SETTING_SPIN_US,             /* us of busy polling before yielding; auto */
	SETTING_YIELD_US,            /* us of sched_yield before sleeping; auto */
	SETTING_PROGRESS_THREAD,     /* bool */
	SETTING_LEASE_US,            /* us: how long memory may stay pinned for a claimed copy */
	SETTING_TRANSPORTS,          /* list of names, best first: "self,shm,verbs,ucx,ofi" */
	SETTING_SHM_SLOTS,           /* count, power of two: control slots of a ring */
	SETTING_SHM_RING,            /* bytes, power of two: data area of a ring */
	SETTING_SHM_CHUNK,           /* bytes: largest piece that goes through the ring at once */
	SETTING_SHM_STORES,          /* choice: auto, cached, streaming */
	SETTING_CMA,                 /* choice: auto, always, never */
	SETTING_CMA_MIN,             /* bytes: smallest message that CMA may carry; auto */
	SETTING_VERBS_DEVICE,        /* "name" or "name:port"; empty: any */
	SETTING_VERBS_GID_INDEX,     /* entry of the port's GID table, auto */
	SETTING_VERBS_SLOTS,         /* count: packets that a peer may send ahead */
	SETTING_VERBS_CHUNK,         /* bytes of a packet, header included */
	SETTING_VERBS_INLINE,        /* bytes: largest packet that is sent inline; auto */
	SETTING_VERBS_BUFFER_BYTES,  /* bytes for packets on one device */
	SETTING_VERBS_SRQ,           /* bool: shared receive queue where there is one */
	SETTING_VERBS_GET_MIN,       /* bytes: smallest message that is transferred by RDMA */
	SETTING_VERBS_CONNECT,       /* choice: auto, cm, tcp */
	SETTING_VERBS_MTU,           /* choice: auto, then enum ibv_mtu */
	SETTING_VERBS_SERVICE_LEVEL, /* count: auto, 0 to 15 */
	SETTING_VERBS_TRAFFIC_CLASS,
	SETTING_VERBS_PKEY,          /* count: auto, 0 to 255 */
	SETTING_VERBS_RENDEZVOUS,    /* choice: auto, read, write */
	SETTING_VERBS_CACHE_ENTRIES, /* count: buffers whose registrations stay */
	SETTING_VERBS_CACHE_BYTES,   /* bytes of them */
	SETTING_VERBS_ODP,           /* bool: on-demand paging */
	SETTING_VERBS_TIMEOUT_MS,    /* ms without acknowledgement until a peer is given up */
	SETTING_UCX_TLS,             /* UCX's list of transports */
	SETTING_UCX_NET_DEVICES,     /* UCX's list of devices; empty: interfaces that are up */
	SETTING_UCX_TIMEOUT_MS,      /* ms of silence until a peer is given up; 0: never */
	SETTING_OFI_PROVIDER,        /* provider of libfabric; empty: the best one */
	SETTING_OFI_TIMEOUT_MS,      /* ms of silence until a peer is given up; 0: never */
	/* algorithms of the collective operations (coll/build.h): choices, auto first */
	SETTING_COLL_SHARED,
	SETTING_COLL_BARRIER,
	SETTING_COLL_BCAST,
	SETTING_COLL_GATHER,
	SETTING_COLL_SCATTER,
	SETTING_COLL_ALLGATHER,
	SETTING_COLL_ALLTOALL,
	SETTING_COLL_REDUCE,
	SETTING_COLL_ALLREDUCE,
	SETTING_COLL_REDUCE_SCATTER,
	SETTING_LAUNCHER,          /* choice: auto, conf, pmix, pmi, slurm, single */
	SETTING_NET,               /* list of interfaces, addresses, subnets; empty: all */
	SETTING_MUNGE_SOCKET,      /* path; empty: the default of libmunge */
	SETTING_START_TIMEOUT_MS,  /* ms until a missing rank fails the start */
	SETTING_FINISH_TIMEOUT_MS, /* ms that close waits for sends to drain */
	SETTING_NODE_TIMEOUT_MS,   /* ms that a machine may answer nothing before its ranks are lost */
	SETTING_FAULT_SCOPE,       /* choice: peer, job */
	SETTING_LOG,               /* choice: off, error, warn, info, debug, trace */
	SETTING_LOG_FILE,          /* path; %r becomes the rank; empty: stderr */
	SETTING_COUNTERS,          /* bool: print the counters of every peer at close, to the log's sink */
	SETTING_JOB_ID,            /* 32 hex digits; empty: rank 0 draws one */
	SETTING_JOB_SECRET,        /* any text; shown as "(set)" */
	SETTING_COUNT
};

enum setting_kind { SETTING_KIND_INT, SETTING_KIND_BYTES, SETTING_KIND_BOOL, SETTING_KIND_CHOICE, SETTING_KIND_TEXT };

struct setting_info {
	const char *name;
	enum setting_kind kind;
	const char *unit; /* "bytes", "us", "ms", "count", "" */
	int64_t min, max;
	bool accepts_auto;
	const char *const *choices; /* NULL-terminated, index == value; for CHOICE */
	const char *fallback;       /* the library's default, as text */
	const char *help;           /* one line */
};

struct settings; /* a set of values with their origins; plain memory, not thread-safe while being changed */

const struct setting_info *setting_info(enum setting id);

/* All at their defaults.  NULL only without memory. */
struct settings *settings_new(void);
void settings_free(struct settings *s); /* NULL allowed */

enum settings_layer { SETTINGS_LIBRARY, SETTINGS_EMBEDDER, SETTINGS_CONF_FILE, SETTINGS_ENVIRONMENT, SETTINGS_CALLER };

/* Sets one value.  A lower layer never overrides a higher one that is already set.
 * origin is copied: "environment IBVDEV_PSL", "conf file x.conf line 4", ...
 * 0, or -EINVAL (-ENOMEM) with text. */
int settings_set(struct settings *s, enum settings_layer layer, const char *name, const char *value, const char *origin);
/* "name=value" */
int settings_set_pair(struct settings *s, enum settings_layer layer, const char *pair, const char *origin);
/* Every IBVDEV_* variable of the environment.  Not settings and skipped: IBVDEV_BUILD,
 * IBVDEV_LIBRARY, IBVDEV_HOME, IBVDEV_VM, and whatever begins with IBVDEV_TEST_ or IBVDEV_VM_. */
int settings_set_environment(struct settings *s);

int64_t settings_int(const struct settings *s, enum setting id);      /* INT, BYTES, BOOL, CHOICE (index); auto is -1 */
const char *settings_text(const struct settings *s, enum setting id); /* any kind, as shown */
/* The job secret itself; "" if none is set.  The layer that checks a secret needs this one: settings_text()
 * is "(set)" whatever it is, and two different secrets would look the same. */
const char *settings_secret(const struct settings *s);
const char *settings_origin(const struct settings *s, enum setting id); /* "default" or where it was set */

#endif
