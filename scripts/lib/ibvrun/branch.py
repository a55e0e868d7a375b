# SPDX-License-Identifier: MIT
"""An agent one level below: the process that leads to it (ssh) and the link."""
import os
import signal
import subprocess
import sys
import time

from . import bootstrap
from .keeper import PR_SET_PDEATHSIG, prctl
from .spawner import Ending
from .wire import MAGIC, Kind, Link, pack

END_S = 5.0  # from QUIT to the end of the command


def nodes_of(spec):
    """Numbers of all nodes of a subtree; spec: {"node", "host", "here", "below": [spec, ...]}."""
    numbers = [spec["node"]]
    for below in spec["below"]:
        numbers += nodes_of(below)
    return numbers


class Branch:
    """boot: of bootstrap.message; setup: what every agent of the job gets: "agent" (words), "python", "silence_s".

    on_frame(kind, node, body) for all that comes up; on_lost(branch, text) once, unless it was asked to quit."""

    def __init__(self, selector, spec, setup, boot, on_frame, on_lost):
        self.spec = spec
        self.host = spec["host"]
        self.nodes = nodes_of(spec)
        self.answered = False
        self._on_lost = on_lost
        self._quitting = False
        self._on_frame = on_frame
        self.argv = (bootstrap.command(None, self.host, sys.executable) if spec["here"]
                     else bootstrap.command(setup["agent"], self.host, setup["python"]))
        to_agent, from_agent = os.pipe(), os.pipe()
        try:
            self._process = subprocess.Popen(self.argv, stdin=to_agent[0], stdout=from_agent[1], cwd="/",
                                             start_new_session=True, preexec_fn=_between_fork_and_exec)
        except OSError:
            for fd in to_agent + from_agent:
                os.close(fd)
            raise
        os.close(to_agent[0])
        os.close(from_agent[1])
        self.link = Link(selector, from_agent[0], to_agent[1], self._on_link_frame, self._on_link_end,
                         setup["silence_s"], MAGIC)
        self.link.send_raw(boot)
        self.link.send(Kind.SETUP, spec["node"], pack(dict(setup, spec=spec)))
        self.link.paused = True  # until it has answered: starting is limited by the command itself

    def _on_link_frame(self, kind, node, body):
        if kind == Kind.HELLO and not self.answered:
            self.answered = True
            self.link.paused = False
        self._on_frame(kind, node, body)

    def _on_link_end(self, text):
        if self._quitting:
            return
        noise = "" if self.answered else self.link.noise.decode("utf-8", "replace").strip()[-300:]
        ending = self._collect(1.0)
        if not self.answered:
            text = "its agent did not answer (%s %s)" % (self.argv[0], ending or "still runs")
            if noise:
                text += " but printed: " + noise
        elif ending:
            text += " (%s %s)" % (os.path.basename(self.argv[0]), ending)
        self._kill()
        self._on_lost(self, text)

    def quit(self):
        """Asks the agent to clean up and end; one that has not answered yet has nothing to clean up."""
        if not self._quitting:
            self._quitting = True
            self.link.send(Kind.QUIT, self.spec["node"])
            if not self.answered:
                self.close(0)

    def reap(self, pid):
        """A child has ended.  False if it is not this branch's command."""
        return pid == self._process.pid and self.ended()

    def ended(self):
        return self._collect(0) is not None

    def close(self, limit):
        """Waits for the command's end up to a moment of time.monotonic, then kills it."""
        self._quitting = True
        self.link.flush(max(0.0, limit - time.monotonic()))
        self.link.close()
        self._collect(limit - time.monotonic())
        self._kill()

    def _collect(self, limit_s):
        try:
            self._process.wait(max(0.0, limit_s))
        except subprocess.TimeoutExpired:
            return None
        code = self._process.returncode
        return Ending(code, None) if code >= 0 else Ending(None, -code)

    def _kill(self):
        if self._process.poll() is None:
            try:
                os.killpg(self._process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            self._process.wait()


def _between_fork_and_exec():
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
