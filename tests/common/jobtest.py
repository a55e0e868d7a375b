# SPDX-License-Identifier: MIT
"""Tests that start commands as a user does: their streams, statuses and ends."""
import os
import subprocess
import sys
import unittest

from processes import LIMIT_S, alive, wait_for

SKIPPED = 77


class JobTest(unittest.TestCase):
    """A subclass has start(*words, **options), which returns a Popen with pipes and puts it into self.jobs, and
    self.folder, which belongs to the test."""

    maxDiff = None

    def setUp(self):
        self.jobs = []
        self.folder = None

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def start(self, *words, **options):
        raise NotImplementedError

    def what_is_left(self):
        """For the text of a failure: what the jobs have on the machine."""
        return ""

    def finish(self, job, data=None, limit_s=LIMIT_S):
        """(status, stdout, stderr) of a job that has to end."""
        try:
            out, err = job.communicate(data, timeout=limit_s)
        except subprocess.TimeoutExpired:
            left = self.what_is_left()
            job.kill()
            try:
                out, err = job.communicate(timeout=5)
            except subprocess.TimeoutExpired as e:  # a process that it left behind holds the pipes
                out, err = (t.decode("utf-8", "replace") if isinstance(t, bytes) else t for t in (e.stdout, e.stderr))
            self.fail("%s did not end in %g s\nstdout:\n%s\nstderr:\n%s\n%s" % (job.args, limit_s, out, err, left))
        return job.returncode, out, err

    def run_job(self, *words, data=None, **options):
        if data is not None:
            options["stdin"] = subprocess.PIPE
        return self.finish(self.start(*words, **options), data)

    def succeed(self, *words, **options):
        """(stdout, stderr) of a job that has to end well."""
        status, out, err = self.run_job(*words, **options)
        self.assertEqual(status, 0, "stdout:\n%s\nstderr:\n%s" % (out, err))
        return out, err

    @staticmethod
    def wait_until_gone(*pids, limit_s=LIMIT_S):
        """For processes that the job does not wait for itself: they have given back their memory, and with it what
        left_with() sees, a moment before they are zombies."""
        wait_for(lambda: not any(alive(p) for p in pids), "these processes are gone: %s" % (pids,), limit_s)

    def end_jobs(self):
        """Kills what still runs and closes its streams."""
        for job in self.jobs:
            if job.poll() is None:
                job.kill()
            job.wait()
            for stream in (job.stdin, job.stdout, job.stderr):
                if stream and not stream.closed:
                    stream.close()


def main():
    """Runs the tests of the program that was called; status 77 if none could be run."""
    result = unittest.main(exit=False, argv=sys.argv).result
    if not result.wasSuccessful():
        sys.exit(1)
    sys.exit(0 if result.testsRun > len(result.skipped) else SKIPPED)
