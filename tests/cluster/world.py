# SPDX-License-Identifier: MIT
"""A world of its own for a test program: enter() runs the rest of the program in new namespaces.

The bridge of the nodes, their processes and their mounts exist in there only.  Two programs do not meet, this
machine's network does not change, and when the program ends, by whatever means, the kernel ends all that it
started.  Root is not needed where the kernel lets users make namespaces and the user has subordinate ids.
"""
import ctypes
import os
import shutil
import signal
import subprocess
import sys

SKIPPED = 77
INSIDE = "IBVDEV_TEST_WORLD"
MUST_RUN = bool(os.environ.get("IBVDEV_TEST_CI"))  # what cannot run in continuous integration has failed
NAMESPACES = ["--mount", "--net", "--uts", "--ipc", "--pid", "--fork", "--kill-child", "--mount-proc"]


def unshare_words():
    words = ["unshare"] + NAMESPACES
    if os.geteuid() != 0:
        words += ["--map-root-user", "--map-auto"]  # sshd and munged need more ids than one
    return words


def why_not():
    """Why this machine cannot make nodes, or None."""
    for command, package in (("unshare", "util-linux"), ("nsenter", "util-linux"), ("ip", "iproute2"), ("ss", "iproute2"),
                             ("sshd", "openssh-server"), ("ssh-keygen", "openssh-client")):
        if not find(command):
            return "no %s here (Debian package %s)" % (command, package)
    if os.geteuid() != 0 and not shutil.which("newuidmap"):
        return "not root, and no newuidmap (Debian package uidmap)"
    trial = "ip link add type bridge && ip link add type veth && mount -t tmpfs none /mnt && hostname n1"
    done = subprocess.run(unshare_words() + ["sh", "-c", trial], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          check=False, timeout=60)
    if done.returncode:
        return "the kernel forbids namespaces: " + (done.stderr.strip() or "unshare failed")
    return None


def find(command):
    return shutil.which(command, path=os.environ.get("PATH", os.defpath) + ":/usr/sbin:/sbin")


def find_library(name):
    """Can the dynamic loader find it under exactly this name?"""
    try:
        ctypes.CDLL(name)
        return True
    except OSError:
        return False


def enter():
    """Returns inside only.  Ends the program with status 77 and the reason where there can be no namespaces; in continuous
    integration that is a failure."""
    if INSIDE in os.environ:
        os.environ["PATH"] += ":/usr/sbin:/sbin"
        return
    reason = why_not()
    if reason:
        print("skipped: " + reason)
        sys.exit(1 if MUST_RUN else SKIPPED)
    sys.stdout.flush()
    os.environ[INSIDE] = "1"
    os.execvp("unshare", unshare_words() + [sys.executable, os.path.abspath(__file__), sys.executable] + sys.argv)


def be_first(words):
    """The first process of the world: starts the program, collects orphans, ends with the program's status."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda n, frame: os._exit(128 + n))
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/dev/shm"], check=True)
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    child = os.spawnvp(os.P_NOWAIT, words[0], words)
    while True:
        pid, status = os.wait()
        if pid == child:
            return os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    code = be_first(sys.argv[1:])
    os._exit(code if code >= 0 else 128 - code)
