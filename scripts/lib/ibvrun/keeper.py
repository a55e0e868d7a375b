# SPDX-License-Identifier: MIT
"""The process around an agent, which leaves nothing of a job behind on its node.

The keeper is the parent of the agent and the subreaper of everything below it.  When the agent has ended, however it
ended, the keeper kills every descendant, also those that have left their process group and session, removes the
job's folders, and ends with the agent's status.  If the keeper itself is killed, the agent gets SIGTERM and does the
same.  Both hold no more than the kernel does: nothing has to be written to a disk for this to work.
"""
import ctypes
import os
import signal
import time

from .conf import remove_folder

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
KILL_LIMIT_S = 10.0
IGNORED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2,
           signal.SIGTSTP, signal.SIGPIPE)


def prctl(option, value):
    ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def children():
    """Processes whose parent is this one; threads of ours have none."""
    found = []
    me = os.getpid()
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open("/proc/%s/stat" % name, encoding="ascii", errors="replace") as f:
                    fields = f.read().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[1]) == me:
                found.append(int(name))
    return found


def kill_descendants():
    """Kills children, then those that become ours as their parents die, until none is left.  The caller has to be
    a subreaper."""
    limit = time.monotonic() + KILL_LIMIT_S
    while time.monotonic() < limit:
        for pid in children():
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass  # another user's (set-user-id), or gone
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(0.002)


def split():
    """Forks: returns in the agent with a function note(path) that informs the keeper of a folder to remove later.  The
    keeper never returns."""
    read_end, write_end = os.pipe()
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    keeper = os.getpid()
    agent = os.fork()
    if agent:
        status = 1
        try:
            os.close(write_end)
            status = _keep(agent, read_end)
        finally:
            os._exit(status)
    os.close(read_end)
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != keeper:
        os._exit(1)

    def note(path):
        try:
            os.write(write_end, os.fsencode(path) + b"\0")
        except BrokenPipeError:
            pass
    return note


def _keep(agent, notes_fd):
    for number in IGNORED:
        signal.signal(number, signal.SIG_IGN)
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)  # the connection belongs to the agent alone
    while True:
        pid, status = os.waitpid(-1, 0)  # orphans of ranks come to the agent first
        if pid == agent:
            break
    kill_descendants()
    os.set_blocking(notes_fd, False)
    for folder in _read_notes(notes_fd):
        remove_folder(folder)
    return os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)


def _read_notes(fd):
    data = b""
    try:
        while True:
            piece = os.read(fd, 65536)
            if not piece:
                break
            data += piece
    except BlockingIOError:
        pass  # a descendant that could not be killed holds the other end
    return [os.fsdecode(path) for path in data.split(b"\0")[:-1]]
