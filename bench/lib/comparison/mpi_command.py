# SPDX-License-Identifier: MIT
"""bench/run --targets mpi: measures the table of mpi_targets in one interleaved run."""
import argparse
import json
import os
import shlex
import shutil
import signal
import sys
import tempfile
import time
from dataclasses import dataclass, replace

from . import contestants, mpi_targets, placement, report, tables
from .contestants import Places
from .jobs import Runner, run
from .results import Results
from .sections import Options, Section

TEXT = """The targets of the package mpi in one table, from one run in which the contestants take turns: messages between two
ranks and trees of objects against our xxdev, a column of a matrix against MPJ Express on ibvdev, collective operations of
2, 4 and 8 ranks against the better of Open MPI and MPICH in C (Open MPI yields where ranks outnumber processors) and
against MPJ Express on ibvdev, NPB CG, FT, IS and MG against MPJ Express on ibvdev.

Medians over all rounds; a ratio holds samples of one state (near, far) against each other. ~ marks a verdict in doubt:
few samples, a wide spread, or quartile ranges that overlap near the target. Nothing else should run meanwhile."""

LIMIT_S = 14 * 60
# Warm-up by ranks: with more ranks than processors an iteration takes longer, and a collective operation counts a quarter.
WARM_UPS = {2: 40000, 4: 16000, 8: 6000}
TREE_WARM_UP = 4000
C_WARM_UPS = {2: 8000, 4: 160, 8: 160}  # nothing to compile, and crowded MPICH takes milliseconds for each operation
NPB_LIMIT_S = 600
OVER_TCP = {"IBVDEV_TRANSPORTS": "self,ucx", "IBVDEV_UCX_NET_DEVICES": "lo", "OMPI_MCA_pml": "ob1", "OMPI_MCA_btl": "tcp,self",
            "OMPI_MCA_btl_tcp_if_include": "lo", "MPIR_CVAR_NOLOCAL": "1", "UCX_TLS": "tcp,self", "UCX_NET_DEVICES": "lo"}


@dataclass(frozen=True)
class Plan:
    """How much of the table runs, and how often."""
    rounds: int
    samples: int
    sample_ms: int
    ranks: tuple = mpi_targets.RANKS
    sizes: tuple = mpi_targets.SIZES
    doubles: tuple = mpi_targets.DOUBLES
    kernels: tuple = mpi_targets.KERNELS
    npb_ranks: tuple = mpi_targets.NPB_RANKS
    npb_class: str = "A"
    npb_warm_up: str = "2"
    warm_ups: bool = True
    probe: bool = True

    def holds(self, line):
        """Whether this line of the table is measured."""
        what = line.what
        if line.part == "collectives":
            return what.ranks in self.ranks and (what.op == "barrier" or what.bytes in self.sizes)
        if line.part == "npb":
            return what.op.split()[1] in self.kernels and what.ranks in self.npb_ranks
        return "double[]" not in line.text or what.bytes in self.doubles

    def options(self, warm_up):
        return Options("8", self.rounds, LIMIT_S, self.samples, self.sample_ms, warmup=warm_up if self.warm_ups else 20, no_probe=not self.probe)


FULL = Plan(3, 5, 8)
QUICK = Plan(1, 2, 1, ranks=(2, 4), sizes=(8, 64 << 10), doubles=(64 << 10,), kernels=("CG",), npb_ranks=(2,), npb_class="S", npb_warm_up="0.1",
             warm_ups=False, probe=False)


def parse(argv):
    parser = argparse.ArgumentParser(prog="bench/run --targets mpi", description=TEXT, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--targets", choices=["mpi"], required=True, help="this table")
    parser.add_argument("--only", metavar="PARTS", default=",".join(mpi_targets.PARTS), help="of %(default)s")
    parser.add_argument("--rounds", type=int, help="how often everything runs (default %d)" % FULL.rounds)
    parser.add_argument("--quick", action="store_true",
                        help="a part of the table once with tiny counts: shows that the command works, its times mean little")
    parser.add_argument("--far", action="store_true",
                        help="over TCP of this machine instead of shared memory: ours by UCX, the C peers by their own TCP")
    parser.add_argument("--out", metavar="FOLDER",
                        help="for targets.md, results.jsonl, npb.jsonl (default bench/results/mpi-DATE; with --quick none)")
    parser.add_argument("-v", "--verbose", action="store_true", help="print what runs")
    args = parser.parse_args(argv)
    args.only = args.only.split(",")
    unknown = [part for part in args.only if part not in mpi_targets.PARTS]
    if unknown:
        parser.error("--only: there is no %s; the parts are %s" % (", ".join(unknown), ", ".join(mpi_targets.PARTS)))
    if args.rounds is not None and args.rounds < 1:
        parser.error("--rounds wants at least 1")
    return args


def chosen(places, far):
    """({name: contestant}, those absent)."""
    found, absent = contestants.installed(places)
    wanted = ("mpi-ours", "mpi-ibvdev", "xxdev-ibvdev", "openmpi", "mpich")
    found = [c for c in found if c.name in wanted]
    if any(c.name == "mpi-ours" for c in found):
        found += [contestants.of_messages(places, *words) for words in (
            ("mpi", "ours", "doubles"), ("mpi", "ours", "column"), ("mpi", "mpjexpress", "column"), ("mpi", "ours", "tree"), ("xxdev", "mpjexpress", "tree"))]
    if far:
        found = [replace(c, environment={**c.environment, **OVER_TCP}) for c in found]
    return {c.name: c for c in found}, [a for a in absent if a.title in ("Open MPI", "MPICH", "all of Java")]


def sections(plan, parts):
    """(options, sections) of a round, in order."""
    out = []
    if "p2p" in parts:
        doubles = "/".join(map(str, plan.doubles))
        out += [(plan.options(WARM_UPS[2]), [Section(2, "latency=8", ("mpi-ours", "xxdev-ibvdev", "mpi-ibvdev")),
                                             Section(2, "latency=" + doubles, ("mpi-ours-doubles", "xxdev-ibvdev")),
                                             Section(2, "latency=%d" % mpi_targets.COLUMN, ("mpi-ours-column", "mpi-ibvdev-column"))])]
    if "objects" in parts:
        out.append((plan.options(TREE_WARM_UP), [Section(2, "latency=%d" % mpi_targets.NODES, ("mpi-ours-tree", "xxdev-ibvdev-tree"))]))
    if "collectives" in parts:
        sizes = "/".join(map(str, plan.sizes))
        for ranks in plan.ranks:
            ops = [op if op == "barrier" else "%s=%s" % (op, sizes) for op in mpi_targets.COLLECTIVES]
            # two at a time, so that those that are compared run within seconds of each other
            out.append((plan.options(WARM_UPS[ranks]), [Section(ranks, ",".join(ops[i:i + 2]), ("mpi-ours", "mpi-ibvdev", "openmpi", "mpich"))
                                                        for i in range(0, len(ops), 2)]))
    return out


class Npb:
    """Runs bench/npb/compare, a round at a time; it keeps each run as a line of a file."""

    def __init__(self, places, plan, path, environment):
        self.path = path
        self._places = places
        self._plan = plan
        self._environment = {**environment, "IBVDEV_BUILD": places.build}
        self._before = None
        self.failed = False

    def round(self, verbose):
        command = [sys.executable, os.path.join(self._places.root, "bench", "npb", "compare"), "--kernels", ",".join(self._plan.kernels),
                   "--classes", self._plan.npb_class, "--ranks", ",".join(map(str, self._plan.npb_ranks)), "--devices", "ours,ibvdev",
                   "--rounds", "1", "--warm-up", self._plan.npb_warm_up, "--max-busy", "15" if self._plan.probe else "100", "--log", self.path]
        if verbose:
            print("+ " + shlex.join(command), file=sys.stderr, flush=True)
        status, output = run(command, self._environment, None, NPB_LIMIT_S)
        if status:
            self.failed = True
            print("bench/run: NPB failed and is left out from here on:\n" + output[-2000:], file=sys.stderr, flush=True)


def add_npb(results, path, max_busy=15):
    """The runs of NPB as results; those beside which the machine was busy only where there are no others."""
    if not os.path.exists(path):
        return
    with open(path, encoding="utf-8") as lines:
        records = [json.loads(line) for line in lines]
    cells = {}
    for record in records:
        cells.setdefault((record["kernel"], record["ranks"], record["device"]), []).append(record)
    for (kernel, ranks, device), runs in cells.items():
        quiet = [r for r in runs if r["busy"] <= max_busy] or runs
        for field, share, unit in (("seconds", False, "s"), ("communication", True, "%")):
            what = mpi_targets.npb_what(kernel, ranks, share)
            tool, level, name = mpi_targets.OURS if device == "ours" else mpi_targets.EXPRESS
            results.add({"tool": tool, "level": level, "device": name, "op": what.op, "bytes": 0, "param": 1, "ranks": ranks, "state": "any",
                         "unit": unit, "values": [r[field] for r in quiet], "probe_ns": 0, "discarded": len(runs) - len(quiet)})


def measure(args, plan, runner, found, npb, pairs):
    """Rounds of everything; (how many were complete, why it ended early or None)."""
    start = time.monotonic()
    longest = 0
    for number in range(plan.rounds):
        begun = time.monotonic()
        if number and args.rounds is None and begun - start + longest > LIMIT_S:
            return number, "Round %d did not begin: it would not have ended within %d minutes." % (number + 1, LIMIT_S // 60)
        try:
            for options, group in sections(plan, args.only):
                for section in group:
                    for name in section.only:
                        if name in found:
                            in_c = found[name].key[0] != "java"
                            own = replace(options, warmup=min(options.warmup, C_WARM_UPS[section.ranks])) if in_c else options
                            runner.run(found[name], section, own, pairs[number % len(pairs)])
            if "npb" in args.only and "mpi-ours" in found and not npb.failed:
                npb.round(args.verbose)
        except KeyboardInterrupt:
            return number, "Round %d was interrupted." % (number + 1)
        longest = max(longest, time.monotonic() - begun)
        print("bench/run: round %d of %d is done after %.0f s" %
              (number + 1, plan.rounds, time.monotonic() - start), file=sys.stderr, flush=True)
    return plan.rounds, None


def stop(_number, _frame):
    raise KeyboardInterrupt


def folder_of(args, places):
    """Where the raw data goes, or None."""
    if args.out or args.quick:
        return args.out
    return os.path.join(places.root, "bench", "results", "mpi-%s%s" % (time.strftime("%Y-%m-%d"), "-far" if args.far else ""))


def main(argv):
    args = parse(argv)
    places = Places(os.environ)
    plan = QUICK if args.quick else FULL
    if args.rounds:
        plan = replace(plan, rounds=args.rounds)
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        plan = replace(plan, probe=False)
    found, absent = chosen(places, args.far)
    if "mpi-ours" not in found:
        print("bench/run: bench.jar is not built: meson setup -Djava=enabled build && ninja -C build", file=sys.stderr)
        return 2
    results = Results()
    signal.signal(signal.SIGTERM, stop)
    load, start = os.getloadavg()[0], time.monotonic()
    with tempfile.TemporaryDirectory(prefix="ibvx-bench-") as folder:
        pairs, where = placement.choose(places.program("bench_floor"), folder)
        runner = Runner(results, places, folder, args.verbose)
        npb = Npb(places, plan, os.path.join(folder, "npb.jsonl"), OVER_TCP if args.far else {})
        rounds, cut_short = measure(args, plan, runner, found, npb, pairs)
        add_npb(results, npb.path)
        lines = [line for line in mpi_targets.LINES if line.part in args.only and plan.holds(line)]
        header, rows, without = mpi_targets.block(results, lines)
        facts = ["%s. Load before: %.1f. %s." % (report.machine(cpus), load, where[0].upper() + where[1:]),
                 "`%s`, %d round%s, %.0f s, %s." % (shlex.join(["bench/run", *argv]), rounds, "" if rounds == 1 else "s", time.monotonic() - start,
                                                    "over TCP" if args.far else "shared memory"),
                 report.versions(found.values()), *(["--quick: the times mean nothing."]
                                                    if args.quick else []), *([cut_short] if cut_short else []),
                 *["Not measured: %s: %s (%s)." % (a.title, a.reason, a.remedy) for a in absent],
                 *(["No figures: %s." % "; ".join(without)] if without else []), mpi_targets.summary(rows)]
        print("\n".join(facts + [""] + tables.aligned(header, rows)))
        where_to = folder_of(args, places)
        if where_to:
            os.makedirs(where_to, exist_ok=True)
            results.write(os.path.join(where_to, "results.jsonl"))
            files = ["targets.md", "results.jsonl"]
            if os.path.exists(npb.path):
                files.append("npb.jsonl")
                shutil.copy(npb.path, os.path.join(where_to, "npb.jsonl"))
            with open(os.path.join(where_to, "targets.md"), "w", encoding="utf-8") as out:
                out.write("\n".join(["# Targets of the package mpi", "", *facts, "", *tables.markdown(header, rows)]) + "\n")
            print("\nin %s: %s" % (where_to, ", ".join(files)))
    ours = npb.failed or any(found[name].ours for name, _ in runner.failed)
    return 1 if ours or (args.quick and without and not absent) else 0
