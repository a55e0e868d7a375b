# SPDX-License-Identifier: MIT
"""ibvrun as a task of another launcher, which here is ibvrun itself: it becomes the command of one rank."""
import os
import sys

import support
from support import HERE, IBVRUN, LauncherTest, main

from ibvrun import engine
from ibvrun.errors import UserError

PMI_CLIENT = os.path.join(HERE, "pmi_client.py")
PMI = {"PMI_FD": "7", "PMI_RANK": "2", "PMI_SIZE": "4"}
STEP = {"SLURM_JOB_ID": "9", "SLURM_STEP_ID": "0", "SLURM_PROCID": "1", "SLURM_NTASKS": "3", "SLURM_NODEID": "1",
        "SLURM_STEP_TASKS_PER_NODE": "1,2"}


def setUpModule():
    global CLASSES
    CLASSES = support.compile_java("Ring.java", "Probe.java")


class Find(LauncherTest):
    def test_order_and_ranks(self):
        for environ, expected in (
                ({}, None),
                (PMI, ("PMI", 2, 4, 1)),
                (dict(PMI, MPI_LOCALNRANKS="3"), ("PMI", 2, 4, 3)),
                ({"PMI_PORT": "h:1", "PMI_ID": "1"}, ("PMI", 1, None, 1)),
                (dict(PMI, PMIX_RANK="1", PMIX_NAMESPACE="x"), ("PMIx", 1, None, 1)),
                ({"PMIX_RANK": "0", "PMIX_NAMESPACE": "x", "OMPI_COMM_WORLD_SIZE": "8", "OMPI_COMM_WORLD_LOCAL_SIZE": "4"},
                 ("PMIx", 0, 8, 4)),
                (dict(STEP, PMIX_RANK="1", PMIX_NAMESPACE="x"), ("PMIx", 1, 3, 2)),
                (dict(STEP, **PMI), ("PMI", 2, 4, 2)),
                (STEP, ("Slurm", 1, 3, 2)),
                ({"PMIX_RANK": "1"}, None),
                ({"SLURM_JOB_ID": "9", "SLURM_PROCID": "0", "SLURM_NTASKS": "3"}, None),  # a batch script
                (dict(STEP, SLURM_STEP_ID="4294967290"), None)):                          # an interactive one
            with self.subTest(environ):
                task = engine.find(environ)
                self.assertEqual(task and (task.engine, task.rank, task.size, task.ranks_here), expected)

    def test_a_task_without_a_rank(self):
        with self.assertRaisesRegex(UserError, "a task of PMI, but the environment does not name its rank"):
            engine.find({"PMI_FD": "3"})


class Tasks(LauncherTest):
    def tasks(self, np, *words, **options):
        """np tasks, each an ibvrun."""
        return self.succeed("--hosts", "localhost:%d" % np, "--timeout", 60, *options.pop("outer", ()), "--exec", sys.executable,
                            IBVRUN, *words, **options)

    def test_programs(self):
        out, _ = self.tasks(3, "--exec", sys.executable, PMI_CLIENT, 2)  # PMI_FD comes through
        self.assertEqual(sorted(out.splitlines()), ["rank %d of 3 met" % r for r in range(3)])
        out, _ = self.tasks(2, "-x", "WORD=w", "-wdir", self.folder, "--exec", "/bin/sh", "-c",
                            'echo "$0 $WORD $PWD"; grep SigIgn /proc/self/status; exit 0', "{rank}/{size}/{conf}",
                            outer=["-l"])
        folder = os.path.realpath(self.folder)
        for rank in range(2):
            self.assertIn("[%d] %d/2/auto w %s\n" % (rank, rank, folder), out)
            self.assertRegex(out, r"(?m)^\[%d\] SigIgn:\s+0+$" % rank)  # not what Python ignores

    def test_stdin_and_status(self):
        status, out, err = self.run_job("--hosts", "localhost:2", "--exec", sys.executable, IBVRUN, "--exec", "/bin/sh", "-c",
                                        "cat; exit $0", "{rank}", data="text")
        self.assertEqual((status, out), (1, "text"), err)

    def test_java(self):
        out, err = self.tasks(3, "-Dx={size}", "-cp", CLASSES, "Ring", "rounds", 2)
        self.assertEqual(err, "")
        self.assertEqual(sorted(out.splitlines()), sorted(["rank %d of 3 sum 6" % r for r in range(3)] * 2))
        out, _ = self.tasks(1, "-cp", CLASSES, "Probe", "arguments", "a b")
        self.assertEqual(out, "0|auto|ibvdev|arguments|a b\n")

    def test_what_the_launcher_decides(self):
        for words, text in ((["-np", "3"], "-np 3: ibvrun is rank 2 of 4 of a job of PMI already; leave -np out"),
                            (["-l"], "-l: ibvrun is a task of PMI here"),
                            (["--bind", "core"], "--bind: ibvrun is a task of PMI here"),
                            (["-dev", "niodev"], "-dev niodev: does not know how to join a job of PMI")):
            with self.subTest(words):
                status, _, err = self.run_job(*words, "-cp", CLASSES, "Probe", "arguments", env=PMI)
                self.assertEqual(status, 2)
                self.assertIn(text, err)
        status, out, _ = self.run_job("-v", "-np", 4, "--exec", "/bin/echo", "{rank}", env=PMI)  # it agrees
        self.assertEqual((status, out), (0, "2\n"))

    def test_size_that_only_the_library_learns(self):
        env = {"PMIX_RANK": "5", "PMIX_NAMESPACE": "x"}
        self.assertEqual(self.run_job("--exec", "/bin/echo", "{rank}", env=env)[1], "5\n")
        status, _, err = self.run_job("--exec", "/bin/echo", "{size}", env=env)
        self.assertEqual(status, 2)
        self.assertIn("{size} is not known here", err)

    def test_a_job_of_its_own_in_an_interactive_step(self):
        env = dict(STEP, SLURM_PROCID="0", SLURM_NTASKS="1")
        out, _ = self.succeed("-np", 2, "--exec", "/bin/sh", "-c", 'echo "$0 $SLURM_PROCID"', "{rank}", env=env)
        self.assertEqual(sorted(out.splitlines()), ["0 ", "1 "])

    def test_what_cannot_be_started(self):
        for words, text in ((["--exec", "/no/such"], "rank 2: starting /no/such: No such file"),
                            (["-wdir", "/no/such", "--exec", "true"], "-wdir /no/such: No such file or directory")):
            status, _, err = self.run_job(*words, env=PMI)
            self.assertEqual(status, 126)
            self.assertIn(text, err)


if __name__ == "__main__":
    main()
