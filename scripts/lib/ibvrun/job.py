# SPDX-License-Identifier: MIT
"""Supervises the processes of a plan from the first start to the last end.

    running --- a rank failed ---------------------> grace ---> terminating ---> killing
       |------- SIGINT, SIGTERM, SIGHUP to us -----> grace (the signal has been passed on)
       |------- time limit, nobody reads us -------> terminating
       `------- every rank ended                (each of them ends when no rank is left)

The first of these causes decides the exit status.  In grace the other ranks may end by their own
exception; then SIGTERM, then SIGKILL.  One thread; signal handlers only send signals and set fields.
"""
import enum
import os
import selectors
import signal
import socket
import sys
import time

from . import output as out
from .errors import STATUS_TIMEOUT, UserError
from .spawner import signal_name

ENDING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
PASSED_SIGNALS = (signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
HANDLED_SIGNALS = ENDING_SIGNALS + PASSED_SIGNALS + (signal.SIGTSTP,)
DUMP_S = 1.0   # what a JVM gets to print its threads
DRAIN_S = 2.0  # for output that is still in the pipes when no rank is left


class Phase(enum.Enum):
    RUNNING = 0
    GRACE = 1
    TERMINATING = 2
    KILLING = 3


def say(text):
    try:
        sys.stderr.write("ibvrun: " + text + "\n")
        sys.stderr.flush()
    except OSError:
        pass  # nobody listens; the job matters more


class Supervisor:
    def __init__(self, opts, plan, spawner, output, guardian, port_server):
        self._opts = opts
        self._plan = plan
        self._spawner = spawner
        self._output = output
        self._guardian = guardian
        self._port_server = port_server
        self._selector = selectors.DefaultSelector()
        self._live = []
        self._pumps = set()
        self._phase = Phase.RUNNING
        self._deadline = None        # when the present phase ends
        self._status = None          # decided by the first cause
        self._caught = None          # the signal that told us to end
        self._old_handlers = {}
        self._wake_read, self._wake_write = socket.socketpair()

    def run(self):
        """Starts everything, stays until nothing is left, returns the exit status."""
        self._catch_signals()
        try:
            if self._port_server:
                self._port_server.attach(self._selector)
            self._start_all()
            if self._opts.timeout_s is not None:
                self._time_limit = time.monotonic() + self._opts.timeout_s
            while self._live:
                self._step()
            self._drain()
        finally:
            self._kill_all()
            self._release_signals()
            for pump in self._pumps:
                pump.close()
            self._selector.close()
        return self._status or 0

    _time_limit = None

    # -- starting ---------------------------------------------------------------------------------

    def _start_all(self):
        for command in self._plan.commands:
            if self._phase is not Phase.RUNNING:
                return  # told to end, or a rank has failed already
            stdout, stderr, pumps, to_close = self._output.open_streams(command.rank)
            # A process may run before start() returns: a signal handled then would pass it by.
            unblocked = signal.pthread_sigmask(signal.SIG_BLOCK, HANDLED_SIGNALS)
            try:
                process = self._spawner.start(command, out.stdin_of(command.rank), stdout, stderr)
                self._live.append(process)
            except UserError:
                for pump in pumps:
                    pump.close()
                raise
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, unblocked)
                for fd in to_close:
                    os.close(fd)
            for pump in pumps:
                self._pumps.add(pump)
                self._selector.register(pump.fd, selectors.EVENT_READ, lambda p=pump: self._on_output(p))
            self._collect()

    # -- the event loop ---------------------------------------------------------------------------

    def _step(self):
        now = time.monotonic()
        limits = [t for t in (self._deadline, self._time_limit) if t is not None]
        for key, _ in self._selector.select(max(0.0, min(limits) - now) if limits else None):
            key.data()
        self._collect()
        now = time.monotonic()
        if self._live and self._time_limit is not None and now >= self._time_limit:
            self._time_limit = None
            self._on_time_limit()
        if self._live and self._deadline is not None and now >= self._deadline:
            self._escalate()

    def _on_wakeup(self):
        try:
            while self._wake_read.recv(4096):
                pass
        except BlockingIOError:
            pass

    def _on_output(self, pump):
        if pump not in self._pumps:
            return  # closed by an event of the same batch
        fd = pump.fd
        try:
            if not pump.pump():
                self._selector.unregister(fd)
                self._pumps.discard(pump)
        except out.ReaderGone:
            for other in self._pumps:
                self._selector.unregister(other.fd)
                other.close()
            self._pumps.clear()
            self._end("nobody reads the output any more; ending the job", 128 + signal.SIGPIPE, Phase.TERMINATING)

    def _collect(self):
        """Takes note of every process that has ended."""
        endings = [(p, p.ending()) for p in self._live]
        endings = [(p, e) for p, e in endings if e is not None]
        for process, _ in endings:
            self._live.remove(process)
            self._guardian.ended(process.pid)
        # Of several that ended at the same moment a killed one is the cause and the others' exceptions follow.
        for process, ending in sorted(endings, key=lambda pe: (pe[1].signal is None, pe[0].rank)):
            if ending.failed and self._status is None:
                self._on_first_failure(process, ending)
            elif self._opts.verbose:
                say("%s (pid %d) %s" % (process.name, process.pid, ending))

    def _drain(self):
        limit = time.monotonic() + DRAIN_S
        while self._pumps and time.monotonic() < limit:
            for key, _ in self._selector.select(max(0.0, limit - time.monotonic())):
                key.data()

    # -- causes to end ----------------------------------------------------------------------------

    def _on_first_failure(self, process, ending):
        text = "%s (pid %d) %s" % (process.name, process.pid, ending)
        if self._live:
            text += "; ending the job"
        where = self._output.file_of(process.rank, out.STDERR)
        if where:
            text += "; its standard error is in " + where
        self._end(text, ending.exit_status, Phase.GRACE)

    def _on_time_limit(self):
        text = "the time limit of %g s is over and %s still running" % (
            self._opts.timeout_s, _names(self._live))
        if self._port_server and len(self._port_server.missing()) not in (0, self._opts.np):
            text += "; never asked for the others' ports: %s" % _ranks(self._port_server.missing())
        if self._opts.dump and not self._opts.executable:
            self._send(signal.SIGQUIT)
            self._end(text, STATUS_TIMEOUT, Phase.GRACE, DUMP_S)
        else:
            self._end(text, STATUS_TIMEOUT, Phase.TERMINATING)

    def _end(self, text, status, phase, grace_s=None):
        if self._status is None:
            self._status = status
            say(text)
        if phase.value > self._phase.value:
            self._enter(phase, grace_s)

    def _enter(self, phase, grace_s=None):
        self._phase = phase
        if phase is Phase.GRACE:
            self._deadline = time.monotonic() + (self._opts.grace_s if grace_s is None else grace_s)
        elif phase is Phase.TERMINATING:
            self._deadline = time.monotonic() + self._opts.kill_after_s
            self._send(signal.SIGTERM)
            self._send(signal.SIGCONT)  # or a stopped one would never see it
        else:
            self._deadline = None
            self._send(signal.SIGKILL)

    def _escalate(self):
        waited = {Phase.GRACE: self._opts.grace_s, Phase.TERMINATING: self._opts.kill_after_s}[self._phase]
        following = Phase.TERMINATING if self._phase is Phase.GRACE else Phase.KILLING
        if self._status != STATUS_TIMEOUT or following is Phase.KILLING:
            say("%s did not end within %g s: sending %s" % (
                _names(self._live, ""), waited, "SIGTERM" if following is Phase.TERMINATING else "SIGKILL"))
        self._enter(following)

    # -- signals ----------------------------------------------------------------------------------

    def _catch_signals(self):
        self._wake_read.setblocking(False)
        self._wake_write.setblocking(False)
        self._selector.register(self._wake_read, selectors.EVENT_READ, self._on_wakeup)
        handlers = {signal.SIGCHLD: lambda number, frame: None, signal.SIGTSTP: self._on_stop}
        handlers.update({n: self._on_ending_signal for n in ENDING_SIGNALS})
        handlers.update({n: self._on_passed_signal for n in PASSED_SIGNALS})
        for number, handler in handlers.items():
            if number == signal.SIGCHLD or signal.getsignal(number) != signal.SIG_IGN:  # nohup stays nohup
                self._old_handlers[number] = signal.signal(number, handler)
        signal.set_wakeup_fd(self._wake_write.fileno(), warn_on_full_buffer=False)

    def _release_signals(self):
        signal.set_wakeup_fd(-1)
        for number, handler in self._old_handlers.items():
            signal.signal(number, handler)
        self._wake_read.close()
        self._wake_write.close()

    def _on_ending_signal(self, number, _frame):
        if self._caught is not None:
            if self._phase is not Phase.KILLING:
                self._enter(Phase.KILLING)
            return
        self._caught = number
        self._send(number)
        self._end("%s received; ending the job" % signal_name(number), 128 + number, Phase.GRACE)

    def _on_passed_signal(self, number, _frame):
        self._send(number)

    def _on_stop(self, _number, _frame):
        self._send(signal.SIGSTOP)
        os.kill(os.getpid(), signal.SIGSTOP)
        self._send(signal.SIGCONT)  # we go on, so they do

    def _send(self, number):
        for process in list(self._live):
            process.send(number)

    def _kill_all(self):
        """Only after an error of our own is anything left here."""
        self._send(signal.SIGKILL)
        while self._live:
            self._collect()
            time.sleep(0.01)


def _ranks(numbers):
    shown = ", ".join(str(n) for n in numbers[:10]) + (", ..." if len(numbers) > 10 else "")
    return ("rank " if len(numbers) == 1 else "ranks ") + shown


def _names(processes, verb="is"):
    """"rank 3 is", "ranks 1, 3 are", "the JVM of all 4 ranks is"."""
    if len(processes) == 1:
        text = processes[0].name
    else:
        text = _ranks([p.rank for p in processes])
        verb = verb and "are"
    return (text + " " + verb).rstrip()
