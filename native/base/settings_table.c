/* SPDX-License-Identifier: MIT */
/* Every setting: its name, kind, limits, default and help. */
#include <stddef.h>

#include "base/settings.h"

#define KIB INT64_C(1024)
#define MIB (1024 * KIB)
#define GIB (1024 * MIB)
#define MS_MAX INT64_C(86400000) /* a day */

static const char *const cma_choices[] = {"auto", "always", "never", NULL};
static const char *const stores_choices[] = {"auto", "cached", "streaming", NULL};
static const char *const scope_choices[] = {"peer", "job", NULL};
static const char *const connect_choices[] = {"auto", "cm", "tcp", NULL};
static const char *const mtu_choices[] = {"auto", "256", "512", "1024", "2048", "4096", NULL};
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
	[SETTING_VERBS_MTU] = CHOICE("verbs_mtu", mtu_choices, 5, "auto",
				     "largest packet on the wire, in bytes, of connections by TCP wire-up; auto: what both ports have"),
	[SETTING_VERBS_SERVICE_LEVEL] =
		INT("verbs_service_level", "count", 0, 15, true, "auto", "InfiniBand service level of connections by TCP wire-up; auto: 0"),
	[SETTING_VERBS_TRAFFIC_CLASS] = INT("verbs_traffic_class", "count", 0, 255, true, "auto",
					    "traffic class of RoCE packets (DSCP and ECN, as the switches want it); auto: the system's"),
	[SETTING_VERBS_PKEY] =
		INT("verbs_pkey", "count", 1, 65535, true, "auto",
		    "InfiniBand partition (P_Key, such as 0x8001) of connections by TCP wire-up; auto: the port's first full membership"),
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
	[SETTING_COLL_SHARED] =
		BOOL("coll_shared", "1", "short collective operations within a node through shared memory, without messages"),
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

const struct setting_info *setting_info(enum setting id)
{
	return &table[id];
}
