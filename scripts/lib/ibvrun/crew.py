# SPDX-License-Identifier: MIT
"""Crews: the processes of a job as its supervisor sees them.  LocalCrew: all on this machine."""
import os
import selectors
import signal
import time

from . import output as out
from . import topology
from .errors import UserError


class Crew:
    """live: processes that have not ended, each with rank, name and where ("pid 7", "pid 7 on node b").

    Callbacks of descriptors that a crew registers may raise UserError (the job cannot be started) and
    output.ReaderGone.  Nothing here blocks but close.
    """

    live = ()
    tick_at = None  # time.monotonic() of the next call of tick, if one is wanted

    def attach(self, selector):
        raise NotImplementedError

    def start(self):
        """A generator that starts everything, and yields in between so that signals are handled."""
        raise NotImplementedError

    def tick(self):
        """See tick_at."""

    def send(self, number):
        """A signal to every live process and its children."""
        raise NotImplementedError

    def suspend(self):
        """This process is about to be stopped."""

    def resume(self):
        """It goes on."""

    def ended(self):
        """(process, Ending) of those that have ended since the last call."""
        raise NotImplementedError

    def faults(self):
        """(text, status) of what else ends the job, since the last call."""
        return []

    def missing(self):
        """For the text of a time limit: what the ranks wait for, or ""."""
        return ""

    def draining(self):
        """Is output still on its way when no process is left?"""
        raise NotImplementedError

    def waits_for_reader(self):
        """Is that because nobody takes what we print?"""
        return False

    def drop_output(self):
        """Nobody reads it any more."""
        raise NotImplementedError

    def close(self):
        """Kills what is left and waits until it is gone."""
        raise NotImplementedError


class LocalCrew(Crew):
    def __init__(self, opts, plan, spawner, output, guardian, port_server):
        self._opts = opts
        self._plan = plan
        self._spawner = spawner
        self._output = output
        self._guardian = guardian
        self._port_server = port_server
        self._pumps = set()
        self._selector = None
        self.live = []

    def attach(self, selector):
        self._selector = selector
        if self._port_server:
            self._port_server.attach(selector)

    def start(self):
        allowed = sorted(os.sched_getaffinity(0))
        count = len(self._plan.commands)
        for index, command in enumerate(self._plan.commands):
            cpus = topology.binding(self._opts.bind, index, count, not self._opts.executable, allowed)
            self._start_one(command, cpus)
            if self._opts.report_bindings:
                out.write_all(out.STDERR, b"ibvrun: %s: processors %s\n" % (
                    command.name.encode(), topology.shown(cpus or allowed).encode()))
            yield

    def _start_one(self, command, cpus):
        stdout, stderr, pumps, to_close = self._output.open_streams(command.rank, os.uname().nodename)
        try:
            self.live.append(self._spawner.start(command, out.stdin_of(command.rank), stdout, stderr, cpus))
        except UserError:
            for pump in pumps:
                pump.close()
            raise
        finally:
            for fd in to_close:
                os.close(fd)
        for pump in pumps:
            self._pumps.add(pump)
            self._selector.register(pump.fd, selectors.EVENT_READ, lambda p=pump: self._on_output(p))

    def _on_output(self, pump):
        if pump not in self._pumps:
            return  # closed by an event of the same batch
        fd = pump.fd
        if not pump.pump():
            self._selector.unregister(fd)
            self._pumps.discard(pump)

    def send(self, number):
        for process in self.live:
            process.send(number)

    def ended(self):
        endings = [(p, p.ending()) for p in self.live]
        endings = [(p, e) for p, e in endings if e is not None]
        for process, _ in endings:
            self.live.remove(process)
            self._guardian.ended(process.pid)
        return endings

    def missing(self):
        ranks = self._port_server.missing() if self._port_server else []
        if len(ranks) in (0, self._opts.np):
            return ""
        return "never asked for the others' ports: %s" % rank_list(ranks)

    def draining(self):
        return bool(self._pumps)

    def drop_output(self):
        for pump in self._pumps:
            self._selector.unregister(pump.fd)
            pump.close()
        self._pumps.clear()

    def close(self):
        """Only after an error of our own is anything left here."""
        self.send(signal.SIGKILL)
        while self.live:
            self.ended()
            time.sleep(0.01)
        self.drop_output()


def rank_list(numbers):
    shown = ", ".join(str(n) for n in numbers[:10]) + (", ..." if len(numbers) > 10 else "")
    return ("rank " if len(numbers) == 1 else "ranks ") + shown
