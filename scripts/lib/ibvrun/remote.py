# SPDX-License-Identifier: MIT
"""RemoteCrew: the ranks of a job on several nodes, through a tree of agents.

    nothing --- every agent has answered ---> staging ---> planned (each node got its ranks)

ibvrun is the root of the tree and the only one that decides.  A node that is lost before its ranks run is an error of
the start; later it is a fault, and its ranks count as ended.
"""
import collections
import os
import selectors
import signal
import time
from dataclasses import asdict

from . import bootstrap, pmi
from . import output as out
from .branch import END_S, Branch
from .crew import Crew, rank_list
from .errors import STATUS_NODE_LOST, STATUS_NOT_RUN, UserError
from .hosts import is_here
from .output import Lines, Sink, write_all
from .spawner import Ending
from .wire import ALL, RANK_STREAM, TICK_S, Kind, pack, unpack

ANSWER_S = 60.0            # from the start to the last agent's answer
STDIN_CREDIT_BYTES = 1 << 16
STAGE_PIECE_BYTES = 1 << 18
STAGE_CREDIT_BYTES = 1 << 22


class RemoteProcess:
    """A rank on a node.  pid: there, once it is known."""

    def __init__(self, command, node):
        self.rank = command.rank
        self.name = command.name
        self.node = node
        self.pid = None

    @property
    def where(self):
        return "%snode %s" % ("" if self.pid is None else "pid %d on " % self.pid, self.node.name)


def tree(nodes, fan_out, here=lambda name: False):
    """Specs of the agents directly below: contiguous groups, whose first node leads the rest.  here(name): is the
    agent to be started without a command like ssh, by us on our own machine?"""
    share, more = divmod(len(nodes), fan_out) if len(nodes) > fan_out else (1, 0)
    specs, at = [], 0
    while at < len(nodes):
        size = share + (len(specs) < more)
        lead = nodes[at]
        specs.append({"node": lead.number, "host": lead.name, "here": here(lead.name),
                      "below": tree(nodes[at + 1:at + size], fan_out)})
        at += size
    return specs


class RemoteCrew(Crew):
    def __init__(self, opts, plan, nodes, environ, output, stage):
        """environ: what the ranks get of ours; stage: files to copy to the nodes (stage.Stage) or None."""
        self._opts = opts
        self._plan = plan
        self._nodes = nodes
        self._environ = environ
        self._output = output
        self._stage = stage
        self._selector = None
        self._sink = None
        self._branches = []
        self._waiting = set(n.number for n in nodes)  # for their answer
        self._planned = False
        self._answer_limit = None
        self._faults = []
        self._endings = []
        self._space = None
        self._fence = None
        self._lines = {}        # (rank, stream) -> Lines, until the end of the stream
        self._files = {}        # (rank, stream) -> descriptor
        self._stdin = None
        self._staged = collections.Counter()  # node -> bytes that it has stored
        self._stage_sent = 0
        self._quitting = False
        owner = {rank: node for node in nodes for rank in node.ranks}
        self._by_rank = {c.rank: RemoteProcess(c, owner[c.rank]) for c in plan.commands}
        self.live = []

    # -- starting -----------------------------------------------------------------------------------

    def attach(self, selector):
        self._selector = selector
        self._sink = Sink(selector)

    def start(self):
        self.live = list(self._by_rank.values())
        setup = {"agent": self._opts.agent, "python": self._opts.python, "silence_s": self._opts.heartbeat_s}
        boot = bootstrap.message(bootstrap.read_modules())
        specs = tree(self._nodes, self._opts.fan_out, lambda name: self._opts.agent_is_default and is_here(name))
        self._answer_limit = time.monotonic() + ANSWER_S
        self._fence = pmi.Fence(len(specs), self._on_fence)
        self.tick_at = time.monotonic() + TICK_S
        for spec in specs:
            try:
                branch = Branch(self._selector, spec, setup, boot, self._on_frame, self._on_branch_lost)
            except OSError as e:
                raise UserError("--agent %s: starting it for %s: %s" % (self._opts.agent[0], spec["host"], e.strerror),
                                STATUS_NOT_RUN) from e
            self._branches.append(branch)
            yield

    def _on_hello(self, node, facts):
        self._waiting.discard(node)
        if self._opts.verbose:
            write_all(out.STDERR, ("ibvrun: node %s: agent pid %d on %s, %d processors, python %s\n" % (
                self._nodes[node].name, facts["pid"], facts["host"], facts["cpus"], facts["python"])).encode())
        if not self._waiting and not self._quitting:
            self._send_stage()

    def _send_stage(self):
        """The next pieces of the staged files, then the plan."""
        if self._planned or self._quitting:
            return
        while self._stage and self._stage_sent - min(self._staged[n.number] for n in self._nodes) < STAGE_CREDIT_BYTES:
            piece = self._stage.read(STAGE_PIECE_BYTES)
            if not piece:
                self._stage = None
                break
            self._stage_sent += len(piece)
            self._broadcast(Kind.STAGE, piece)
        if not self._stage:
            self._send_plan()

    def _send_plan(self):
        self._planned = True
        commands = {c.rank: c for c in self._plan.commands}
        node_of_rank = [self._by_rank[r].node.number for r in sorted(commands)]
        self._space = pmi.Space("kvs_" + os.urandom(4).hex(), len(commands), pmi.process_mapping(node_of_rank))
        shared = {"kvs": self._space.name, "size": self._space.size,
                  "mapping": self._space.values[pmi.MAPPING_KEY], "environ": self._environ, "bind": self._opts.bind,
                  "wide": not self._opts.executable}
        for node in self._nodes:
            for rank in node.ranks:
                for stream in (out.STDOUT, out.STDERR):
                    self._lines[rank, stream] = Lines(self._output.tag(rank, node.name))
                    self._files[rank, stream] = self._output.open_file(rank, stream)
            self._route(node.number, Kind.PLAN, pack(dict(shared, commands=[asdict(commands[r]) for r in node.ranks])))
        self._stdin = StdinReader(self._selector, lambda data: self._route(0, Kind.STDIN, data))

    # -- frames -------------------------------------------------------------------------------------

    def _route(self, node, kind, body):
        for branch in self._branches:
            if node in branch.nodes:
                branch.link.send(kind, node, body)

    def _broadcast(self, kind, body=b""):
        for branch in self._branches:
            branch.link.send(kind, ALL, body)

    def _on_frame(self, kind, node, body):
        if kind == Kind.OUTPUT:
            self._on_output(node, *RANK_STREAM.unpack_from(body), body[RANK_STREAM.size:])
        elif kind == Kind.EXIT:
            rank, status, number = unpack(body)
            self._end_rank(self._by_rank[rank], Ending(status, number))
        elif kind == Kind.FENCE:
            self._fence.enter(node, unpack(body))
        elif kind == Kind.CONSUMED:
            if self._stdin:
                self._stdin.taken(int.from_bytes(body, "big"))
        elif kind == Kind.STAGED:
            self._staged[node] += int.from_bytes(body, "big")
            self._send_stage()
        elif kind == Kind.HELLO:
            self._on_hello(node, unpack(body))
        elif kind == Kind.STARTED:
            self._on_started(node, unpack(body))
        elif kind == Kind.FAILED:
            text, status = unpack(body)
            self._fail("node %s: %s" % (self._nodes[node].name, text), status)
        elif kind == Kind.ABORT:
            rank, status, text = unpack(body)
            self._faults.append(("rank %d (%s) aborted the job%s" % (rank, self._by_rank[rank].where,
                                                                     text and ": " + text), status))
        elif kind == Kind.LOST:
            lost = unpack(body)
            self._on_lost(lost["host"], lost["nodes"], lost["text"])

    def _on_started(self, node, report):
        for rank, pid in report["pids"]:
            self._by_rank[rank].pid = pid
        if self._opts.verbose and report["limits"]:
            write_all(out.STDERR, ("ibvrun: node %s: each JVM gets %s\n" % (
                self._nodes[node].name, report["limits"])).encode())
        if self._opts.report_bindings:
            for rank, cpus in report["bindings"]:
                write_all(out.STDERR, ("ibvrun: rank %d on node %s: processors %s\n" % (
                    rank, self._nodes[node].name, cpus)).encode())

    def _on_fence(self, values):
        self._broadcast(Kind.RELEASE, pack(values))

    def _on_output(self, node, rank, stream, data):
        key = (rank, stream)
        if key not in self._lines:
            return
        if self._files[key] is not None and data:
            write_all(self._files[key], data)
        text = self._lines[key].feed(data) if self._output.shown else b""
        if not data:
            self._close_stream(key)
        credit = len(data).to_bytes(4, "big")
        self._sink.put(stream, text, lambda: data and self._route(node, Kind.CREDIT, credit))

    def _close_stream(self, key):
        del self._lines[key]
        fd = self._files.pop(key)
        if fd is not None:
            os.close(fd)

    def _end_rank(self, process, ending):
        if process in self.live:
            self.live.remove(process)
            self._endings.append((process, ending))
            if process.rank == 0 and self._stdin:
                self._stdin.close()

    # -- what goes wrong ----------------------------------------------------------------------------

    def _fail(self, text, status=STATUS_NOT_RUN):
        """The job cannot be started."""
        if not self._quitting:
            raise UserError(text, status)

    def _on_branch_lost(self, branch, text):
        self._branches.remove(branch)
        self._on_lost(branch.host, branch.nodes, text)

    def _on_lost(self, host, nodes, text):
        if not self._planned:
            self._fail("node %s: %s; try: %s" % (host, text, self._by_hand(host)))
        names = [self._nodes[n].name for n in nodes[:8]] + (["..."] if len(nodes) > 8 else [])
        behind = "" if len(nodes) == 1 else " and with it %s" % ", ".join(names[1:])
        gone = [p for p in self.live if p.node.number in nodes]
        if gone:
            self._faults.append(("node %s%s is lost, with %s: %s; ending the job" % (
                host, behind, rank_list([p.rank for p in gone]), text), STATUS_NODE_LOST))
        for process in gone:
            self.live.remove(process)
        for key in [k for k in self._lines if self._by_rank[k[0]].node.number in nodes]:
            self._close_stream(key)

    def _by_hand(self, host):
        words = self._opts.agent or []
        if not words or is_here(host):
            return "%s -V" % self._opts.python
        argv = bootstrap.command(words, host, self._opts.python)
        return " ".join([w for w in argv if bootstrap.STUB not in w and w not in ("-I", "-S", "-c", self._opts.python)]
                        + [self._opts.python, "-V"])

    def tick(self):
        now = time.monotonic()
        self.tick_at = now + TICK_S
        for branch in list(self._branches):
            branch.link.tick()
        if self._stdin:
            self._stdin.taken(0)
        for (_, stream), lines in self._lines.items():
            self._sink.put(stream, lines.idle(), lambda: None)
        if self._waiting and not self._planned and now >= self._answer_limit:
            names = [self._nodes[n].name for n in sorted(self._waiting)]
            self._fail("no answer within %g s from %s; try: %s" % (
                ANSWER_S, ", ".join(names[:8]) + (", ..." if len(names) > 8 else ""), self._by_hand(names[0])))

    # -- the interface of a crew --------------------------------------------------------------------

    def send(self, number):
        if self._planned:
            self._broadcast(Kind.SIGNAL, bytes([number]))
        elif number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL):
            self.live = []  # no rank has been started, and none will be
            self._quitting = True

    def suspend(self):
        self._broadcast(Kind.PAUSE)
        for branch in self._branches:
            branch.link.flush(1.0)

    def resume(self):
        self._broadcast(Kind.RESUME)

    def ended(self):
        endings, self._endings = self._endings, []
        return endings

    def faults(self):
        faults, self._faults = self._faults, []
        return faults

    def missing(self):
        if not self._planned:
            return "no rank has been started: waiting for %s" % ", ".join(
                self._nodes[n].name for n in sorted(self._waiting)[:8])
        return ""

    def draining(self):
        return self._planned and (bool(self._lines) or not self._sink.empty)

    def waits_for_reader(self):
        return not self._sink.empty

    def drop_output(self):
        self._sink.drop()

    def close(self):
        """Every agent ends, and has cleaned its node, before this returns; or its link is cut and it does so alone."""
        self._quitting = True
        if self._stdin:
            self._stdin.close()
        for branch in self._branches:
            branch.quit()
        limit = time.monotonic() + END_S + 1
        while time.monotonic() < limit and not all(b.ended() for b in self._branches):
            for key, _ in self._selector.select(0.05):
                try:
                    key.data()
                except (UserError, out.ReaderGone):
                    self.drop_output()
        for branch in self._branches:
            branch.close(limit)
        for fd in self._files.values():
            if fd is not None:
                os.close(fd)
        self._files = {}


class StdinReader:
    """Our standard input, on its way to rank 0, at most STDIN_CREDIT_BYTES ahead of what it reads."""

    def __init__(self, selector, send):
        self._selector = selector
        self._send = send
        self._ahead = 0
        self._watching = False
        self._ended = False
        self._watch()

    def taken(self, count):
        self._ahead -= count
        self._watch()

    def close(self):
        self._ended = True
        self._watch()

    def _watch(self):
        want = not self._ended and self._ahead < STDIN_CREDIT_BYTES and not _in_background()
        if want != self._watching:
            self._watching = want
            if want:
                self._selector.register(0, selectors.EVENT_READ, self._on_readable)
            else:
                self._selector.unregister(0)

    def _on_readable(self):
        if not self._watching:
            return
        if _in_background():
            self._watch()  # until a later tick
            return
        try:
            data = os.read(0, STDIN_CREDIT_BYTES // 2)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        self._ahead += len(data)
        self._ended = not data
        self._send(data)
        self._watch()


def _in_background():
    """A background job that reads its terminal would be stopped."""
    try:
        return os.tcgetpgrp(0) != os.getpgrp()
    except OSError:
        return False  # not a terminal
