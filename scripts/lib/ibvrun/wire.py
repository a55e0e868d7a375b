# SPDX-License-Identifier: MIT
"""Frames between ibvrun and its agents, and the link that carries them.

A frame is a kind (1 byte), the number of a node (4 bytes: the sender of a frame that goes up, the receiver of one
that goes down) and a body (4 bytes of length, then the bytes).  Numbers are big-endian.  A link is two descriptors,
the input and the output of an agent; it never blocks.  What is queued on it is bounded by those that send: output by
credit, staged files by acknowledgements, the rest by the number of ranks.

Both ends send a PING in every second in which they have nothing else to send.  An end counts its own seconds in
which nothing came, so that a process that was stopped itself does not take the others for dead.
"""
import collections
import enum
import json
import os
import selectors
import struct
import zlib

HEADER = struct.Struct(">BII")
RANK_STREAM = struct.Struct(">IB")  # in front of the data of OUTPUT
MAX_BODY_BYTES = 1 << 28
READ_BYTES = 1 << 18
MAGIC = b"\x00ibvrun-agent-1\x00"  # what comes before it on an agent's output is of login scripts
MAX_NOISE_BYTES = 1 << 16
TICK_S = 1.0
ALL = 0xffffffff


class Kind(enum.IntEnum):
    PING = 0
    # down
    SETUP = 1      # packed: what the agent is and which agents it starts
    PLAN = 2       # packed: the ranks to start
    STAGE = 3      # a piece of the staged files; PLAN comes after the last
    SIGNAL = 4     # 1 byte: for every rank
    STDIN = 5      # for rank 0; empty: end of file
    CREDIT = 6     # 4 bytes: so much of your output has been written
    RELEASE = 7    # packed: the values of a PMI fence that all ranks have entered
    PAUSE = 8      # ibvrun is about to be stopped and will send no PING
    RESUME = 9
    QUIT = 10      # kill what is left, remove what is yours, end
    # up
    HELLO = 32     # packed: facts about the node
    STARTED = 33   # packed: [[rank, pid], ...] and the bindings
    FAILED = 34    # packed: why the node cannot start its ranks
    OUTPUT = 35    # RANK_STREAM and data; no data: end of the stream
    EXIT = 36      # packed: rank, status, signal
    FENCE = 37     # packed: the values that the ranks of a subtree put
    ABORT = 38     # packed: rank, status, text
    LOST = 39      # packed: the nodes of a lost subtree, and why
    CONSUMED = 40  # 4 bytes: so much of STDIN has been read
    STAGED = 41    # 4 bytes: so much of STAGE has been stored


def pack(value):
    return zlib.compress(json.dumps(value).encode(), 1)


def unpack(body):
    return json.loads(zlib.decompress(body))


class Link:
    """on_frame(kind, node, body); on_end(text) once, when the other side has closed, is silent or talks nonsense."""

    def __init__(self, selector, read_fd, write_fd, on_frame, on_end, silence_s, magic=b""):
        self._selector = selector
        self._read_fd = read_fd
        self._write_fd = write_fd
        self._on_frame = on_frame
        self._on_end = on_end
        self.silence_s = silence_s       # 0: it may be silent for ever
        self._magic = magic          # still to come
        self._input = bytearray()
        self._queue = collections.deque()
        self._queued_bytes = 0
        self._writing = False
        self._heard = self._sent = True
        self._silent_s = 0
        self.paused = False
        os.set_blocking(read_fd, False)
        os.set_blocking(write_fd, False)
        selector.register(read_fd, selectors.EVENT_READ, self._on_readable)

    @property
    def open(self):
        return self._read_fd is not None

    @property
    def noise(self):
        """What came instead of the magic."""
        return bytes(self._input) if self._magic else b""

    @property
    def queued_bytes(self):
        return self._queued_bytes

    def send_raw(self, data):
        if self.open and data:
            self._queue.append(memoryview(data))
            self._queued_bytes += len(data)
            self._sent = True
            if not self._writing:
                self._on_writable()

    def send(self, kind, node=0, body=b""):
        self.send_raw(HEADER.pack(kind, node, len(body)) + body)

    def tick(self):
        """To be called every TICK_S."""
        if not self.open:
            return
        if not self._sent:
            self.send(Kind.PING)
        self._sent = False
        self._silent_s = 0 if self._heard or self.paused else self._silent_s + TICK_S
        self._heard = False
        if self.silence_s and self._silent_s >= self.silence_s:
            self._end("it has been silent for %g s" % self._silent_s)

    def close(self):
        """Without on_end.  The descriptors are closed, queued frames are lost."""
        if not self.open:
            return
        self._selector.unregister(self._read_fd)
        if self._writing:
            self._selector.unregister(self._write_fd)
        for fd in {self._read_fd, self._write_fd}:
            os.close(fd)
        self._read_fd = self._write_fd = None
        self._queue.clear()
        self._queued_bytes = 0
        self._writing = False

    def flush(self, limit_s):
        """Blocks until the queue is on its way, or the time is over."""
        with selectors.PollSelector() as poll:
            if self.open:
                poll.register(self._write_fd, selectors.EVENT_WRITE)
            while self.open and self._queue and poll.select(limit_s):
                self._on_writable()

    def _end(self, text):
        if self.open:
            self.close()
            self._on_end(text)

    def _on_writable(self):
        try:
            while self._queue:
                piece = self._queue[0]
                done = os.write(self._write_fd, piece[:READ_BYTES])
                self._queued_bytes -= done
                if done < len(piece):
                    self._queue[0] = piece[done:]
                else:
                    self._queue.popleft()
        except BlockingIOError:
            pass
        except OSError:
            self._queue.clear()  # the end is also read, and reported there
            self._queued_bytes = 0
        if bool(self._queue) != self._writing:
            self._writing = bool(self._queue)
            if self._writing:
                self._selector.register(self._write_fd, selectors.EVENT_WRITE, self._on_writable)
            else:
                self._selector.unregister(self._write_fd)

    def _on_readable(self):
        if not self.open:
            return  # closed by an event of the same batch
        try:
            data = os.read(self._read_fd, READ_BYTES)
        except BlockingIOError:
            return
        except OSError as e:
            self._end(os.strerror(e.errno))
            return
        if not data:
            self._end("its connection was closed")
            return
        self._heard = True
        self._input += data
        if self._magic and not self._skip_noise():
            return
        self._parse()

    def _skip_noise(self):
        at = self._input.find(self._magic)
        if at < 0:
            if len(self._input) > MAX_NOISE_BYTES:
                self._end("it printed %d bytes before its agent answered" % len(self._input))
            return False
        del self._input[:at + len(self._magic)]
        self._magic = b""
        return True

    def _parse(self):
        at = 0
        try:
            while self.open and len(self._input) - at >= HEADER.size:
                kind, node, size = HEADER.unpack_from(self._input, at)
                if size > MAX_BODY_BYTES:
                    self._end("it sent a frame of %d bytes" % size)
                    return
                if len(self._input) - at - HEADER.size < size:
                    return
                body = bytes(self._input[at + HEADER.size:at + HEADER.size + size])
                at += HEADER.size + size
                if kind != Kind.PING:
                    self._on_frame(kind, node, body)
        finally:
            del self._input[:at]
