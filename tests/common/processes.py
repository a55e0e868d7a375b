# SPDX-License-Identifier: MIT
"""Processes and files as the tests of the launcher and of the cluster look at them."""
import signal
import time

LIMIT_S = 60  # nothing here takes long; this only turns a hang into a failure


def undo_inherited_dispositions():
    """A shell's background jobs ignore SIGINT; a test starts a command as a terminal would."""
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM, signal.SIGTSTP, signal.SIGUSR1,
                   signal.SIGUSR2):
        signal.signal(number, signal.SIG_DFL)


def alive(pid):
    """Neither gone nor a zombie."""
    try:
        with open("/proc/%d/stat" % pid, encoding="utf-8", errors="replace") as f:
            return f.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def wait_for(condition, what, limit_s=LIMIT_S):
    """The condition's first true value."""
    limit = time.monotonic() + limit_s
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > limit:
            raise AssertionError("did not happen in %g s: %s" % (limit_s, what))
        time.sleep(0.02)


def read(path):
    """Its text; "" where there is no such file."""
    try:
        with open(path, encoding="utf-8", errors="replace") as f:
            return f.read()
    except FileNotFoundError:
        return ""
