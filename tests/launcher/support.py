# SPDX-License-Identifier: MIT
"""What the launcher tests share: running ibvrun, waiting for conditions, compiling Java."""
import atexit
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
SCRIPTS = os.path.normpath(os.path.join(HERE, "..", "..", "scripts"))
IBVRUN = os.path.join(SCRIPTS, "ibvrun")
INFO = os.path.join(SCRIPTS, "ibvdev-info")
MPJ_JAR = os.environ.get("IBVDEV_TEST_MPJ_JAR", "/usr/share/java/mpj.jar")
NEWER_JDKS = ("/usr/lib/jvm/temurin-25-jdk-amd64", "/usr/lib/jvm/java-25-openjdk-amd64",
              "/usr/lib/jvm/java-24-openjdk-amd64")
LIMIT_S = 60  # nothing here takes long; this only turns a hang into a failure

sys.path.insert(0, os.path.join(SCRIPTS, "lib"))
sys.dont_write_bytecode = True


def _undo_inherited_dispositions():
    """A shell's background jobs ignore SIGINT; a test starts ibvrun as a terminal would."""
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM, signal.SIGTSTP,
                   signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, signal.SIG_DFL)


def alive(pid):
    """Neither gone nor a zombie."""
    try:
        with open("/proc/%d/stat" % pid, encoding="ascii", errors="replace") as f:
            return f.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def wait_for(condition, what, limit_s=LIMIT_S):
    limit = time.monotonic() + limit_s
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > limit:
            raise AssertionError("did not happen in %g s: %s" % (limit_s, what))
        time.sleep(0.02)


def read(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as f:
            return f.read()
    except FileNotFoundError:
        return ""


class LauncherTest(unittest.TestCase):
    """Each test has a folder of its own, and a TMPDIR that has to be empty at the end."""

    maxDiff = None

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="ibvrun test ")  # the blank is part of the test
        self.tmpdir = os.path.join(self.folder, "tmp")
        os.mkdir(self.tmpdir)
        self.shm_before = set(os.listdir("/dev/shm"))
        self.jobs = []
        self.addCleanup(self._clean)

    def _clean(self):
        for job in self.jobs:
            if job.poll() is None:
                job.kill()
            job.wait()
            for stream in (job.stdin, job.stdout, job.stderr):
                if stream and not stream.closed:
                    stream.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def environ(self, **more):
        env = dict(os.environ, TMPDIR=self.tmpdir, LC_ALL="C.UTF-8")
        for name in ("CLASSPATH", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS"):
            env.pop(name, None)
        env.update(more)
        return env

    def start(self, *words, env=None, cwd=None, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, program=IBVRUN):
        job = subprocess.Popen([sys.executable, program] + [str(w) for w in words], stdin=stdin, stdout=stdout,
                               stderr=subprocess.PIPE, text=True, env=self.environ(**(env or {})), cwd=cwd,
                               preexec_fn=_undo_inherited_dispositions)
        self.jobs.append(job)
        return job

    def finish(self, job, data=None):
        """(status, stdout, stderr); everything is written into a failure's text."""
        try:
            out, err = job.communicate(data, timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            job.kill()
            try:
                out, err = job.communicate(timeout=5)
            except subprocess.TimeoutExpired as e:  # a process that it left behind holds the pipes
                out, err = e.stdout, e.stderr
            self.fail("%s did not end\nstdout:\n%s\nstderr:\n%s" % (job.args, out, err))
        return job.returncode, out, err

    def run_job(self, *words, data=None, **options):
        if data is not None:
            options["stdin"] = subprocess.PIPE
        return self.finish(self.start(*words, **options), data)

    def succeed(self, *words, **options):
        status, out, err = self.run_job(*words, **options)
        self.assertEqual(status, 0, "stdout:\n%s\nstderr:\n%s" % (out, err))
        return out, err

    def assert_nothing_left(self, pids=()):
        for pid in pids:
            self.assertFalse(alive(pid), "process %d is left" % pid)
        self.assertEqual(os.listdir(self.tmpdir), [], "left in TMPDIR")

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


def main():
    result = unittest.main(exit=False).result
    ran = result.testsRun - len(result.skipped)
    if not result.wasSuccessful():
        sys.exit(1)
    sys.exit(0 if ran > 0 else 77)
