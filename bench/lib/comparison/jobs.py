# SPDX-License-Identifier: MIT
"""Runs one contestant once and pools what it measured."""
import os
import signal
import subprocess
import sys
import time

from . import perftest

RUN_LIMIT_S = 120


def bound(cpus):
    """For preexec_fn: the processors that a job may use; its ranks take the first, the second and so on."""
    return (lambda: os.sched_setaffinity(0, cpus)) if cpus else None


def end(process):
    """Ends a launcher and its ranks."""
    os.killpg(process.pid, signal.SIGTERM)  # the launchers end their ranks
    try:
        process.communicate(timeout=10)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def run(command, environment, cpus, limit_s=RUN_LIMIT_S):
    """(exit status, what it printed).  Everything that it started is ended when the limit strikes."""
    try:
        process = subprocess.Popen(command, env={**os.environ, **environment}, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
                                   preexec_fn=bound(cpus))
    except OSError as error:
        return 1, str(error)
    try:
        output, _ = process.communicate(timeout=limit_s)
        return process.returncode, output.decode(errors="replace").strip()
    except subprocess.TimeoutExpired:
        end(process)
        return 1, "no end within %d s" % limit_s
    except KeyboardInterrupt:
        end(process)
        raise


class Runner:
    """Runs contestants; remembers which failed in which section: that part of it is not tried again."""

    def __init__(self, results, places, folder, verbose=False):
        self.results = results
        self._places = places
        self._folder = folder
        self._verbose = verbose
        self.failed = set()

    def run(self, contestant, section, options, cpus):
        crowded = section.ranks > len(cpus or os.sched_getaffinity(0))
        ops = section.ops_for(contestant)
        if not ops or section.ranks > contestant.max_ranks or (contestant.name, section) in self.failed:
            return
        if contestant.perftest:
            output = perftest.run(self.results, contestant, self._places.program("bench_floor"), section, options, cpus, self._folder)
            if output:
                self._fail(contestant, section, output)
            return
        path = os.path.join(self._folder, "lines")
        open(path, "w").close()
        command = contestant.command(section.ranks, crowded) + options.harness(ops) + ["--json", path]
        if self._verbose:
            print("+ " + " ".join(command), file=sys.stderr, flush=True)
        start = time.monotonic()
        status, output = run(command, contestant.environment, cpus)
        took = time.monotonic() - start
        if self._verbose:
            print("%s  (%.1f s)" % (output, took), file=sys.stderr)
        count = self.results.read(path)  # also what it had measured before it failed
        if status == 0 and section.whole_job:
            self.results.add({"tool": contestant.key[0], "level": contestant.key[1], "device": contestant.key[2],
                              "op": "job", "bytes": 0, "param": 1, "ranks": section.ranks, "state": "any", "unit": "ms",
                              "values": [took * 1e3], "probe_ns": 0, "discarded": 0})
        if status == 0 and count == 0 and "no sample" not in output and contestant.key[0] != "floor":
            status, output = 1, "it wrote no results"
        if status:
            self._fail(contestant, section, output or "exit status %d" % status)

    def _fail(self, contestant, section, output):
        self.failed.add((contestant.name, section))
        print("bench/run: %s failed and is left out of this part from here on (%d ranks: %s):\n  %s" % (
            contestant.name, section.ranks, section.ops_for(contestant), output[-2000:].replace("\n", "\n  ")), file=sys.stderr, flush=True)
