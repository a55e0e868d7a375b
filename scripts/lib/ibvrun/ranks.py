# SPDX-License-Identifier: MIT
"""The ranks of one node: started, fed, read, bound and collected by its agent."""
import os
import selectors
import shutil
import signal
import subprocess
import types

from . import archive, jvm, pmi, topology
from .errors import STATUS_NOT_RUN, UserError
from .spawner import Spawner
from .wire import RANK_STREAM, Kind, pack

STDOUT, STDERR = 1, 2
PIECE_BYTES = 1 << 15
CREDIT_BYTES = 1 << 18  # output that ibvrun has not written yet, of one node
STAGE_TOKEN = "%IBVRUN_STAGE%"  # in a command: the folder of staged files


class Feeder:
    """Hands ibvrun's standard input to rank 0 and reports what it has read."""

    def __init__(self, selector, send):
        self._selector = selector
        self._send = send
        self._read_end, self._fd = os.pipe()
        os.set_blocking(self._fd, False)
        self._queue = []
        self._writing = False

    def hand_over(self):
        """The rank's end, to be closed after the start."""
        return self._read_end

    def feed(self, data):
        if self._fd is None:
            self._send(Kind.CONSUMED, len(data).to_bytes(4, "big"))  # the rank reads no more
        else:
            self._queue.append(data)
            self._on_writable()

    def _on_writable(self):
        taken, ended = 0, False
        try:
            while self._queue and not ended:
                data = self._queue[0]
                ended = not data
                done = os.write(self._fd, data) if data else 0
                taken += done
                if done < len(data):
                    self._queue[0] = data[done:]
                else:
                    self._queue.pop(0)
        except BlockingIOError:
            pass
        except OSError:
            taken += sum(len(d) for d in self._queue)
            self._queue = []
            ended = True
        if taken:
            self._send(Kind.CONSUMED, taken.to_bytes(4, "big"))
        want = bool(self._queue) and not ended
        if want != self._writing:
            self._writing = want
            if want:
                self._selector.register(self._fd, selectors.EVENT_WRITE, self._on_writable)
            else:
                self._selector.unregister(self._fd)
        if ended:
            self.close()

    def close(self):
        if self._fd is not None:
            if self._writing:
                self._selector.unregister(self._fd)
            self._writing = False
            os.close(self._fd)
            self._fd = None


class Ranks:
    """send(kind, body) goes up to ibvrun.  branches: how many agents below take part in a fence."""

    def __init__(self, selector, send, branches):
        self._selector = selector
        self._send = send
        self._branches = branches
        self._processes = {}    # pid -> Process
        self._ports = []
        self._pumps = {}        # fd -> (rank, stream)
        self._credit = CREDIT_BYTES
        self._feeder = None
        self._space = None
        self.fence = None

    # -- starting -----------------------------------------------------------------------------------

    def start(self, plan, stage_folder):
        """Starts all, or reports why not and kills those that were."""
        self._space = pmi.Space(plan["kvs"], plan["size"], plan["mapping"])
        commands = [types.SimpleNamespace(**c) for c in plan["commands"]]
        self.fence = pmi.Fence(len(commands) + self._branches, lambda values: self._send(Kind.FENCE, pack(values)))
        spawner = Spawner(dict(pmi.without_outer(os.environ), **plan["environ"]))
        allowed = sorted(os.sched_getaffinity(0))
        started, bindings = [], []
        try:
            for index, command in enumerate(commands):
                _localize(command, stage_folder, len(allowed), len(commands))
                cpus = topology.binding(plan["bind"], index, len(commands), plan["wide"], allowed)
                process = self._start_one(spawner, command, index, len(commands), cpus)
                started.append([command.rank, process.pid])
                bindings.append([command.rank, topology.shown(cpus or allowed)])
        except UserError as e:
            self.signal(signal.SIGKILL)
            self._send(Kind.FAILED, pack([str(e), e.status]))
            return
        except OSError as e:
            self.signal(signal.SIGKILL)
            self._send(Kind.FAILED, pack(["starting %d ranks: %s; start fewer, or raise ulimit -n and -u"
                                          % (len(commands), e.strerror), STATUS_NOT_RUN]))
            return
        self._send(Kind.STARTED, pack({"pids": started, "bindings": bindings, "limits": jvm.shown(commands[0].argv)}))

    def _start_one(self, spawner, command, index, count, cpus):
        pipes = {STDOUT: os.pipe(), STDERR: os.pipe()}
        ours, theirs = pmi.open_port()
        stdin = subprocess.DEVNULL
        if command.rank == 0:
            self._feeder = Feeder(self._selector, self._send)
            stdin = self._feeder.hand_over()
        command.environ = dict(command.environ, **pmi.rank_environ(command.rank, self._space.size, index, count,
                                                                   theirs.fileno()))
        try:
            process = spawner.start(command, stdin, pipes[STDOUT][1], pipes[STDERR][1], cpus, (theirs.fileno(),))
        except UserError:
            ours.close()
            for read_end, _ in pipes.values():
                os.close(read_end)
            raise
        finally:
            theirs.close()
            for _, write_end in pipes.values():
                os.close(write_end)
            if stdin != subprocess.DEVNULL:
                os.close(stdin)
        self._processes[process.pid] = process
        self._ports.append(pmi.RankPort(self._selector, ours, command.rank, self._space, self.fence, self._on_abort))
        for stream, (read_end, _) in pipes.items():
            os.set_blocking(read_end, False)
            self._pumps[read_end] = (command.rank, stream)
            self._watch(read_end)
        return process

    # -- while they run -----------------------------------------------------------------------------

    def signal(self, number):
        for process in self._processes.values():
            process.send(number)

    def release(self, values):
        if self._space is not None:
            self._space.release(values)
            for port in self._ports:
                port.release()

    def feed(self, data):
        if self._feeder:
            self._feeder.feed(data)

    def credit(self, count):
        if self._credit <= 0 < self._credit + count:
            for fd in self._pumps:
                self._watch(fd)
        self._credit += count

    def collect(self, pid):
        """A child has ended.  False if it is none of ours."""
        process = self._processes.get(pid)
        ending = process and process.ending()
        if ending:
            del self._processes[pid]
            if process.rank == 0 and self._feeder:
                self._feeder.close()
            self._send(Kind.EXIT, pack([process.rank, ending.status, ending.signal]))
        return process is not None

    def _on_abort(self, rank, status, text):
        self._send(Kind.ABORT, pack([rank, status, text]))

    def _watch(self, fd):
        self._selector.register(fd, selectors.EVENT_READ, lambda: self._on_output(fd))

    def _on_output(self, fd):
        if self._credit <= 0 or fd not in self._pumps:
            return  # an event of the same batch took the rest
        rank, stream = self._pumps[fd]
        try:
            data = os.read(fd, PIECE_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        self._send(Kind.OUTPUT, RANK_STREAM.pack(rank, stream) + data)
        if not data:
            self._selector.unregister(fd)
            del self._pumps[fd]
            os.close(fd)
            return
        self._credit -= len(data)
        if self._credit <= 0:
            for other in self._pumps:
                self._selector.unregister(other)


def _localize(command, stage_folder, cpus, count):
    """What a command means on this node: staged files, processors, and a java that may be elsewhere."""
    command.argv = archive.without_missing(jvm.processors(command.argv, cpus, count))
    if stage_folder:
        command.argv = [w.replace(STAGE_TOKEN, stage_folder) for w in command.argv]
        command.environ = {n: v.replace(STAGE_TOKEN, stage_folder) for n, v in command.environ.items()}
        command.cwd = command.cwd and command.cwd.replace(STAGE_TOKEN, stage_folder)
        if command.cwd and not os.path.isdir(command.cwd):
            command.cwd = stage_folder
    program = command.argv[0]
    if os.path.basename(program) == "java" and not os.path.exists(program):
        command.argv[0] = shutil.which("java") or program
