# SPDX-License-Identifier: MIT
"""Starting processes on the machine that this runs on, and how they ended."""
import ctypes
import errno
import os
import signal
import subprocess
import termios
from dataclasses import dataclass
from typing import Optional

from .errors import STATUS_NOT_RUN, UserError

PR_SET_PDEATHSIG = 1


@dataclass
class Ending:
    """How a process ended: by exit(status) or by a signal."""
    status: Optional[int]
    signal: Optional[int]

    @property
    def failed(self):
        return self.status != 0

    @property
    def exit_status(self):
        return 128 + self.signal if self.signal is not None else self.status

    def __str__(self):
        if self.signal is not None:
            return "was killed by signal %d (%s)" % (self.signal, signal_name(self.signal))
        text = "exited with status %d" % self.status
        if self.status > 128 and signal_name(self.status - 128).startswith("SIG"):
            text += " (ended by %s)" % signal_name(self.status - 128)  # a JVM exits so after SIGTERM
        return text


def signal_name(number):
    try:
        return signal.Signals(number).name
    except ValueError:
        return "signal %d" % number


def _is_stopped_by_terminal(stdin, stdout, stderr):
    """Would a terminal stop a background process group of its session that uses these descriptors?"""
    def stops_writers(fd):
        return fd >= 0 and os.isatty(fd) and termios.tcgetattr(fd)[3] & termios.TOSTOP != 0
    return (stdin >= 0 and os.isatty(stdin)) or stops_writers(stdout) or stops_writers(stderr)


class Spawner:
    """Starts processes on this machine.  Every process leads a process group of its own, so that a signal reaches it and
    its children once, through us; and the kernel kills it when we die.  The caller has one thread only, which makes
    the code between fork and exec safe.

    Sessions are another matter: the kernel may schedule each as a group (autogroup), and then sched_yield() does not
    yield to a process of another one.  So the processes stay in ours, unless its terminal would stop them."""

    def __init__(self, environ, announce=None):
        """announce(pid) is called in the new process, before it can have children of its own."""
        self._environ = environ
        self._announce = announce
        self._prctl = ctypes.CDLL(None, use_errno=True).prctl
        self._parent = os.getpid()

    def start(self, command, stdin, stdout, stderr, cpus=None, keep=()):
        """Starts a command with these descriptors (None: ours) and returns a Process.  cpus: where it may run (None:
        where we may); keep: further descriptors that it gets.  UserError if it cannot be started."""
        apart = _is_stopped_by_terminal(*(own if given is None else given
                                          for own, given in enumerate((stdin, stdout, stderr))))

        def between_fork_and_exec():
            if not apart:
                os.setpgid(0, 0)
            signal.pthread_sigmask(signal.SIG_SETMASK, ())
            if cpus is not None:
                os.sched_setaffinity(0, cpus)
            self._prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            if os.getppid() != self._parent:
                os._exit(STATUS_NOT_RUN)  # we died before the line above
            if self._announce:
                self._announce(os.getpid())

        try:
            process = subprocess.Popen(command.argv, stdin=stdin, stdout=stdout, stderr=stderr, cwd=command.cwd,
                                       env=dict(self._environ, **command.environ), start_new_session=apart,
                                       pass_fds=keep, preexec_fn=between_fork_and_exec)
        except OSError as e:
            if command.cwd and not os.path.isdir(command.cwd):
                text = "the working folder %s: %s; name one by -wdir" % (command.cwd, os.strerror(errno.ENOENT))
            else:
                text = "%s: %s%s" % (command.argv[0], e.strerror, ": is it the right name?"
                                     if e.errno == errno.ENOENT else "")
            raise UserError("%s: starting %s" % (command.name, text), STATUS_NOT_RUN) from e
        return Process(command, process)


class Process:
    def __init__(self, command, process):
        self.rank = command.rank
        self.name = command.name
        self.pid = process.pid
        self.where = "pid %d" % process.pid
        self._process = process
        self._ending = None

    def send(self, number):
        """To the process and its children; nothing happens if it has ended."""
        if self._ending is None:
            try:
                os.killpg(self.pid, number)
            except ProcessLookupError:
                pass

    def ending(self):
        """An Ending, or None while it runs.  Children that it left behind are killed, while the
        not yet collected process keeps their group's number from being given to anybody else."""
        if self._ending is None:
            info = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if info is not None:
                self.send(signal.SIGKILL)
                os.waitpid(self.pid, 0)
                if info.si_code == os.CLD_EXITED:
                    self._ending = Ending(info.si_status, None)
                else:
                    self._ending = Ending(None, info.si_status)
                self._process.returncode = self._ending.exit_status  # keeps Popen from waiting again
        return self._ending
