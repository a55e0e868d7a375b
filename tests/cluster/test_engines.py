# SPDX-License-Identifier: MIT
"""Jobs of 8 ranks over 4 nodes by one engine: C, MPJ Express and xxdev programs, and how they end.

usage: test_engines.py ENGINE [unittest's words]

The nodes share memory, which carries the data; start, control and failures cross the network between them.
"""
import os
import re
import signal
import subprocess
import sys
import time
import unittest

import engines
import programs
import support
import world
from support import wait_for

NP = 8
SILENT_MS = 3000  # node_timeout_ms where a node is cut off
CUT_S = 30        # that, the way to the grandparent, and some
ARGUMENTS = ("one", "two words", "", "$HOME")
WORD = "a word; \"quoted\" $HOME"


class Case(support.ClusterTest):
    shared = True

    def launch(self, program, **options):
        return self.start(*self.engine.words(NP, program), **options)


class Programs(Case):
    def check(self, words, end=""):
        """Ranks, nodes, arguments, environment, standard input, of every rank."""
        out, _ = self.succeed(*words, data="x" * 100, env={"CLUSTER_WORD": WORD})
        expected = ["rank %d of %d on n%d: env %s, input %d, words [one] [two words] [] [$HOME]%s" % (
            r, NP, r // 2 + 1, WORD, 100 if r == 0 and self.engine.stdin else 0, end) for r in range(NP)]
        self.assertEqual(sorted(out.splitlines()), expected)

    def test_c(self):
        self.check(self.engine.words(NP, programs.c("report", *ARGUMENTS)))

    def test_mpj_express(self):
        self.check(self.engine.mpj(NP, "Report", *ARGUMENTS),
                   ", main saw %d" % (self.engine.main_sees + len(ARGUMENTS)) if self.engine.main_sees else "")

    def test_xxdev(self):
        self.check(self.engine.xxdev(NP, "XxReport", *ARGUMENTS))

    def test_init_again(self):
        out, _ = self.succeed(*self.engine.words(NP, programs.c("again")))
        self.assertEqual(sorted(out.splitlines()), ["rank %d of %d again" % (r, NP) for r in range(NP)])


class Waiting(Case):
    def hanging(self, prefix=()):
        """A job whose ranks all wait; gives it and the ranks' process ids.  prefix: words before the program."""
        job = self.launch(list(prefix) + programs.c("hang", self.folder))
        files = [self.path("pid.%d" % r) for r in range(NP)]
        wait_for(lambda: job.poll() is not None or all(map(os.path.exists, files)), "all ranks wait")
        self.assertIsNone(job.poll(), "the job has ended: %s" % (self.finish(job) if job.poll() is not None else "",))
        return job, [int(support.read(f)) for f in files]


class Addresses(Waiting):
    """Which of rank 0's addresses the others take.  On their nodes no node's name can be resolved."""

    @classmethod
    def setUpClass(cls):
        if not issubclass(cls.engine_class, engines.Ibvrun):
            raise unittest.SkipTest("once is enough, by ibvrun")
        super().setUpClass()

    def setUp(self):
        super().setUp()
        for i in self.nodes.numbers[1:]:
            self.nodes.on(i, "umount", "/etc/hosts")
            self.assertNotEqual(self.nodes.on(i, "getent", "hosts", "n1", check=False).returncode, 0)
            self.addCleanup(self.nodes.on, i, "mount", "--bind", os.path.join(self.nodes.state, "hosts"), "/etc/hosts")

    def taken(self, net):
        """Addresses to which rank 4's node is connected, but for ssh."""
        job, pids = self.hanging(["env", "IBVDEV_NET=" + net])
        lines = self.nodes.on(3, "ss", "-Htn", "state", "established").stdout.splitlines()
        self.interrupt(job)
        self.finish(job)
        self.wait_until_gone(*pids)
        for r in range(NP):
            os.unlink(self.path("pid.%d" % r))
        pairs = [[end.rpartition(":") for end in line.split()[-2:]] for line in lines]
        return {there[0].strip("[]") for here, there in pairs if here[2] != "22"}

    def test_chosen(self):
        four, six = "192.0.2.1", "2001:db8:77::1"
        for net, allowed in (("", {four, six}), ("eth0", {four, six}), ("192.0.2.0/24", {four}), ("2001:db8:77::/64", {six})):
            with self.subTest(net):
                taken = self.taken(net)
                self.assertTrue(taken and taken <= allowed, taken)

    def test_unknown(self):
        status, _, err = self.run_job(*self.engine.words(NP, ["env", "IBVDEV_NET=ib7"] + programs.c("report")))
        self.assertNotEqual(status, 0)
        self.assertRegex(err, r"ib7(.|\n)*eth0 192\.0\.2\.1")


class Endings(Waiting):
    def test_status_of_a_failing_rank(self):
        status, _, err = self.finish(self.launch(programs.c("fail", 3, 5)))
        if self.engine.status_of_first:
            self.assertEqual(status, 5, err)
        else:
            self.assertIn("exit code 5", err)
            self.assertNotEqual(status, 0)
        self.assertRegex(err, r"cluster-probe: \w+: rank 3 .*died")

    def test_a_killed_rank(self):
        job, pids = self.hanging()
        began = time.monotonic()
        os.kill(pids[5], signal.SIGKILL)
        status, _, err = self.finish(job)
        self.assertNotEqual(status, 0, err)
        self.assertLess(time.monotonic() - began, 30, err)

    def test_a_killed_agent(self):
        """The process of the engine that has started the ranks of n3.  Where the engine does not notice it, the user ends the
        job; the ranks of n3, which nobody signals, end because the others do."""
        job, pids = self.hanging()
        agents = [pid for pid, line in self.nodes.processes(3).items()
                  if pid not in self.before[3][0] and re.match(self.engine.agent, line)]
        self.assertTrue(agents, self.nodes.processes(3))
        os.kill(min(agents), signal.SIGKILL)  # ibvrun has a second one that guards the first
        if not self.engine.notices:
            self.interrupt(job, self.engine.interrupts)
            self.wait_until_gone(*pids)
        self.assertNotEqual(self.finish(job)[0], 0)

    def test_a_killed_launcher(self):
        job, _ = self.hanging()
        self.send(job, signal.SIGKILL)
        self.finish(job)  # its ranks hold its output: the end of that is their end
        self.assert_nothing_left(limit_s=30)

    def test_ctrl_c(self):
        job, _ = self.hanging()
        self.interrupt(job, self.engine.interrupts)
        self.assertNotEqual(self.finish(job)[0], 0)

    def test_scancel(self):
        if not isinstance(self.engine, engines.Srun):
            self.skipTest("not Slurm")
        job, pids = self.hanging()
        self.engine.slurm.ask("scancel", "--user=root")
        self.assertNotEqual(self.finish(job)[0], 0)
        self.wait_until_gone(*pids)

    def test_a_node_is_cut_off(self):
        """The ranks notice it, on both sides; some engines do not, and are ended."""
        job, pids = self.hanging(["env", "IBVDEV_NODE_TIMEOUT_MS=%d" % SILENT_MS])
        self.nodes.cut(4)
        try:
            self.wait_until_gone(*pids, limit_s=CUT_S)
            try:
                job.wait(2)
            except subprocess.TimeoutExpired:
                self.interrupt(job, self.engine.interrupts)
                job.wait(2)
        except subprocess.TimeoutExpired:
            self.send(job, signal.SIGKILL)
        finally:
            self.nodes.mend(4)
        self.assertNotEqual(self.finish(job)[0], 0)
        self.assert_nothing_left(limit_s=60)


if __name__ == "__main__":
    engine = dict(engines.ALL, **engines.LONG)[sys.argv[1]]
    if world.INSIDE not in os.environ:
        engine.prepare()
    world.enter()
    sys.argv.pop(1)
    Programs.engine_class = Addresses.engine_class = Endings.engine_class = engine
    support.main()
