# SPDX-License-Identifier: MIT
"""The command line of bench/run."""
import argparse
import os
import shlex
import signal
import sys
import tempfile
import time
from dataclasses import replace

from . import mpi_command, placement, report, tables
from .contestants import Places, installed
from .jobs import Runner
from .results import Results
from .sections import MODES, Section

TEXT = """Measures everything that is installed, in turn (A B C A B C ...), each rank pinned to a processor of its own, and
reports: ibvx in C; ibvdev at the levels of Java (natives, xdev, xxdev, mpi); MPJ Express's niodev and smpdev; Open MPI with and
without CMA, MPICH and UCX in C; and as floors a cache line, memcpy, process_vm_readv and a bare ring.

Before and after each sample a cache line goes back and forth for some milliseconds; that distinguishes "near" from "far"
(on a virtual machine this flips within seconds). Samples between two different probes, or on a busy machine, are dropped,
and every comparison stays within one state. On more than two processors a near and a far pair take turns.

The full form takes under 15 minutes on two processors, --quick under 2. bench/README.md describes what is measured and how."""


def parse(argv):
    parser = argparse.ArgumentParser(prog="bench/run", description=TEXT,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--quick", dest="mode", action="store_const", const="quick",
                      help="latency of 4 sizes, message rate, two collectives; under 2 minutes")
    mode.add_argument("--latency-demo", dest="mode", action="store_const", const="demo",
                      help="a short table: ibvdev against niodev under MPJ Express")
    mode.add_argument("--smoke", dest="mode", action="store_const", const="smoke",
                      help="everything once with tiny counts; the times mean nothing")
    parser.add_argument("--targets", choices=["mpi"],
                        help="another table: the targets of the package mpi; --targets mpi --help has its options")
    parser.add_argument("--sizes", help="bytes of latency (and bandwidth with --op), such as 0,8,1k,64k,1m")
    parser.add_argument("--op", help="only these operations, such as latency,bandwidth=8/64k@16 (see bench_ibvx --help)")
    parser.add_argument("--ranks", type=int, default=2, help="with --op: ranks of the job (default 2)")
    parser.add_argument("--rounds", type=int, help="how often everything runs (default: as often as the time allows)")
    parser.add_argument("--minutes", type=float, help="how long it may take (default: full 14, quick 1.7)")
    parser.add_argument("--samples", type=int, help="samples for each size in a round")
    parser.add_argument("--sample-ms", type=int, help="length of a sample")
    parser.add_argument("--only", help="contestants, separated by commas; --list names them")
    parser.add_argument("--list", action="store_true", help="name the contestants found here and those that are not, and end")
    parser.add_argument("--out", metavar="FOLDER", help="write results.jsonl, report.md, and plots as SVG and PNG there")
    parser.add_argument("--json", metavar="FILE", help="write the pooled results, one JSON object a line")
    parser.add_argument("--markdown", action="store_true", help="tables in Markdown")
    parser.add_argument("-v", "--verbose", action="store_true", help="print what runs")
    args = parser.parse_args(argv)
    args.mode = args.mode or "full"
    if args.rounds is not None and args.rounds < 1:
        parser.error("--rounds wants at least 1")
    if args.minutes is not None and args.minutes <= 0:
        parser.error("--minutes wants more than 0")
    if args.ranks != 2 and not args.op:
        parser.error("--ranks goes with --op")
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


def plan(args):
    """(options, sections) of this form of the command."""
    options, sections = MODES[args.mode]
    options = replace(options, sizes=args.sizes or options.sizes, samples=args.samples or options.samples,
                      sample_ms=args.sample_ms or options.sample_ms)
    if args.minutes:
        options.limit_s = 60 * args.minutes
        options.rounds = 1000  # as many as that allows
    if len(os.sched_getaffinity(0)) < 2:
        options.no_probe = True  # a cache line goes nowhere here
    if args.op:
        sections = [Section(args.ranks, args.op)]
    return options, sections


class Clock:
    """The time that a comparison may take."""

    def __init__(self, args, options):
        self._start = time.monotonic()
        self._rounds = args.rounds
        self._options = options
        self._took = {}  # section -> seconds, when it last ran
        self.cut_short = None

    def elapsed(self):
        return time.monotonic() - self._start

    def another(self, number, sections):
        """Whether a round of these sections may begin."""
        if self._rounds:
            return number < self._rounds
        if number == 0:
            return True
        expected = sum(self._took.get(section, 0) for section in sections)
        return number < self._options.rounds and self.elapsed() + expected <= self._options.limit_s

    def is_over(self, number):
        """Whether nothing more may start in this round."""
        if self._rounds or self.elapsed() < self._options.limit_s:
            return False
        self.cut_short = "Round %d was cut short after %.0f s: this machine is too slow or too busy for all of it." % (
            number + 1, self.elapsed())
        return True

    def took(self, section, seconds):
        self._took[section] = seconds


def stop(_number, _frame):
    raise KeyboardInterrupt


def measure(args, clock, sections, runner, contestants, options, pairs):
    """Rounds of all sections; returns how many began."""
    number = 0
    while True:
        due = [s for s in sections if number % s.every == 0]
        if not clock.another(number, due):
            return number
        for section in due:
            begun = clock.elapsed()
            for contestant in contestants:
                if clock.is_over(number):
                    return number + 1
                try:
                    runner.run(contestant, section, options, pairs[number % len(pairs)])
                except KeyboardInterrupt:
                    clock.cut_short = "Round %d was interrupted after %.0f s." % (number + 1, clock.elapsed())
                    return number + 1
            clock.took(section, clock.elapsed() - begun)
        number += 1
        if args.verbose or sys.stderr.isatty():
            print("bench/run: round %d is done after %.0f s" % (number, clock.elapsed()), file=sys.stderr)


def main(argv):
    if any(word.split("=")[0] == "--targets" for word in argv):
        return mpi_command.main(argv)
    args = parse(argv)
    places = Places(os.environ)
    found, absent = installed(places)
    if args.list:
        print("\n".join("%-16s %s" % (c.name, c.title) for c in found))
        print("".join("not here: %s: %s (%s)\n" % (a.title, a.reason, a.remedy) for a in absent), end="")
        return 0
    contestants, problem = chosen(args, found)
    if problem:
        print("bench/run: " + problem, file=sys.stderr)
        return 2
    options, sections = plan(args)
    cpus = sorted(os.sched_getaffinity(0))
    results = Results()
    signal.signal(signal.SIGTERM, stop)  # what has been measured until then is reported
    clock = Clock(args, options)
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="ibvx-bench-") as folder:
        pairs, where = placement.choose(places.program("bench_floor"), folder)
        print("%s; load %.1f\n%s" % (report.machine(cpus), load, where), flush=True)
        runner = Runner(results, places, folder, args.verbose)
        rounds = measure(args, clock, sections, runner, contestants, options, pairs)
    if args.mode == "demo":
        print("\n".join(tables.demo(results, args.markdown)))
    else:
        facts = {"processors": min(2, len(cpus)), "machine": report.machine(cpus), "lines": [
            "%s. Load before: %.1f." % (report.machine(cpus), load), where[0].upper() + where[1:] + ".",
            "`%s`, %d round%s, %.0f s." % (shlex.join(["bench/run", *argv]), rounds, "" if rounds == 1 else "s",
                                           clock.elapsed()), report.versions(contestants)] + ([clock.cut_short] if clock.cut_short else [])}
        print("\n".join(report.text(results, contestants, absent if not args.only else [], facts, args.markdown)))
        if args.out:
            print("\n".join(report.write(results, contestants, absent, facts, args.out)))
    if args.json:
        results.write(args.json)
    return 1 if any(c.ours for c in contestants for name, _ in runner.failed if c.name == name) else 0
