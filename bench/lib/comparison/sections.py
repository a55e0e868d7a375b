# SPDX-License-Identifier: MIT
"""What runs in a comparison: sections, each a list of operations for a number of ranks, and the forms of the command."""
from dataclasses import dataclass


def size(text):
    shift = {"k": 10, "m": 20, "g": 30}.get(text[-1:].lower(), 0)
    return int(text[:-1] if shift else text) << shift


@dataclass(frozen=True)
class Section:
    ranks: int
    ops: str  # for --op
    only: tuple = ()  # contestants, empty: all
    without: tuple = ()
    every: int = 1  # runs in each so-many-th round
    whole_job: bool = False  # the time from start to end of the job is a result too

    def ops_for(self, contestant):
        """The operations for --op that this contestant takes part in, or ''."""
        if contestant.name in self.without or (self.only and contestant.name not in self.only):
            return ""
        words = [contestant.lacks.get(word.split("=")[0].split("@")[0], word) for word in self.ops.split(",")]
        return ",".join(word for word in words if word)

    def expanded(self, options):
        """(operation, sizes, parameters) for those that do not use the harness."""
        for word in self.ops.split(","):
            word, _, params = word.partition("@")
            op, _, sizes = word.partition("=")
            sizes = [size(s) for s in (sizes.split("/") if sizes else options.sizes.split(","))]
            if op == "rate":
                sizes, params = [8], "64"
            yield op, sizes, [int(p) for p in params.split("/")] if params else [1 if op == "latency" else options.window]


@dataclass
class Options:
    """How long and how often."""
    sizes: str
    rounds: int
    limit_s: float  # no round begins that would not end within it, and no contestant starts after it
    samples: int
    sample_ms: int
    warmup: int = 20000
    window: int = 16
    no_probe: bool = False
    perftest_samples: int = 3

    def harness(self, ops):
        options = ["--sizes", self.sizes, "--op", ops, "--samples", str(self.samples), "--sample-ms", str(self.sample_ms),
                   "--warmup", str(self.warmup), "--window", str(self.window), "--quiet"]
        return options + (["--no-probe"] if self.no_probe else [])


JOBS = ("ibvx", "mpi-ours", "mpi-ibvdev", "mpi-niodev", "openmpi", "mpich")  # those that run with any number of ranks
PAIRS = JOBS + ("openmpi-nocma", "mpi-smpdev")
BASIC = "latency,bandwidth=8k/64k/512k/4m,rate"
QUEUES = "bibandwidth=64k/1m,posted,unexpected,exchange,exposed"
COLLECTIVES = "barrier,bcast,allgather,alltoall,allreduce,reduce"

# Short, and several times a round: the state changes within minutes, and a ratio needs both sides in one state.
AGAIN = Section(2, "latency=8/64k/1m/16m,rate",
                without=("floor-memcpy", "floor-cacheline", "floor-cma", "mpi-smpdev", "xdev-niodev", "mpi-niodev-unpinned"))

MODES = {
    "full": (Options("1,8,64,512,1k,2k,4k,8k,16k,32k,64k,128k,131080,256k,512k,1m,2m,4m,8m,16m", 8, 840, 5, 10), [
        Section(2, BASIC, without=("floor-memcpy", "floor-cacheline")),
        AGAIN,
        Section(2, QUEUES, PAIRS, every=2),
        AGAIN,
        Section(4, "barrier,allreduce=8,pairs,step,idle", JOBS, every=2),
        Section(8, "barrier,allreduce=8,step", JOBS, every=2),
        Section(2, "latency", ("floor-memcpy", "floor-cacheline"), every=2),
        Section(2, COLLECTIVES, JOBS, every=2),
        Section(2, "threads", JOBS, every=2),
        Section(16, "barrier,allreduce=8,step", JOBS, every=4),
        Section(2, "memory", JOBS, every=4, whole_job=True),
        Section(4, "memory", JOBS, every=4, whole_job=True),
        Section(8, "memory", JOBS, every=4, whole_job=True),
    ]),
    "quick": (Options("8,1k,64k,1m", 2, 100, 4, 8, warmup=10000, perftest_samples=2), [
        Section(2, "latency,rate"),
        Section(4, "barrier,allreduce=8", ("ibvx", "mpi-ours", "mpi-ibvdev", "mpi-niodev", "openmpi")),
    ]),
    "demo": (Options("8,1k,64k,1m", 2, 30, 9, 15, no_probe=True), [Section(2, "latency", ("mpi-ibvdev", "mpi-niodev"))]),
    "smoke": (Options("0,8,100k", 1, 600, 2, 1, warmup=20, window=4, no_probe=True, perftest_samples=1), [
        Section(2, "latency,bandwidth,bibandwidth=100k,rate,posted@1/100,unexpected@1/100,exchange=64k,exposed=64k,"
                   "threads@1/2,idle@20," + COLLECTIVES),
        Section(3, "barrier,bcast=1k,alltoall=1k,pairs,step@50", JOBS),
        Section(2, "memory", JOBS, whole_job=True),
    ]),
}
