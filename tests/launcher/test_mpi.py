# SPDX-License-Identifier: MIT
"""Real message passing: ibvdev, niodev and smpdev started by ibvrun, and what a dead rank does to a job."""
import os
import re
import signal
import subprocess
import sys
import time

import support
from support import LauncherTest, main, read, wait_for


def setUpModule():
    global CLASSES
    CLASSES = support.compile_java("Ring.java", os.path.join("..", "..", "java", "examples", "HelloIbvdev.java"))


class ClassArchive(LauncherTest):
    """The archive of classes in the user's cache."""
    mpi = "mpjexpress"

    def setUp(self):
        super().setUp()
        self.env = {"XDG_CACHE_HOME": self.path("cache")}
        os.mkdir(self.path("cache"))

    def archives(self):
        folder = self.path("cache", "ibvdev", "classes")
        return sorted(os.listdir(folder)) if os.path.isdir(folder) else []

    def ring(self, *words):
        """How many classes of ours came out of the archive."""
        log = self.path("log")
        out, err = self.succeed("-np", 1, "-mpi", self.mpi, "-Xlog:class+load:file=" + log, *words, "-cp", CLASSES, "Ring", env=self.env)
        self.assertEqual((out, err), ("rank 0 of 1 sum 1\n", ""))
        return len(re.findall(r"(?m)(mpi|xdev)\..*source: shared objects file \(top\)", read(log)))

    def test_it_is_made_once_and_mapped(self):
        self.assertEqual(self.ring("--no-class-archive"), 0)
        self.assertEqual(self.archives(), [])
        self.succeed("-n", "-np", 1, "-mpi", self.mpi, "Ring", env=self.env)
        self.assertEqual(self.archives(), [])
        self.assertGreater(self.ring(), 50)
        (name,) = self.archives()
        path = self.path("cache", "ibvdev", "classes", name)
        made = os.stat(path).st_mtime_ns
        self.assertGreater(self.ring("-XX:+UseSerialGC"), 50)
        self.assertEqual(os.stat(path).st_mtime_ns, made)
        self.assertEqual(self.ring("-Xshare:off"), 0)   # the user decides
        with open(path, "r+b") as f:
            f.write(b"nonsense" * 100)
        self.assertEqual(self.ring(), 0)                # a JVM that refuses it starts without it

    def test_of_the_tasks_of_a_launcher_rank_0_makes_it(self):
        for made in (False, True):
            self.assertEqual(bool(self.archives()), made)
            out, err = self.succeed("--hosts", "localhost:2", "-x", "XDG_CACHE_HOME", "-x", "HOME", "--timeout", 60, "--exec",
                                    sys.executable, support.IBVRUN, "-cp", CLASSES, "Ring", env=self.env)
            self.assertEqual((sorted(out.splitlines()), err), (["rank %d of 2 sum 3" % r for r in range(2)], ""))
        self.assertEqual(len(self.archives()), 1)

    def test_where_it_cannot_be_made_it_is_tried_once(self):
        os.makedirs(self.path("jdk", "bin"))
        java = self.path("jdk", "bin", "java")
        with open(java, "w", encoding="ascii") as f:
            f.write('#!/bin/sh\necho "$*" >> "%s"; exit 1\n' % self.path("calls"))
        os.chmod(java, 0o755)
        with open(self.path("jdk", "release"), "w", encoding="ascii") as f:
            f.write('JAVA_VERSION="17"\n')
        for _ in range(2):
            self.assertEqual(self.run_job("-np", 1, "--java", java, "X", env=self.env)[0], 1)
        calls = read(self.path("calls"))
        self.assertEqual((calls.count("ArchiveClassesAtExit"), calls.count("SharedArchiveFile"), len(calls.splitlines())),
                         (1, 0, 3))

    def test_each_package_mpi_has_its_own(self):
        self.assertGreater(self.ring(), 50)
        self.mpi = "ours"
        self.assertGreater(self.ring(), 50)
        self.assertEqual(len(self.archives()), 2)


class Jobs(LauncherTest):
    def ring(self, np, *options, words=(), rounds=1, **more):
        """Runs Ring, which has to be right on every rank and silent on standard error."""
        out, err = self.succeed("-np", np, "--timeout", 80, *options, "-cp", CLASSES, "Ring", *words, **more)
        self.assertEqual(err, "")
        self.assertEqual(sorted(out.splitlines()), sorted(
            ["rank %d of %d sum %d" % (r, np, np * (np + 1) // 2) for r in range(np)] * rounds))
        self.assert_nothing_left()

    def test_ibvdev(self):
        for np in (1, 2, 4):
            with self.subTest(np=np):
                self.ring(np, "-mpi", "mpjexpress")

    def test_our_mpi(self):
        for np in (1, 2, 4):
            with self.subTest(np=np):
                self.ring(np)
        self.ring(2, "-mpi", "ours", "-mpjhome", self.folder, words=("rounds", 3), rounds=3)

    def test_the_example_does_the_same_on_both(self):
        found = []
        for mpi in ("ours", "mpjexpress"):
            out, err = self.succeed("-np", 3, "-mpi", mpi, "-cp", CLASSES, "HelloIbvdev")
            self.assertEqual(err, "")
            found.append(sorted(re.sub(r"process \d+", "", out).splitlines()))
        self.assertEqual(*found)
        self.assertEqual(len(found[0]), 4)

    def test_niodev(self):
        for np in (2, 4):
            with self.subTest(np=np):
                self.ring(np, "-dev", "niodev")

    def test_niodev_init_again(self):
        self.ring(2, "-dev", "niodev", words=("rounds", 3), rounds=3)

    def test_ibvdev_init_again(self):
        self.ring(2, "-mpi", "mpjexpress", words=("rounds", 3), rounds=3)

    def test_ranks_as_threads(self):
        for np in (1, 4):
            self.ring(np, "--threads")
        self.ring(3, "--threads", "-Xcheck:jni", words=("rounds", 3), rounds=3)

    def test_ranks_as_threads_with_an_exception(self):
        status, _, err = self.run_job("-np", 3, "--threads", "-cp", CLASSES, "Ring", "throw")
        self.assertEqual(status, 1, err)
        self.assertIn("rank 2 ended by an exception", err)
        self.assertIn("thrown by rank 2", err)
        self.assert_nothing_left()

    def test_smpdev(self):
        self.ring(3, "-dev", "smpdev")

    def test_smpdev_exception(self):
        status, _, err = self.run_job("-np", 2, "-dev", "smpdev", "-cp", CLASSES, "Ring", "throw")
        self.assertEqual(status, 1, err)
        self.assertIn("thrown by rank 1", err)
        self.assertRegex(err, r"ibvrun: the JVM of all 2 ranks \(pid \d+\) exited with status 1")

    def test_a_newer_jdk_does_not_warn(self):
        home = next((h for h in support.NEWER_JDKS if os.path.isdir(h)), None)
        if not home:
            self.skipTest("no newer JDK")
        self.ring(2, "--java", home)

    def test_two_jobs_at_once(self):
        jobs = [self.start("-np", 2, "-cp", CLASSES, "Ring") for _ in range(2)]
        for job in jobs:
            status, out, err = self.finish(job)
            self.assertEqual((status, err), (0, ""))
            self.assertEqual(sorted(out.splitlines()), ["rank %d of 2 sum 3" % r for r in range(2)])

    def test_ranks_started_by_hand_from_a_dry_run(self):
        out, _ = self.succeed("-n", "-np", 2, "-cp", CLASSES, "Ring")
        subprocess.run(["/bin/sh", "-c", out[out.index("cat >"):out.index("# rank 0:")]], check=True, timeout=60)
        lines = [x for x in out.splitlines() if x.startswith("cd ")]
        env = {"PATH": os.environ["PATH"]}
        ranks = [subprocess.Popen(["/bin/sh", "-c", x], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  text=True) for x in lines]
        self.jobs += ranks
        for rank, process in enumerate(ranks):
            self.assertEqual(self.finish(process), (0, "rank %d of 2 sum 3\n" % rank, ""))

    def test_an_exception_before_finalize(self):
        status, _, err = self.run_job("-np", 3, "--grace", 10, "-cp", CLASSES, "Ring", "throw")
        self.assertEqual(status, 1)
        self.assertIn("thrown by rank 2", err)
        # its peers are notified before its JVM has gone, and one of them may be gone sooner
        self.assertRegex(err, r"ibvrun: rank [0-2] \(pid \d+\) exited with status 1; ending the job")
        self.assert_nothing_left()

    def hanging(self, np, *options):
        job = self.start("-np", np, *options, "-cp", CLASSES, "Ring", "hang", self.path("pid."))
        wait_for(lambda: all(read(self.path("pid.%d" % r)).endswith("\n") for r in range(np)), "all ranks wait")
        return job, [int(read(self.path("pid.%d" % r))) for r in range(np)]

    def test_a_killed_rank_ends_the_others_by_an_exception(self):
        for victim in (0, 2):
            with self.subTest(victim=victim):
                for r in range(3):
                    open(self.path("pid.%d" % r), "w", encoding="ascii").close()
                job, pids = self.hanging(3, "-l", "-v", "--grace", 30)
                os.kill(pids[victim], signal.SIGKILL)
                began = time.monotonic()
                status, _, err = self.finish(job)
                self.assertLess(time.monotonic() - began, 30, err)  # by themselves, not by our SIGTERM
                self.assertNotIn("SIGTERM", err)
                self.assertEqual(status, 137, err)
                self.assertRegex(err, r"ibvrun: rank %d \(pid %d\) was killed by signal 9 \(SIGKILL\)"
                                 % (victim, pids[victim]))
                for survivor in {0, 1, 2} - {victim}:
                    text = "\n".join(x for x in err.splitlines() if x.startswith("[%d] " % survivor))
                    self.assertRegex(text, r"Exception.*rank %d\b" % victim, err)
                    self.assertRegex(err, r"ibvrun: rank %d \(pid \d+\) exited with status 1" % survivor)
                self.assert_nothing_left()

    def test_niodev_ranks_that_wait_for_a_dead_one_are_ended(self):
        job, pids = self.hanging(2, "-dev", "niodev", "--grace", 0.5)
        os.kill(pids[1], signal.SIGKILL)
        status, _, err = self.finish(job)
        self.assertEqual(status, 137, err)
        self.assertRegex(err, r"ibvrun: rank 1 \(pid \d+\) was killed by signal 9")
        self.assert_nothing_left()

    def test_killed_launcher_leaves_no_rank(self):
        job, pids = self.hanging(2)
        job.kill()
        self.assert_nothing_left(support.LIMIT_S)
        self.wait_until_gone(*pids)

    def test_settings_reach_the_library(self):
        status, _, err = self.run_job("-np", 2, "-Dibvdev.psll=3", "-cp", CLASSES, "Ring")
        self.assertNotEqual(status, 0)
        self.assertTrue(re.search(r"psll.*psl", err, re.S), err)
        status, _, err = self.run_job("-np", 2, "-cp", CLASSES, "Ring", env={"IBVDEV_SPIN_US": "many"})
        self.assertNotEqual(status, 0)
        self.assertIn("IBVDEV_SPIN_US", err)


if __name__ == "__main__":
    main()
