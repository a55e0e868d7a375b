# SPDX-License-Identifier: MIT
"""Jobs of 8 ranks over 4 nodes that share nothing: TCP between them, shared memory inside each.

usage: test_networks.py TRANSPORT [TEST ...]     ucx, ofi

Started by ibvrun --hosts.
"""
import contextlib
import os
import re
import signal
import sys
import time

import engines
import programs
import support
import world
from nodes import wait_for

NP = 8
TIMEOUT_MS = 3000
# What makes the transport unusable; its library, and the Debian package of that.
ABSENT, LIBRARY, PACKAGE = {"ucx": ("ucx_net_devices=nosuch0", "libucp.so.0", "libucx0"),
                            "ofi": ("ofi_provider=nosuch", "libfabric.so.1", "libfabric1")}[sys.argv[1]]
TRANSPORT = sys.argv[1]
TIMEOUT = "IBVDEV_%s_TIMEOUT_MS" % TRANSPORT.upper()


class Case(support.ClusterTest):
    shared = False
    engine_class = engines.Ibvrun

    def environ(self, **more):
        return super().environ(IBVDEV_TRANSPORTS="self,shm," + TRANSPORT, **more)

    def words(self, program, *variables):
        words = self.engine.words(NP, program)
        at = words.index("--exec")
        return words[:at] + [word for name in variables for word in ("-x", name)] + words[at:]

    def hanging(self, **env):
        """A job whose ranks all wait; gives it and the ranks' process ids, as this test sees them."""
        job = self.start(*self.words(programs.c("hang", self.folder), *env), env=env)
        files = [self.path("pid.%d" % r) for r in range(NP)]
        wait_for(lambda: job.poll() is not None or all(map(os.path.exists, files)), "all ranks wait")
        self.assertIsNone(job.poll(), "the job has ended: %s" % (self.finish(job) if job.poll() is not None else "",))
        return job, {i: self.ranks(i) for i in self.nodes.numbers}

    def ranks(self, i):
        return [pid for pid, line in self.nodes.processes(i).items() if line.startswith(programs.PROBE + " hang")]


class Traffic(Case):
    def test_both_transports_carry(self):
        env = {"IBVDEV_LOG": "debug", "IBVDEV_COUNTERS": "1"}
        out, err = self.succeed(*self.words(programs.c("exchange", 40), *env), env=env)
        self.assertEqual(sorted(out.split("\n")), [""] + ["rank %d exchanged" % r for r in range(NP)])
        chosen = {(int(a), int(b)): name for a, b, name in
                  re.findall(r"ibvdev\[(\d)\] DEBUG [\d.]+ rank (\d): by transport (\w+)", err)}
        for a in range(NP):
            for b in range(NP):
                expected = "self" if a == b else "shm" if a // 2 == b // 2 else TRANSPORT
                self.assertEqual(chosen.get((a, b)), expected, (a, b))
        packets = [int(n) for n in re.findall(TRANSPORT + r"_packets_in=(\d+)", err) if n != "0"]
        self.assertEqual(len(packets), NP * 6, "packets of TCP with the six ranks of other nodes")
        self.assertGreater(min(packets), 40)
        self.assertNotIn("WARN", err)

    def test_mpj_express(self):
        out, _ = self.succeed(*self.engine.mpj(NP, "Report", "word"), data="", env={"CLUSTER_WORD": "x"})
        self.assertEqual(len(re.findall(r"(?m)^rank \d of 8 on n\d: ", out)), NP, out)

    def test_xxdev(self):
        out, _ = self.succeed(*self.words(programs.xxdev("XxReport", "word"), "CLUSTER_WORD"), data="", env={"CLUSTER_WORD": "x"})
        self.assertEqual(len(re.findall(r"(?m)^rank \d of 8 on n\d: ", out)), NP, out)

    def test_without_the_library(self):
        """No transport reaches the other nodes: the start fails, and its text names the remedy."""
        name, value = ABSENT.split("=")
        env = {"IBVDEV_" + name.upper(): value}
        status, _, err = self.run_job(*self.words(programs.c("exchange", 1), *env), env=env)
        self.assertNotEqual(status, 0)
        self.assertRegex(err, r"no transport of \"self,shm,%s\" reaches rank \d.*ibvdev-info" % TRANSPORT)


class Ends(Case):
    def test_a_killed_rank(self):
        job, pids = self.hanging()
        began = time.monotonic()
        os.kill(pids[3][1], signal.SIGKILL)
        status, _, err = self.finish(job)
        self.assertNotEqual(status, 0)
        self.assertRegex(err, r"cluster-probe: waiting: .*rank [45] .*died")
        self.assertLess(time.monotonic() - began, 10, err)

    def cut(self):
        job, pids = self.hanging(**{TIMEOUT: str(TIMEOUT_MS)})
        began = time.monotonic()
        self.nodes.cut(4)
        try:
            wait_for(lambda: not any(self.ranks(i) for i in self.nodes.numbers if i < 4), "the ranks of the other nodes have ended")
            self.assertLess(time.monotonic() - began, 3 * TIMEOUT_MS / 1000)
            wait_for(lambda: not self.ranks(4), "the ranks of the node have ended")
        finally:
            self.nodes.mend(4)
        self.assertTrue(pids[4])
        return self.finish(job)

    def test_a_node_is_cut_off(self):
        status, _, err = self.cut()
        self.assertNotEqual(status, 0)
        self.assertRegex(err, r"rank \d is silent for 3000 ms \(setting %s_timeout_ms\)" % TRANSPORT)

    def test_stopped_ranks_are_silent(self):
        job, pids = self.hanging(**{TIMEOUT: str(TIMEOUT_MS)})
        for pid in pids[2]:
            os.kill(pid, signal.SIGSTOP)
        try:
            wait_for(lambda: not any(self.ranks(i) for i in (1, 3, 4)), "the other ranks have ended")
        finally:
            for pid in pids[2]:
                with contextlib.suppress(ProcessLookupError):  # the engine may have killed it
                    os.kill(pid, signal.SIGCONT)
        status, _, err = self.finish(job)
        self.assertNotEqual(status, 0)
        self.assertRegex(err, r"rank [23] is silent for 3000 ms")


if __name__ == "__main__":
    if not world.find_library(LIBRARY):
        print("no %s here (Debian package %s)" % (LIBRARY, PACKAGE))
        sys.exit(1 if world.MUST_RUN else world.SKIPPED)
    world.enter()
    sys.argv.pop(1)
    support.main()
