#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The first process of a node, in its new namespaces: mounts, name, addresses, sshd, then orphans.

usage: node.py NUMBER STATE_FOLDER ISOLATED SHARED_FOLDER...

Shared folders below /tmp stay visible in the node's own /tmp.  Everything else of the file system is that of the
machine, as a cluster has it from a file server.
"""
import os
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "common"))
sys.dont_write_bytecode = True

from processes import wait_for  # noqa: E402  (the path has to be set first)

STASH = "/run/stash"


def run(*words, **options):
    subprocess.run(words, check=True, **options)


def own_tmp(shared):
    """/tmp and /run of its own: launchers name files there by process ids, which are alike on all nodes."""
    below = [f for f in shared if f.startswith("/tmp/")]
    run("mount", "-t", "tmpfs", "tmpfs", "/run")
    for i, folder in enumerate(below):
        os.makedirs("%s/%d" % (STASH, i))
        run("mount", "--bind", folder, "%s/%d" % (STASH, i))
    run("mount", "-t", "tmpfs", "-o", "mode=1777", "tmpfs", "/tmp")
    for i, folder in enumerate(below):
        os.makedirs(folder, exist_ok=True)
        run("mount", "--move", "%s/%d" % (STASH, i), folder)
        os.rmdir("%s/%d" % (STASH, i))
    os.makedirs("/run/sshd")


def listens(address):
    try:
        socket.create_connection((address, 22), 1).close()
        return True
    except OSError:
        return False


def main(number, state, isolated, *shared):
    socket.sethostname("n" + number)
    own_tmp(shared)
    if isolated == "1":
        run("mount", "-t", "tmpfs", "tmpfs", "/dev/shm")
    for name, place in (("hosts", "/etc/hosts"), ("ssh_config", "/etc/ssh/ssh_config")):
        run("mount", "--bind", os.path.join(state, name), place)
    wait_for(lambda: os.path.exists("/proc/sys/net/ipv4/conf/eth0"), "the network device is there")
    run("ip", "-batch", "-", text=True, input="link set lo up\nlink set eth0 up\n"
        "addr add 192.0.2.%s/24 dev eth0\naddr add 2001:db8:77::%s/64 dev eth0 nodad\n" % (number, number))
    log = os.open(os.path.join(state, "sshd_log_" + number), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    subprocess.Popen(["/usr/sbin/sshd", "-D", "-e", "-f", os.path.join(state, "sshd_" + number)], stdin=subprocess.DEVNULL,
                     stdout=log, stderr=log)
    wait_for(lambda: listens("192.0.2." + number), "sshd listens")
    open(os.path.join(state, "ready_" + number), "w", encoding="ascii").close()
    while True:
        try:
            os.wait()
        except ChildProcessError:
            time.sleep(0.1)


if __name__ == "__main__":
    main(*sys.argv[1:])
