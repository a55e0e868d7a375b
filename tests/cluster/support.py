# SPDX-License-Identifier: MIT
"""What the cluster tests share: one set of nodes a test class, jobs on it, and nothing left behind."""
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.dont_write_bytecode = True

import world  # noqa: E402  (nothing is to be written into the checkout before)
from nodes import Nodes  # noqa: E402
from programs import BUILD, MPJ_HOME  # noqa: E402

import jobtest  # noqa: E402  (nodes has set the path)
from processes import LIMIT_S, alive, read, undo_inherited_dispositions, wait_for  # noqa: E402,F401

SETTLE_S = 10  # what an engine may take to clear up
NOT_OURS = ("SLURM_", "PMI_", "PMIX_", "OMPI_", "PRTE_", "HYDRA_", "IBVDEV_", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS",
            "JDK_JAVA_OPTIONS", "CLASSPATH", "DISPLAY", "SSH_")


class ClusterTest(jobtest.JobTest):
    """Each test finds the nodes idle and has to leave them so."""

    count = 4
    shared = False
    engine_class = None

    @classmethod
    def setUpClass(cls):
        reason = cls.engine_class.why_not() if cls.engine_class else None
        if reason:
            raise AssertionError(reason) if world.MUST_RUN else unittest.SkipTest(reason)
        cls.nodes = Nodes(cls.count, cls.shared, [BUILD])
        cls.addClassCleanup(cls.nodes.close)
        cls.engine = None
        if cls.engine_class:
            cls.engine = cls.engine_class(cls.nodes)
            cls.addClassCleanup(cls.engine.close)

    def setUp(self):
        super().setUp()
        self.folder = tempfile.mkdtemp(prefix="test-", dir=self.nodes.folder)
        self.before = self.nodes.snapshot()
        self.addCleanup(self._end_jobs)

    def tearDown(self):
        self.assert_nothing_left()

    def _end_jobs(self):
        self.end_jobs()
        for i in self.nodes.numbers:
            for pid in self.nodes.processes(i):
                if pid not in self.before[i][0]:
                    os.kill(pid, signal.SIGKILL)

    def environ(self, **more):
        env = {name: value for name, value in os.environ.items() if not name.startswith(NOT_OURS)}
        env.update(IBVDEV_BUILD=BUILD, MPJ_HOME=MPJ_HOME, LC_ALL="C.UTF-8", TMPDIR="/tmp", CLUSTER_WORD="unused")
        env.update(self.engine.environment() if self.engine else {})
        env.update(more)
        return env

    def start(self, *words, node=1, env=None, stdin=subprocess.DEVNULL, **options):
        """A command on a node, as a user types it there."""
        job = self.nodes.start(node, *words, cwd=self.folder, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               text=True, env=self.environ(**(env or {})), preexec_fn=undo_inherited_dispositions, **options)
        self.jobs.append(job)
        return job

    def what_is_left(self):
        return "left: %s" % self.nodes.new_since(self.before)

    def send(self, job, number):
        """A signal to the command itself."""
        os.kill(self.nodes.real_pid(job), number)

    def interrupt(self, job, times=1):
        """Ctrl-C: SIGINT to the process group of the terminal."""
        group = self.nodes.real_pid(job)
        for _ in range(times):
            os.killpg(group, signal.SIGINT)
            time.sleep(0.2)

    def left(self):
        own = self.engine.leftovers if self.engine else ()
        ignored = tuple("file " + f for f in ("/tmp/hsperfdata_",) + own)  # the first is every JVM's
        return self.nodes.new_since(self.before, lambda thing: thing.startswith(ignored))

    def assert_nothing_left(self, limit_s=SETTLE_S):
        """No process, port or file that was not there before the test, on any node."""
        lines = []

        def clean():
            lines[:] = self.left()
            return not lines
        try:
            wait_for(clean, "the nodes are clean", limit_s)
        except AssertionError:
            self.fail("left on the nodes:\n" + "\n".join(lines))


def main():
    """Runs this program's tests in a world of their own; status 77 if there is nothing to run here."""
    world.enter()
    jobtest.main()
