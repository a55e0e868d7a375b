# SPDX-License-Identifier: MIT
"""The command line of bench/run."""
import argparse
import os
import platform
import subprocess
import sys
import tempfile
import time

from . import tables
from .contestants import Places, installed
from .results import Results

TEXT = """Measures everything that is installed, in turn (A B C A B C ...), two ranks on two processors, and prints
one table: ibvx in C; ibvdev at three levels of Java (natives, xdev, mpi); niodev at two; Open MPI and MPICH in C.

Before and after each sample a cache line goes back and forth for some milliseconds; that tells "near" from "far"
(on a virtual machine this flips within seconds). Samples between two different probes, or on a busy machine, are dropped,
and every comparison stays within one state."""

# rounds, seconds after which no round begins, sizes, operations, options of the harness
MODES = {
    "full": (5, 3600, "0,1,8,64,256,1k,4k,16k,64k,128k,256k,1m,4m,16m", "latency,bandwidth", ["--samples", "5"]),
    "quick": (2, 35, "8,1k,64k,1m", "latency", ["--samples", "4", "--sample-ms", "15"]),
    "demo": (2, 30, "8,1k,64k,1m", "latency", ["--samples", "9", "--sample-ms", "15", "--no-probe"]),
    "smoke": (1, 600, "0,8,100k", "latency,bandwidth",
              ["--samples", "2", "--sample-ms", "1", "--warmup", "20", "--window", "4", "--no-probe"]),
}
RUN_LIMIT_S = 300


def parse(argv):
    parser = argparse.ArgumentParser(prog="bench/run", description=TEXT,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--quick", dest="mode", action="store_const", const="quick", help="latency of 4 sizes, under a minute")
    mode.add_argument("--latency-demo", dest="mode", action="store_const", const="demo",
                      help="a short table: ibvdev against niodev under MPJ Express")
    mode.add_argument("--smoke", dest="mode", action="store_const", const="smoke",
                      help="everything once with tiny counts; the times mean nothing")
    parser.add_argument("--sizes", help="bytes, such as 0,8,1k,64k,1m")
    parser.add_argument("--op", help="latency, bandwidth, or latency,bandwidth")
    parser.add_argument("--rounds", type=int, help="how often everything runs (default: 5, quick forms 2)")
    parser.add_argument("--samples", type=int, help="samples for each size in a round")
    parser.add_argument("--sample-ms", type=int, help="length of a sample (default 20, quick forms 15)")
    parser.add_argument("--only", help="contestants, separated by commas; --list names them")
    parser.add_argument("--list", action="store_true", help="name the contestants found here, and end")
    parser.add_argument("--json", metavar="FILE", help="write the pooled results, one JSON object a line")
    parser.add_argument("--markdown", action="store_true", help="tables in Markdown")
    parser.add_argument("-v", "--verbose", action="store_true", help="tell what runs")
    args = parser.parse_args(argv)
    args.mode = args.mode or "full"
    if args.rounds is not None and args.rounds < 1:
        parser.error("--rounds wants at least 1")
    return args


def chosen(args, contestants):
    """Those that take part, or an error text."""
    if args.only:
        names = args.only.split(",")
        unknown = set(names) - {c.name for c in contestants}
        if unknown:
            return None, "%s: not here; found: %s" % (", ".join(sorted(unknown)), ", ".join(c.name for c in contestants))
        contestants = [c for c in contestants if c.name in names]
    elif args.mode == "demo":
        contestants = [c for c in contestants if c.name in ("mpi-ibvdev", "mpi-niodev")]
    if not contestants:
        return None, "nothing to measure is built: meson compile, or name the build folder by IBVDEV_BUILD"
    return contestants, None


def harness_options(args):
    _, _, sizes, op, more = MODES[args.mode]
    options = ["--sizes", args.sizes or sizes, "--op", args.op or op, *more, "--quiet"]
    if args.samples:
        options += ["--samples", str(args.samples)]
    if args.sample_ms:
        options += ["--sample-ms", str(args.sample_ms)]
    if len(os.sched_getaffinity(0)) < 2 and "--no-probe" not in options:
        options.append("--no-probe")  # a cache line goes nowhere here
    return options


class Runner:
    def __init__(self, args, folder):
        self._options = harness_options(args)
        self._verbose = args.verbose
        self._folder = folder
        self.results = Results()
        self.failed = {}

    def run(self, contestant):
        """One process pair; remembers a failure and what it said."""
        path = os.path.join(self._folder, "lines")
        open(path, "w").close()
        command = contestant.command + self._options + ["--json", path]
        if self._verbose:
            print("+ " + " ".join(command), file=sys.stderr, flush=True)
        try:
            done = subprocess.run(command, env={**os.environ, **contestant.environment}, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=RUN_LIMIT_S, check=False)
            said, status = done.stdout.decode(errors="replace").strip(), done.returncode
        except subprocess.TimeoutExpired:
            said, status = "no end within %d s" % RUN_LIMIT_S, 1
        except OSError as error:
            said, status = str(error), 1
        if self._verbose and said:
            print(said, file=sys.stderr)
        if status == 0 and self.results.read(path) == 0 and "no sample" not in said:
            said, status = "it wrote no results", 1
        if status:
            self.failed[contestant.name] = said or "exit status %d" % status


def machine():
    model = platform.processor()
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as info:
            model = next((line.split(":", 1)[1].strip() for line in info if line.startswith("model name")), model)
    except OSError:
        pass
    cpus = sorted(os.sched_getaffinity(0))
    return "%s, %d processors, Linux %s; ranks on processors %s and %s; load %.1f" % (
        model, len(cpus), platform.release(), cpus[0], cpus[1 % len(cpus)], os.getloadavg()[0])


def measure(args, runner, contestants):
    rounds, limit_s, *_ = MODES[args.mode]
    start = time.monotonic()
    for number in range(args.rounds or rounds):
        if number and args.rounds is None and time.monotonic() - start > limit_s:
            break
        for contestant in contestants:
            if contestant.name not in runner.failed:
                runner.run(contestant)
        if sys.stderr.isatty():
            print("bench/run: round %d is done" % (number + 1), file=sys.stderr)


def main(argv):
    args = parse(argv)
    contestants, problem = chosen(args, installed(Places(os.environ)))
    if problem:
        print("bench/run: " + problem, file=sys.stderr)
        return 2
    if args.list:
        print("\n".join("%-16s %s" % (c.name, c.title) for c in contestants))
        return 0
    print(machine(), flush=True)
    with tempfile.TemporaryDirectory(prefix="ibvx-bench-") as folder:
        runner = Runner(args, folder)
        measure(args, runner, contestants)
    if args.mode == "demo":
        lines = tables.demo(runner.results, args.markdown)
    else:
        lines = tables.comparison(runner.results, contestants, args.markdown)
    print("\n".join(lines))
    if runner.results.discarded:
        print("\n%d samples were dropped: the state changed under them, or the machine was busy" % runner.results.discarded)
    if args.json:
        runner.results.write(args.json)
    for name, said in runner.failed.items():
        print("bench/run: %s failed:\n  %s" % (name, said.replace("\n", "\n  ")), file=sys.stderr)
    return 1 if any(c.ours for c in contestants if c.name in runner.failed) else 0
