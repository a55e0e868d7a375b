# SPDX-License-Identifier: MIT
"""What the transport verbs, and ucx and ofi beside it, have to stand on real kernel RDMA, as data: CASES by name.

A case is the options of the rig and a script for the guest.  Suite "vm" is the part that every run of the tests
affords; "vm-verbs" runs when it is named: every combination of the options of the transport.
"""
import itertools
import shlex
from collections import namedtuple

Case = namedtuple("Case", "suite options script java status")
CASES = {}

FORCED = "transports=self,verbs"
ONLY = {"rxe": ["--no-siw"], "siw": ["--no-rxe"]}
# Device, connection method: soft-iWARP is connected by RDMA CM alone.
METHODS = {"rxe-cm": ("rxe", "verbs_connect=cm"), "rxe-tcp": ("rxe", "verbs_connect=tcp"), "siw": ("siw", "verbs_connect=cm")}
RENDEZVOUS = ("read", "write")
# What else the matrix crosses with them.
INLINE = ("verbs_inline=auto", "verbs_inline=0")
SRQ = ("verbs_srq=1", "verbs_srq=0")


def case(name, options, script, suite="vm-verbs", java=False, status=0):
    """status: what the rig must end with; 137: a node was killed, and the other one ended with 0."""
    CASES[name] = Case(suite, options, script, java, status)


def jobs(lines, settings=FORCED):
    """One after the other, until the first that fails."""
    return "".join("step 240 $VM_JOB %s %s\n" % (line, settings) for line in lines)


def environment(settings):
    """The same settings for programs that take none: IBVDEV_VERBS_SRQ=0."""
    return "".join("export IBVDEV_%s=%s\n" % (name.upper(), shlex.quote(value))
                   for name, value in (pair.split("=") for pair in settings.split()))


# --- one guest, programs in C ---

# Every line is one job.  The stream of seed 3 has messages of 1 MB.
TRAFFIC = [
    "--ranks 2 --seeds 3",
    "--ranks 4 --seeds 2",
    "--ranks 2 --seeds 2 --threads",
    "--ranks 4 --seeds 1 --seed 7 --threads",
    "--ranks 2 --big 20000000",
    "--ranks 4 --ring 200 --bytes 100",
    "--ranks 3 --kill",
    "--ranks 2 --total 5000",
]
case("rxe", ONLY["rxe"], jobs(TRAFFIC), "vm")
case("siw", ONLY["siw"], jobs(TRAFFIC), "vm")
# soft-iWARP's own fault with short memory across the end of a page (rma.c) must not reach a message.
case("siw-heads", ONLY["siw"], "".join(jobs(["--ranks 2 --heads verbs_get_min=0 psl=0 verbs_rendezvous=" + rendezvous])
     for rendezvous in RENDEZVOUS), "vm")

# Other paths through the transport.
VARIANTS = [
    "--ranks 3 --seeds 2 --seed 10 verbs_srq=0",
    "--ranks 3 --seeds 2 --seed 20 verbs_inline=0 verbs_slots=4",
    "--ranks 3 --seeds 2 --seed 30 verbs_chunk=512 psl=1k",
    "--ranks 2 --seeds 2 --seed 40 verbs_get_min=1g",
    "--ranks 2 --seeds 2 --seed 50 verbs_get_min=0 psl=0",
    "--ranks 2 --seeds 2 --seed 60 verbs_rendezvous=write",
    "--ranks 2 --ring 200 verbs_slots=4",
    "--ranks 2 --big 100000 spin_us=0 yield_us=0",
]
for device, options in ONLY.items():
    case(device + "-variants", options, jobs(VARIANTS))

case("device", [], jobs(["--ranks 2 --seeds 1 verbs_device=siw0", "--ranks 2 --seeds 1 verbs_device=rxe0:1",
                         "--ranks 2 --seeds 1 verbs_device=rxe0 verbs_gid_index=1", "--ranks 2 --seeds 1"]), "vm")

# Few pages may be locked: it works, with one warning a rank.
MEMLOCK = """
jobs_warn() { # jobs_warn RANKS ARGUMENT...: each rank warns once, and the job is good
	ranks=$1; shift
	step 240 $VM_JOB --ranks $ranks "$@" log=warn 2>/tmp/warnings || { cat /tmp/warnings; exit 1; }
	cat /tmp/warnings
	[ "$(grep -c 'ulimit -l' /tmp/warnings)" = $ranks ] || { echo "not one warning a rank"; exit 1; }
}
jobs_warn 2 --seeds 1 %(forced)s
jobs_warn 2 --big 3000000 %(forced)s
jobs_warn 4 --big 300000 %(forced)s
""" % {"forced": FORCED}
case("memlock", ["--no-siw", "--memlock", "64", "--user", "nobody"], MEMLOCK, "vm")
case("memlock-siw", ["--no-rxe", "--memlock", "64", "--user", "nobody"], MEMLOCK)

# 64 ranks that talk in a ring: two queue pairs each (vm-job checks), whatever the size of the job.
case("ring", ["--no-siw"], jobs(["--ranks 64 --ring 3"]), "vm")
case("ring-siw", ["--no-rxe"], jobs(["--ranks 64 --ring 3"]))

STALE = ["--ranks 2 --stale 10000 --bytes 40000"]
for device, rendezvous in itertools.product(ONLY, RENDEZVOUS):
    case("stale-%s-%s" % (device, rendezvous), ONLY[device], jobs(STALE, FORCED + " verbs_rendezvous=" + rendezvous))

# --- the matrix ---

MATRIX = ["--ranks 4 --seeds 1 --seed 7 --threads", "--ranks 3 --seeds 1 --seed 12", "--ranks 2 --big 2000000"]
TOTAL = ["--ranks 2 --total 100000"]
for (method, (device, connect)), rendezvous in itertools.product(METHODS.items(), RENDEZVOUS):
    both = "%s %s verbs_rendezvous=%s" % (FORCED, connect, rendezvous)
    case("matrix-%s-%s" % (method, rendezvous), ONLY[device],
         "".join(jobs(MATRIX, "%s %s %s" % (both, inline, srq)) for inline, srq in itertools.product(INLINE, SRQ)))
    # 100,000 messages: two of the four, so that the methods meet each of them.
    for inline, srq in zip(INLINE, SRQ if rendezvous == "read" else reversed(SRQ)):
        case("total-%s-%s-%s-%s" % (method, rendezvous, "inline" if inline == INLINE[0] else "noinline", "srq" if srq == SRQ[0] else "nosrq"),
             ONLY[device], jobs(TOTAL, "%s %s %s" % (both, inline, srq)))

# --- one guest, programs in Java ---

# The sections of mpitest.Everything in parts of a few minutes each.
PARTS = {
    "a": "types modes exchange head tags buffered completion synchronous persistent self probe wildcards order unexpected truncation",
    "b": "sizes objects derived packed random barrier bcast gather",
    "c": "reduce located userop flat intra groups cartesian graph inter iwaitany peek itest mpjdev",
}
# Every connection method meets every part at 2 and at 4 ranks.  Rendezvous, inline and the shared queue alternate over them, so that any two values
# of the five meet in some case (pairs() looks): all combinations would be 144 cases of some minutes each.
JAVA = [(method, ranks, part, RENDEZVOUS[(w + r + p) % 2], INLINE[(w * r + p) % 2], SRQ[(w + p * r + p // 2) % 2])
        for (w, method), (r, ranks), (p, part) in itertools.product(enumerate(METHODS), enumerate((2, 4)), enumerate(PARTS))]


def pairs():
    """Raises unless any two values of two different factors are together in some case of JAVA."""
    factors = (METHODS, (2, 4), PARTS, RENDEZVOUS, INLINE, SRQ)
    for a, b in itertools.combinations(range(len(factors)), 2):
        missing = set(itertools.product(factors[a], factors[b])) - {(row[a], row[b]) for row in JAVA}
        if missing:
            raise AssertionError("no case has %s" % sorted(missing))


pairs()
for method, ranks, part, rendezvous, inline, srq in JAVA:
    device, connect = METHODS[method]
    settings = "%s %s verbs_rendezvous=%s %s %s" % (FORCED, connect, rendezvous, inline, srq)
    case("java-%s-%s-%d%s" % (method, rendezvous, ranks, part), ONLY[device],
         environment(settings) + "mpi %d $MPI_TESTS mpitest.Everything limit=400 threads=2 %s\n" % (ranks, PARTS[part]), java=True)

for method, (device, connect) in METHODS.items():
    for test in ("device.DeviceTest", "mpitest.EndingsTest"):
        case("junit-%s-%s" % (method, test.split(".")[1]), ONLY[device],
             environment("%s %s" % (FORCED, connect)) + "junit %s\n" % test, java=True)

for device, options in ONLY.items():
    for kernel in ("CG", "EP", "FT", "IS", "MG"):
        case("npb-%s-%s" % (device, kernel), options,
             environment(FORCED) + "".join("mpi %d $NPB npb.Npb %s S\n" % (ranks, kernel) for ranks in (1, 2, 4, 8)), java=True)
case("java", ONLY["rxe"], environment(FORCED) + "mpi 2 $MPI_TESTS mpitest.Everything limit=300 threads=0 exchange wildcards bcast\n",
     "vm", java=True)

# Arrays and objects. Messages up to 2 MB, and one of 64 MB each way with the collector at work.
XXDEV = {"messages": ["Messages"], "objects": ["ObjectMessages"], "requests": ["Requests"],
         "others": ["Mismatches", "Lifecycle cases", "Lifecycle rounds"], "collected": ["Collected torture", "Collected deadlock"],
         "large": ["Large"]}
# Once as they are, arrays pinned; once more with the JVM's look at how its native interface is used, under which there are none.
XXDEV_JVM = {"": "", "-checked": " -Xcheck:jni"}
for (device, options), (name, programs), (checked, option) in itertools.product(ONLY.items(), XXDEV.items(), XXDEV_JVM.items()):
    case("xxdev-%s-%s%s" % (device, name, checked), options,
         environment(FORCED) + "XXDEV_OPTIONS='-Xmx1g -Dxxdevtest.largest=2097152%s'\n" % option +
         "".join("xxdev 2 xxdevtest.%s\n" % program for program in programs), java=True)

# --- the same over UCX and libfabric, over soft-RoCE ---

FABRICS = {"ucx-tcp": "ucx ucx_tls=tcp", "ucx-rc": "ucx ucx_tls=rc_verbs,tcp",
           "ofi-tcp": "ofi ofi_provider=tcp;ofi_rxm", "ofi-verbs": "ofi ofi_provider=verbs;ofi_rxm"}
FABRIC_TRAFFIC = ["--ranks 2 --seeds 3", "--ranks 4 --seeds 2", "--ranks 4 --seeds 1 --seed 7 --threads", "--ranks 2 --big 2000000",
                  "--ranks 3 --kill", "--ranks 2 --total 5000"]
for fabric, settings in FABRICS.items():
    forced = environment("transports=self," + settings)
    case("fabric-" + fabric, ONLY["rxe"], forced + jobs(FABRIC_TRAFFIC, ""))
    case("fabric-%s-total" % fabric, ONLY["rxe"], forced + jobs(TOTAL, ""))
    case("fabric-%s-stale" % fabric, ONLY["rxe"], forced + jobs(STALE, ""))
    for part, sections in PARTS.items():
        case("fabric-%s-java-%s" % (fabric, part), ONLY["rxe"],
             forced + "mpi 2 $MPI_TESTS mpitest.Everything limit=400 threads=2 %s\n" % sections, java=True)
    for name, programs in XXDEV.items():
        case("fabric-%s-xxdev-%s" % (fabric, name), ONLY["rxe"],
             forced + "XXDEV_OPTIONS='-Xmx1g -Dxxdevtest.largest=2097152'\n" +
             "".join("xxdev 2 xxdevtest.%s\n" % program for program in programs), java=True)
    for kernel in ("CG", "EP", "FT", "IS", "MG"):
        case("fabric-%s-npb-%s" % (fabric, kernel), ONLY["rxe"],
             forced + "".join("mpi %d $NPB npb.Npb %s S\n" % (ranks, kernel) for ranks in (2, 4)), java=True)

# --- two guests, two ranks each: shm inside, Verbs between ---

TWO = ["--nodes", "2", "--both", "--smp", "2"]
JOIN = "--join ibvdev0:7100,ibvdev0:7101,ibvdev1:7102,ibvdev1:7103"
NODES = ["%s --seeds 1 --seed 5" % JOIN, "%s --seeds 1 --seed 7 --threads" % JOIN, "%s --big 300000" % JOIN]
for device, options in ONLY.items():
    case("nodes-" + device, TWO + options, jobs(NODES, "transports=self,shm,verbs"), "vm" if device == "rxe" else "vm-verbs")
    case("nodes-java-" + device, TWO + options,
         "mpi_nodes $MPI_TESTS mpitest.Everything limit=300 threads=0 exchange wildcards order barrier bcast gather reduce\n", java=True)
    case("nodes-npb-" + device, TWO + options, "mpi_nodes $NPB npb.Npb CG S\n", java=True)

# Loss, doubles and reordering.  rxe waits for its retry time at each loss: a short one, and few messages.
NETEM = ["--netem", "delay 5ms 5ms loss 1% duplicate 1%"]
LOSSY = {"rxe": ["%s --seeds 1 --seed 5 --messages 12 verbs_chunk=1k" % JOIN, "%s --big 10000 verbs_chunk=1k" % JOIN],
         "siw": ["%s --seeds 1 --seed 5 --messages 40" % JOIN, "%s --big 200000" % JOIN]}
for device, options in ONLY.items():
    case("netem-" + device, TWO + options + NETEM, jobs(LOSSY[device], "transports=self,shm,verbs verbs_timeout_ms=1000"))

# A library whose packets are as long as ours with verbs_chunk=1k, and time for rxe to repeat them.
SHORT = {"ucx-rc": "export UCX_RC_VERBS_SEG_SIZE=1k UCX_RC_VERBS_TIMEOUT=60ms\n" + environment("ucx_timeout_ms=100000"),
         "ofi-verbs": "export FI_OFI_RXM_BUFFER_SIZE=1024\n" + environment("ofi_timeout_ms=100000")}
for fabric, settings in FABRICS.items():
    forced = environment("transports=self,shm," + settings)
    case("fabric-%s-nodes" % fabric, TWO + ONLY["rxe"], forced + jobs(NODES, ""))
    case("fabric-%s-netem" % fabric, TWO + ONLY["rxe"] + NETEM, SHORT.get(fabric, "") + forced + jobs(LOSSY["rxe"], ""))

# A rank, a network and a guest that go: the ranks that are left get an error with the name and can finish.
ENDS = "transports=self,shm,verbs fault_scope=job verbs_timeout_ms=2000 finish_timeout_ms=10000"
CUT = """
# node 0 does it to both
if [ $IBVDEV_TEST_NODE = 0 ]; then
	( for n in $(seq 600); do [ ! -e /tmp/ready ] || break; sleep 0.1; done; %s ) &
fi
step 120 $VM_JOB %s --lost /tmp/ready %s
"""
SILENCE = "tc qdisc add dev eth0 root netem loss 100%"
for device, options in ONLY.items():
    case("killed-rank-" + device, TWO + options, jobs([JOIN + " --kill"], ENDS), "vm" if device == "rxe" else "vm-verbs")
    case("silence-" + device, TWO + options, CUT % ("on-node 1 %s; %s" % (SILENCE, SILENCE), JOIN, ENDS))
    case("link-down-" + device, TWO + options, CUT % ("on-node 1 ip link set eth0 down; ip link set eth0 down", JOIN, ENDS))
    case("killed-guest-" + device, TWO + options, CUT % ("kill-node 1", JOIN, ENDS), status=137)
