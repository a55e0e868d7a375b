# SPDX-License-Identifier: MIT
"""A second process that outlives ibvrun only to clean up behind it.

It reads a pipe whose other end only ibvrun holds.  "+pid" and "-pid" lines name the process groups
live; "done" means that ibvrun has cleaned up itself.  The end of the pipe without it means that ibvrun was
killed: the groups are killed and the job's folder is removed.
"""
import os
import signal

from .conf import remove_folder

DONE = "done"
NEVER_ENDED_BY = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2,
                  signal.SIGTSTP, signal.SIGPIPE)


class Guardian:
    """Has to be opened while the process has one thread and no rank yet."""

    def __init__(self, folder):
        read_end, self._fd = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            try:
                os.close(self._fd)
                _guard(read_end, folder)
            finally:
                os._exit(0)
        os.close(read_end)

    def started(self, pid):
        """Reported by the new process itself: ibvrun might be killed before it can."""
        self._write("+%d" % pid)

    def ended(self, pid):
        self._write("-%d" % pid)

    def close(self):
        """ibvrun has cleaned up."""
        self._write(DONE)
        os.close(self._fd)
        os.waitpid(self._pid, 0)

    def _write(self, line):
        try:
            os.write(self._fd, (line + "\n").encode())
        except BrokenPipeError:
            pass  # somebody killed the guardian; the kernel's parent-death signal is left


def _guard(read_end, folder):
    os.setsid()
    for number in NEVER_ENDED_BY:
        signal.signal(number, signal.SIG_IGN)
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)  # or a reader of ibvrun's output would wait for us
    os.chdir("/")
    groups = set()
    with os.fdopen(read_end, encoding="ascii") as lines:
        for line in lines:
            word = line.strip()
            if word == DONE:
                return
            (groups.add if word[0] == "+" else groups.discard)(int(word[1:]))
    for group in groups:
        try:
            os.killpg(group, signal.SIGKILL)
        except OSError:
            pass
    remove_folder(folder)
