# SPDX-License-Identifier: MIT
"""Supervises the processes of a job from the first start to the last end.

    running --- a rank failed ---------------------> grace ---> terminating ---> killing
       |------- SIGINT, SIGTERM, SIGHUP to us -----> grace (the signal has been passed on)
       |------- a node was lost -------------------> grace
       |------- time limit, nobody reads us -------> terminating
       `------- every rank ended                (each of them ends when no rank is left)

The first of these causes decides the exit status.  In grace the other ranks may end by their own
exception; then SIGTERM, then SIGKILL.  One thread; a signal handler only takes a note, which is acted on
between two events.
"""
import collections
import enum
import os
import selectors
import signal
import socket
import sys
import time

from . import output as out
from .crew import rank_list
from .errors import STATUS_TIMEOUT
from .spawner import signal_name

ENDING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
PASSED_SIGNALS = (signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
DUMP_S = 1.0   # what a JVM gets to print its threads
DRAIN_S = 2.0  # for output that is still in the pipes when no rank is left


class Phase(enum.Enum):
    RUNNING = 0
    GRACE = 1
    TERMINATING = 2
    KILLING = 3


def report(text):
    try:
        sys.stderr.write("ibvrun: " + text + "\n")
        sys.stderr.flush()
    except OSError:
        pass  # nobody listens; the job matters more


class Supervisor:
    def __init__(self, opts, crew, output):
        self._opts = opts
        self._crew = crew
        self._output = output
        self._selector = selectors.PollSelector()  # unlike epoll it takes a file as standard input
        self._phase = Phase.RUNNING
        self._deadline = None        # when the present phase ends
        self._time_limit = None
        self._status = None          # decided by the first cause
        self._caught = None          # the signal that asked us to end
        self._signals = collections.deque()  # arrived, not yet acted on
        self._old_handlers = {}
        self._wake_read, self._wake_write = socket.socketpair()

    def run(self):
        """Starts everything, stays until nothing is left, returns the exit status."""
        self._catch_signals()
        try:
            self._crew.attach(self._selector)
            for _ in self._crew.start():
                self._collect()
                self._handle_signals()
                if self._phase is not Phase.RUNNING:
                    break  # asked to end, or a rank has failed already
            if self._opts.timeout_s is not None:
                self._time_limit = time.monotonic() + self._opts.timeout_s
            self._collect()
            while self._crew.live:
                self._step()
            self._drain()
        finally:
            self._crew.close()
            self._release_signals()
            self._selector.close()
        return self._status or 0

    # -- the event loop ---------------------------------------------------------------------------

    def _step(self):
        self._dispatch([self._deadline, self._time_limit])
        self._collect()
        now = time.monotonic()
        if self._crew.live and self._time_limit is not None and now >= self._time_limit:
            self._time_limit = None
            self._on_time_limit()
        if self._crew.live and self._deadline is not None and now >= self._deadline:
            self._escalate()

    def _dispatch(self, limits):
        """Waits for events up to the first of the limits, and acts on them."""
        limits = [t for t in limits + [self._crew.tick_at] if t is not None]
        timeout = max(0.0, min(limits) - time.monotonic()) if limits else None
        for key, _ in self._selector.select(timeout):
            try:
                key.data()
            except out.ReaderGone:
                self._crew.drop_output()
                self._end("nobody reads the output any more; ending the job", 128 + signal.SIGPIPE, Phase.TERMINATING)
        self._handle_signals()
        if self._crew.tick_at is not None and time.monotonic() >= self._crew.tick_at:
            self._crew.tick()

    def _on_wakeup(self):
        try:
            while self._wake_read.recv(4096):
                pass
        except BlockingIOError:
            pass

    def _collect(self):
        """Takes note of every process that has ended, and of what else went wrong."""
        for text, status in self._crew.faults():
            self._end(text, status, Phase.GRACE)
        # Of several that ended at the same moment a killed one is the cause and the others' exceptions follow.
        for process, ending in sorted(self._crew.ended(), key=lambda pe: (pe[1].signal is None, pe[0].rank)):
            if ending.failed and self._status is None:
                self._on_first_failure(process, ending)
            elif self._opts.verbose:
                report("%s (%s) %s" % (process.name, process.where, ending))

    def _drain(self):
        limit = time.monotonic() + DRAIN_S
        while self._crew.draining() and time.monotonic() < limit and self._phase is not Phase.KILLING:
            self._dispatch([limit])
            if self._crew.waits_for_reader():
                limit = time.monotonic() + DRAIN_S

    # -- causes to end ----------------------------------------------------------------------------

    def _on_first_failure(self, process, ending):
        text = "%s (%s) %s" % (process.name, process.where, ending)
        if self._crew.live:
            text += "; ending the job"
        where = self._output.file_of(process.rank, out.STDERR)
        if where:
            text += "; its standard error is in " + where
        self._end(text, ending.exit_status, Phase.GRACE)

    def _on_time_limit(self):
        text = "the time limit of %g s is over and %s still running" % (
            self._opts.timeout_s, _names(self._crew.live))
        missing = self._crew.missing()
        if missing:
            text += "; " + missing
        if self._opts.dump and not self._opts.executable:
            self._crew.send(signal.SIGQUIT)
            self._end(text, STATUS_TIMEOUT, Phase.GRACE, DUMP_S)
        else:
            self._end(text, STATUS_TIMEOUT, Phase.TERMINATING)

    def _end(self, text, status, phase, grace_s=None):
        if self._status is None:
            self._status = status
            report(text)
        if phase.value > self._phase.value:
            self._enter(phase, grace_s)

    def _enter(self, phase, grace_s=None):
        self._phase = phase
        if phase is Phase.GRACE:
            self._deadline = time.monotonic() + (self._opts.grace_s if grace_s is None else grace_s)
        elif phase is Phase.TERMINATING:
            self._deadline = time.monotonic() + self._opts.kill_after_s
            self._crew.send(signal.SIGTERM)
            self._crew.send(signal.SIGCONT)  # or a stopped one would never see it
        else:
            self._deadline = None
            self._crew.send(signal.SIGKILL)

    def _escalate(self):
        waited = {Phase.GRACE: self._opts.grace_s, Phase.TERMINATING: self._opts.kill_after_s}[self._phase]
        following = Phase.TERMINATING if self._phase is Phase.GRACE else Phase.KILLING
        if self._status != STATUS_TIMEOUT or following is Phase.KILLING:
            report("%s did not end within %g s: sending %s" % (
                _names(self._crew.live, ""), waited, "SIGTERM" if following is Phase.TERMINATING else "SIGKILL"))
        self._enter(following)

    # -- signals ----------------------------------------------------------------------------------

    def _catch_signals(self):
        self._wake_read.setblocking(False)
        self._wake_write.setblocking(False)
        self._selector.register(self._wake_read, selectors.EVENT_READ, self._on_wakeup)

        def take_note(number, _frame):
            self._signals.append(number)

        for number in (signal.SIGCHLD, signal.SIGTSTP) + ENDING_SIGNALS + PASSED_SIGNALS:
            if number == signal.SIGCHLD or signal.getsignal(number) != signal.SIG_IGN:  # nohup stays nohup
                self._old_handlers[number] = signal.signal(number, take_note)
        signal.set_wakeup_fd(self._wake_write.fileno(), warn_on_full_buffer=False)

    def _release_signals(self):
        signal.set_wakeup_fd(-1)
        for number, handler in self._old_handlers.items():
            signal.signal(number, handler)
        self._wake_read.close()
        self._wake_write.close()

    def _handle_signals(self):
        while self._signals:
            number = self._signals.popleft()
            if number in ENDING_SIGNALS:
                self._on_ending_signal(number)
            elif number in PASSED_SIGNALS:
                self._crew.send(number)
            elif number == signal.SIGTSTP:
                self._on_stop()

    def _on_ending_signal(self, number):
        if self._caught is not None:
            if self._phase is not Phase.KILLING:
                self._enter(Phase.KILLING)
            return
        self._caught = number
        self._crew.send(number)
        self._end("%s received; ending the job" % signal_name(number), 128 + number, Phase.GRACE)

    def _on_stop(self):
        self._crew.send(signal.SIGSTOP)
        self._crew.suspend()
        os.kill(os.getpid(), signal.SIGSTOP)
        self._crew.resume()
        self._crew.send(signal.SIGCONT)  # we go on, so they do


def _names(processes, verb="is"):
    """"rank 3 is", "ranks 1, 3 are", "the JVM of all 4 ranks is"."""
    processes = list(processes)
    if len(processes) == 1:
        text = processes[0].name
    else:
        text = rank_list([p.rank for p in processes])
        verb = verb and "are"
    return (text + " " + verb).rstrip()
