# SPDX-License-Identifier: MIT
"""The agent of one node: one process, one thread, one connection up, and links to the agents that it starts.

It never decides anything about the job.  When its connection ends, whatever the reason, it kills everything below it
and ends; when it is killed itself, its keeper does that (keeper.py).
"""
import os
import selectors
import signal
import socket
import sys
import tarfile
import tempfile
import time

from . import bootstrap, keeper
from .branch import END_S, Branch
from .conf import remove_folder
from .errors import STATUS_NOT_RUN
from .ranks import Ranks
from .wire import ALL, MAGIC, TICK_S, Kind, Link, pack, unpack


class Agent:
    def __init__(self, boot, note):
        """boot: what makes another agent (bootstrap.message)."""
        self._boot = boot
        self._note = note
        self._folders = []
        self._selector = selectors.DefaultSelector()
        self._node = None
        self._branches = []
        self._ranks = None
        self._stage = None
        self._finished = None  # why
        self._quit_limit = None
        self._wake_read, wake_write = socket.socketpair()
        self._wake_read.setblocking(False)
        wake_write.setblocking(False)
        self._wake_write = wake_write
        self._selector.register(self._wake_read, selectors.EVENT_READ, self._on_wakeup)
        for number in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGCHLD, signal.SIGUSR1, signal.SIGUSR2):
            signal.signal(number, lambda number, frame: None)  # handlers, so that ranks inherit the default
        signal.signal(signal.SIGTERM, self._on_sigterm)
        signal.set_wakeup_fd(wake_write.fileno(), warn_on_full_buffer=False)
        up_read, up_write = _take_connection()
        self._up = Link(self._selector, up_read, up_write, self._on_down_frame, self._on_up_end, 0)
        self._up.send_raw(MAGIC)

    def run(self):
        next_tick = time.monotonic() + TICK_S
        while not self._done():
            for key, _ in self._selector.select(max(0.0, next_tick - time.monotonic())):
                key.data()
            if time.monotonic() >= next_tick:
                next_tick = time.monotonic() + TICK_S
                self._up.tick()
                for branch in list(self._branches):
                    branch.link.tick()
        keeper.kill_descendants()
        for folder in self._folders:
            remove_folder(folder)

    def _done(self):
        if self._finished:
            return True
        if self._quit_limit is None:
            return False
        return time.monotonic() > self._quit_limit or all(b.ended() for b in self._branches)

    # -- frames from above ----------------------------------------------------------------------------

    def _on_down_frame(self, kind, node, body):
        if node == ALL:
            for branch in self._branches:
                branch.link.send(kind, node, body)
        elif self._node is not None and node != self._node:
            for branch in self._branches:
                if node in branch.nodes:
                    branch.link.send(kind, node, body)
            return
        getattr(self, "_do_" + Kind(kind).name.lower())(body)

    def _do_setup(self, body):
        setup = unpack(body)
        spec = setup["spec"]
        self._node = spec["node"]
        self._up.silence_s = setup["silence_s"]
        self._send(Kind.HELLO, pack({"host": socket.gethostname(), "pid": os.getpid(),
                                     "cpus": len(os.sched_getaffinity(0)), "python": sys.version.split()[0]}))
        for below in spec["below"]:
            try:
                self._branches.append(Branch(self._selector, below, setup, self._boot, self._on_up_frame,
                                             self._on_branch_lost))
            except OSError as e:
                self._send_lost(below["host"], [below["node"]], "starting %s: %s" % (setup["agent"][0], e.strerror))
        self._ranks = Ranks(self._selector, self._send, len(spec["below"]))

    def _do_plan(self, body):
        try:
            folder = self._stage and self._stage.finish()
        except (OSError, tarfile.TarError) as e:
            self._send(Kind.FAILED, pack(["unpacking what was staged: %s; is there room in %s?"
                                          % (e, tempfile.gettempdir()), STATUS_NOT_RUN]))
            return
        self._ranks.start(unpack(body), folder)

    def _do_stage(self, body):
        try:
            if self._stage is None:
                self._stage = Stage()
                self._remember(self._stage.folder)
            self._stage.add(body)
        except OSError as e:
            self._send(Kind.FAILED, pack(["storing what is staged in %s: %s; is there room?"
                                          % (tempfile.gettempdir(), e.strerror), STATUS_NOT_RUN]))
            return
        self._send(Kind.STAGED, len(body).to_bytes(4, "big"))

    def _do_signal(self, body):
        self._ranks.signal(body[0])

    def _do_stdin(self, body):
        self._ranks.feed(body)

    def _do_credit(self, body):
        self._ranks.credit(int.from_bytes(body, "big"))

    def _do_release(self, body):
        self._ranks.release(unpack(body))

    def _do_pause(self, _body):
        self._up.paused = True

    def _do_resume(self, _body):
        self._up.paused = False

    def _do_quit(self, _body):
        if self._ranks:
            self._ranks.signal(signal.SIGKILL)
        for branch in self._branches:
            branch.quit()
        self._quit_limit = time.monotonic() + END_S

    # -- frames from below ----------------------------------------------------------------------------

    def _on_up_frame(self, kind, node, body):
        if kind == Kind.FENCE:
            self._ranks.fence.enter(("node", node), unpack(body))
        else:
            self._up.send(kind, node, body)

    def _on_branch_lost(self, branch, text):
        self._branches.remove(branch)
        self._send_lost(branch.host, branch.nodes, text)

    def _send_lost(self, host, nodes, text):
        self._send(Kind.LOST, pack({"host": host, "nodes": nodes, "text": text}))

    # -- itself ---------------------------------------------------------------------------------------

    def _send(self, kind, body):
        self._up.send(kind, self._node, body)

    def _remember(self, folder):
        self._folders.append(folder)
        self._note(folder)

    def _on_up_end(self, text):
        self._finished = text

    def _on_sigterm(self, _number, _frame):
        self._finished = "SIGTERM"

    def _on_wakeup(self):
        try:
            while self._wake_read.recv(4096):
                pass
        except BlockingIOError:
            pass
        self._reap()

    def _reap(self):
        """Collects ranks, agents' commands, and orphans of ranks, whose parent we have become."""
        while True:
            try:
                info = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return
            if info is None:
                return
            if not (self._ranks and self._ranks.collect(info.si_pid)) and not any(
                    b.reap(info.si_pid) for b in self._branches):
                os.waitpid(info.si_pid, 0)


class Stage:
    """Staged files: an archive that comes in pieces, unpacked into a folder of this job."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="ibvrun-stage-")
        self._archive = open(os.path.join(self.folder, ".archive"), "w+b")  # closed by finish

    def add(self, piece):
        self._archive.write(piece)

    def finish(self):
        """The folder, with the files in it."""
        if self._archive:
            self._archive.seek(0)
            with tarfile.open(fileobj=self._archive, mode="r:") as archive:
                archive.extraction_filter = lambda member, path: member  # it is ours: modes as they are
                archive.extractall(self.folder)
            self._archive.close()
            os.unlink(self._archive.name)
            self._archive = None
        return self.folder


def _take_connection():
    """The agent's input and output, moved away from where anything could print."""
    up = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(2, 1)
    os.close(null)
    return up


def main(blobs, magic):
    note = keeper.split()
    Agent(bootstrap.message(blobs, magic), note).run()
    os._exit(0)
