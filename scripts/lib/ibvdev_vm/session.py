# SPDX-License-Identifier: MIT
"""One run: boots the machines, sends "go" when all are ready, relays, and sends "off" when all are done.

   booting --"ready"--> ready --"go" to all--> running --"status N"--> done --"off" to all--> gone

A machine that goes before its status, other than by kill-node, fails the run.
"""
import os
import selectors
import socket
import sys
import time

from . import RigError, job
from .machine import CHANNELS, Machine

BOOTING, READY, RUNNING, DONE, GONE = "booting", "ready", "running", "done", "gone"
STATUS_LIMIT = 124
STATUS_KILLED = 137
OFF_SECONDS = 10


class Relay:
    """Bytes of one stream of one node to ours; with a label, whole lines."""

    def __init__(self, target, label):
        self.target = target
        self.label = label
        self.rest = b""

    def write(self, data):
        if self.label:
            *lines, self.rest = (self.rest + data).split(b"\n")
            data = b"".join(self.label + line + b"\n" for line in lines)
        self.target.write(data)
        self.target.flush()

    def close(self):
        if self.rest:
            self.write(b"\n")


class Node:
    def __init__(self, number, machine, has_job, labelled):
        self.number = number
        self.machine = machine
        self.has_job = has_job
        self.state = BOOTING
        self.status = None
        self.killed = False
        self.marks = []  # (name, seconds since qemu was started)
        self.lines = b""
        label = b"[node %d] " % number if labelled else b""
        self.relays = {"out": Relay(sys.stdout.buffer, label), "err": Relay(sys.stderr.buffer, label)}

    def send(self, word):
        try:
            self.machine.channels["control"].sendall(word.encode() + b"\n")
        except OSError:
            pass  # it has gone; that shows elsewhere


class Session:
    def __init__(self, options, kernel, accel, work):
        self.options = options
        self.kernel = kernel
        self.accel = accel
        self.work = work
        self.nodes = []
        self.selector = selectors.DefaultSelector()
        self.went = None  # when "go" was sent
        self.phases = []

    def run(self):
        """The exit status of the run."""
        try:
            self.boot()
            self.loop()
            self.switch_off()
            return self.verdict()
        finally:
            for node in self.nodes:
                node.machine.kill()

    def boot(self):
        options = self.options
        devices = job.networks(options)
        nets = [(), ()]
        if options.nodes == 2:
            pairs = [socket.socketpair() for _ in devices]
            nets = [[pair[n] for pair in pairs] for n in (0, 1)]
        for number in range(options.nodes):
            machine = Machine(number, self.work)
            machine.prepare(self.kernel, job.files(options, number))
            self.nodes.append(Node(number, machine, number == 0 or options.both, options.both))
        for node in self.nodes:
            terminal = node.number == 0 and (options.shell or options.keep)
            node.machine.start(self.kernel, self.accel, options.smp, options.mem, nets[node.number],
                               options.results, terminal, len(devices))
            for name in CHANNELS:
                self.selector.register(node.machine.channels[name], selectors.EVENT_READ, (node, name))
        self.began = time.monotonic()

    def loop(self):
        while any(n.has_job and n.state in (BOOTING, READY, RUNNING) for n in self.nodes):
            self.check_time()
            self.step(self.time_left())

    def time_left(self):
        now = time.monotonic()
        if self.went is None:
            return self.began + self.options.boot_limit - now
        return self.went + self.options.limit - now if self.options.limit else 60

    def check_time(self):
        if self.time_left() > 0:
            return
        if self.went is None:
            slow = next(n for n in self.nodes if n.state == BOOTING)
            raise RigError("node %d was not ready within %g s (--boot-limit)%s" % (
                slow.number, self.options.boot_limit, self.console_of(slow)))
        late = [n for n in self.nodes if n.has_job and n.state == RUNNING]
        for node in late:
            node.status = STATUS_LIMIT
            node.state = DONE
            self.note("the command%s was ended: it ran longer than %g s (--limit)" % (
                " on node %d" % node.number if self.options.both else "", self.options.limit))
            node.machine.kill()

    def step(self, timeout):
        for key, _ in self.selector.select(max(0, timeout)):
            node, name = key.data
            try:
                data = key.fileobj.recv(65536)
            except ConnectionResetError:
                data = b""
            if not data:
                self.selector.unregister(key.fileobj)
                if name == "control":
                    self.gone(node)
            elif name == "control":
                *lines, node.lines = (node.lines + data).split(b"\n")
                for line in lines:
                    self.on_line(node, line.decode(errors="replace"))
            else:
                node.relays[name].write(data)

    def on_line(self, node, line):
        word, _, rest = line.partition(" ")
        if word == "mark":
            node.marks.append((rest, time.monotonic() - node.machine.started))
        elif word == "ready":
            node.state = READY
            if all(n.state == READY for n in self.nodes):
                self.went = time.monotonic()
                for n in self.nodes:
                    n.state = RUNNING
                    n.send("go")
        elif word == "status" and node.state == RUNNING:
            node.status = int(rest)
            node.state = DONE
        elif word == "kill" and rest in ("0", "1") and int(rest) < len(self.nodes):
            victim = self.nodes[int(rest)]
            victim.killed = True
            victim.machine.kill()
        elif word == "fail":
            raise RigError("node %d: %s%s" % (node.number, rest, self.console_of(node)))

    def gone(self, node):
        if node.state in (DONE, GONE):
            return
        if node.killed:
            node.state = GONE
            node.status = STATUS_KILLED
            return
        node.machine.kill()
        what = node.machine.complaint()
        raise RigError("node %d ended without an exit status%s%s" % (
            node.number, "; qemu reports: " + what if what else "", self.console_of(node)))

    def switch_off(self):
        """Reads until every channel has ended: what was written last has to come out as well."""
        asked = time.monotonic()
        for node in self.nodes:
            if node.state == RUNNING:
                node.state = DONE
            node.send("off")
        while self.selector.get_map() and time.monotonic() < asked + OFF_SECONDS:
            self.step(asked + OFF_SECONDS - time.monotonic())
        if self.selector.get_map():
            self.note("a guest did not power off within %d s and was ended" % OFF_SECONDS)
        for node in self.nodes:
            node.machine.kill()
            node.marks.append(("off", time.monotonic() - node.machine.started))
            for relay in node.relays.values():
                relay.close()

    def verdict(self):
        statuses = [(n.number, n.status) for n in self.nodes if n.has_job]
        if self.options.both:
            self.note(", ".join("node %d: exit status %d" % s for s in statuses))
        if self.options.verbose:
            for node in self.nodes:
                self.note("node %d: %s" % (node.number, timing(node.marks)))
        return next((status for _, status in statuses if status), 0)

    def console_of(self, node):
        lines = node.machine.console_tail()
        return "\n".join(["; the end of its console:"] + ["  " + line for line in lines]) if lines else ""

    def note(self, text):
        sys.stdout.flush()
        sys.stderr.write("ibvdev-vm: %s\n" % text)
        sys.stderr.flush()


def timing(marks):
    """Where the time went: each phase up to its mark, in seconds."""
    names = {"kernel": "kernel", "root": "root", "modules": "modules", "ready": "network and RDMA", "go": "waiting",
             "command": "command", "off": "off"}
    parts = []
    before = 0
    for name, at in marks:
        parts.append("%s %.1f" % (names.get(name, name), at - before))
        before = at
    return "%s; %.1f s" % (", ".join(parts), before)
