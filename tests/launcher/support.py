# SPDX-License-Identifier: MIT
"""What the launcher tests share: running ibvrun, waiting for conditions, compiling Java."""
import atexit
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
SCRIPTS = os.path.normpath(os.path.join(HERE, "..", "..", "scripts"))
IBVRUN = os.path.join(SCRIPTS, "ibvrun")
INFO = os.path.join(SCRIPTS, "ibvdev-info")
MPJ_JAR = os.environ.get("IBVDEV_TEST_MPJ_JAR", "/usr/share/java/mpj.jar")
NEWER_JDKS = ("/usr/lib/jvm/temurin-25-jdk-amd64", "/usr/lib/jvm/java-25-openjdk-amd64",
              "/usr/lib/jvm/java-24-openjdk-amd64")

sys.path[:0] = [os.path.join(SCRIPTS, "lib"), os.path.join(HERE, "..", "common")]
sys.dont_write_bytecode = True

from jobtest import JobTest, main  # noqa: E402,F401  (the path has to be set first; the tests have main from here)
from processes import LIMIT_S, alive, read, undo_inherited_dispositions, wait_for  # noqa: E402,F401


def left_with(folder):
    """{pid: command line} of the processes whose TMPDIR is this folder."""
    found = {}
    variable = b"TMPDIR=" + os.fsencode(folder)
    for name in os.listdir("/proc"):
        try:
            if name.isdigit() and variable in _bytes(name, "environ").split(b"\0") and alive(int(name)):
                found[int(name)] = _bytes(name, "cmdline").replace(b"\0", b" ").decode("utf-8", "replace")
        except OSError:
            pass  # gone, or another user's
    return found


def _bytes(pid, name):
    with open("/proc/%s/%s" % (pid, name), "rb") as f:
        return f.read()


class LauncherTest(JobTest):
    """Each test has a folder of its own, and a TMPDIR by which its processes are known and which has to be empty at the
    end.  The library's memory and sockets have no names in the file system: they are gone with the processes."""

    def setUp(self):
        super().setUp()
        self.folder = tempfile.mkdtemp(prefix="ibvrun test ")  # the blank is part of the test
        self.tmpdir = os.path.join(self.folder, "tmp")
        os.mkdir(self.tmpdir)
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.addCleanup(self.end_jobs)

    def environ(self, **more):
        env = dict(os.environ, TMPDIR=self.tmpdir, LC_ALL="C.UTF-8")
        for name in ("CLASSPATH", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS"):
            env.pop(name, None)
        env.update(more)
        return env

    def start(self, *words, env=None, cwd=None, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, program=IBVRUN):
        job = subprocess.Popen([sys.executable, program] + [str(w) for w in words], stdin=stdin, stdout=stdout,
                               stderr=subprocess.PIPE, text=True, env=self.environ(**(env or {})), cwd=cwd,
                               preexec_fn=undo_inherited_dispositions)
        self.jobs.append(job)
        return job

    def what_is_left(self):
        return "processes: %s\nin TMPDIR: %s" % (left_with(self.tmpdir), os.listdir(self.tmpdir))

    def assert_nothing_left(self, limit_s=0):
        """No process of this test but the jobs that it still has to collect, and no file in its TMPDIR.  limit_s: for
        those that end by themselves when their launcher was killed."""
        mine = {job.pid for job in self.jobs}

        def clean():
            return not set(left_with(self.tmpdir)) - mine and not os.listdir(self.tmpdir)
        try:
            wait_for(clean, "nothing is left", limit_s)
        except AssertionError:
            self.fail("left behind: " + self.what_is_left())

    def sh(self, np, script, *words, **options):
        """A job of shells; {rank} is $1, {conf} is $2."""
        return self.run_job(*self.sh_words(np, script, *words), **options)

    @staticmethod
    def sh_words(np, script, *words):
        return ("-np", np) + words + ("--exec", "/bin/sh", "-c", script, "sh", "{rank}", "{conf}")


def compile_java(*names):
    """Compiles the programs of this folder; returns the folder of classes.  Skips without a compiler."""
    javac = shutil.which("javac")
    if not javac:
        raise unittest.SkipTest("no javac")
    folder = tempfile.mkdtemp(prefix="ibvrun classes ")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    subprocess.run([javac, "-cp", MPJ_JAR, "-d", folder] + [os.path.join(HERE, n) for n in names], check=True)
    return folder
