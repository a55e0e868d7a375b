# SPDX-License-Identifier: MIT
"""What the ranks print: handed through, whole lines with a tag in front, or into a file each."""
import collections
import errno
import os
import select
import selectors
import stat
import subprocess
import time

from .errors import UserError

READ_BYTES = 65536
PIPE_PIECE_BYTES = 4096  # a pipe that is ready for writing takes this much without blocking (PIPE_BUF)
LONGEST_LINE_BYTES = 1 << 20  # a longer one is broken here, so that memory stays bounded
STDOUT, STDERR = 1, 2
SUFFIX = {STDOUT: "out", STDERR: "err"}
TAGS = ("rank", "host", "time")


class ReaderGone(Exception):
    """Nobody reads our standard output any more (a closed pipe)."""


def write_all(fd, data):
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(fd, view):]
        except BlockingIOError:
            select.select([], [fd], [])  # somebody made our descriptor non-blocking
        except BrokenPipeError as e:
            raise ReaderGone() from e


class Tag:
    """What stands before a line: "[3] ", "[12:30:01.250 node1 3] "."""

    def __init__(self, words, rank_text, host):
        self._format = " ".join(text for word, text in (("time", "%s"), ("host", host.replace("%", "%%")),
                                                        ("rank", rank_text)) if word in words)
        self._with_time = "time" in words
        self._fixed = None if self._with_time else ("[%s] " % self._format.replace("%%", "%")).encode()

    def __call__(self):
        if not self._with_time:
            return self._fixed
        now = time.time()
        clock = time.strftime("%H:%M:%S", time.localtime(now)) + ".%03d" % (now % 1 * 1000)
        return ("[%s] " % (self._format % clock)).encode()


class Lines:
    """Makes whole lines of pieces."""

    def __init__(self, tag):
        """tag(): what to put in front; None: nothing, and an unfinished line is not marked as one."""
        self._tag = tag
        self._rest = b""
        self._fed = False

    def idle(self):
        """To be called now and then: an unfinished line to which nothing was added since the last call, for a rank that
        asks a question.  With a tag lines stay whole."""
        text = b""
        if self._tag is None and not self._fed:
            text, self._rest = self._rest, b""
        self._fed = False
        return text

    def feed(self, data):
        """The lines that are complete with this piece; an empty piece is the end."""
        lines = (self._rest + data).split(b"\n")
        self._rest = lines.pop()
        self._fed = True
        text = b""
        if self._tag is None:
            text = b"".join(line + b"\n" for line in lines)
            if self._rest and (not data or len(self._rest) > LONGEST_LINE_BYTES):
                text, self._rest = text + self._rest, b""
            return text
        if self._rest and (not data or len(self._rest) > LONGEST_LINE_BYTES):
            lines.append(self._rest)
            self._rest = b""
        if lines:
            tag = self._tag()
            text = b"".join(tag + line + b"\n" for line in lines)
        return text


class LinePump:
    """Reads one stream of one rank of this machine and writes whole lines with a tag in front."""

    def __init__(self, tag, fd, target_fd, copy_fd):
        self.fd = fd
        self._lines = Lines(tag)
        self._target_fd = target_fd
        self._copy_fd = copy_fd
        os.set_blocking(fd, False)

    def pump(self):
        """Moves what is there.  False at the end of the stream, which is closed then."""
        try:
            data = os.read(self.fd, READ_BYTES)
        except BlockingIOError:
            return True
        except OSError as e:
            if e.errno != errno.EIO:
                raise
            data = b""
        if self._copy_fd is not None and data:
            write_all(self._copy_fd, data)
        text = self._lines.feed(data)
        if text:
            write_all(self._target_fd, text)
        if not data:
            self.close()
        return bool(data)

    def close(self):
        for fd in (self.fd, self._copy_fd):
            if fd is not None:
                os.close(fd)
        self.fd = self._copy_fd = None


class Output:
    """The choice of the command line, for all ranks."""

    def __init__(self, tags, folder, size):
        """tags: words of TAGS; empty: lines as they are."""
        self._tags = tags
        self._folder = os.path.abspath(folder) if folder else None
        self._width = len(str(size - 1))
        if self._folder:
            try:
                os.makedirs(self._folder, exist_ok=True)
            except OSError as e:
                raise UserError("--output %s: %s" % (folder, e.strerror)) from e

    @property
    def shown(self):
        """Do we print what the ranks print?"""
        return bool(self._tags) or not self._folder

    def tag(self, rank, host):
        """For Lines, or None."""
        return Tag(self._tags, "%*d" % (self._width, rank), host) if self._tags else None

    def file_of(self, rank, stream):
        return os.path.join(self._folder, "rank.%d.%s" % (rank, SUFFIX[stream])) if self._folder else None

    def open_file(self, rank, stream):
        """A descriptor of the file of this stream, or None."""
        path = self.file_of(rank, stream)
        if not path:
            return None
        try:
            return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666)
        except OSError as e:
            raise UserError("--output: %s: %s" % (path, e.strerror)) from e

    def open_streams(self, rank, host):
        """For a rank of this machine: (stdout, stderr) as Popen takes them, the pumps to run, and descriptors to
        close after the start."""
        given, pumps, to_close = [], [], []
        for stream in (STDOUT, STDERR):
            file_fd = self.open_file(rank, stream)
            if self._tags:
                read_end, write_end = os.pipe()
                pumps.append(LinePump(self.tag(rank, host), read_end, stream, file_fd))
                given.append(write_end)
                to_close.append(write_end)
            elif file_fd is not None:
                given.append(file_fd)
                to_close.append(file_fd)
            else:
                given.append(None)
        return given[0], given[1], pumps, to_close


class Sink:
    """Writes to our standard output and error without ever waiting for those that read them: a node's agent has to
    be answered also while somebody looks at a page of a pager."""

    def __init__(self, selector):
        self._selector = selector
        self._queues = {}  # empty once nobody reads
        self._sizes = {}
        for fd in (STDOUT, STDERR):
            self._queues[fd] = collections.deque()
            self._sizes[fd] = READ_BYTES if stat.S_ISREG(os.fstat(fd).st_mode) else PIPE_PIECE_BYTES

    @property
    def empty(self):
        return not any(self._queues.values())

    def put(self, fd, data, written):
        """written() is called when the data has been handed over, or is dropped."""
        queue = self._queues.get(fd)
        if queue is None or not data:
            written()
            return
        queue.append([memoryview(data), written])
        if len(queue) == 1:
            self._selector.register(fd, selectors.EVENT_WRITE, lambda: self._on_writable(fd))

    def drop(self):
        """Nobody reads: what is queued, and what comes, is dropped."""
        for fd, queue in self._queues.items():
            if queue:
                self._selector.unregister(fd)
            for _, written in queue:
                written()
        self._queues = {}

    def _on_writable(self, fd):
        queue = self._queues.get(fd)
        if not queue:
            return
        piece = queue[0]
        try:
            piece[0] = piece[0][os.write(fd, piece[0][:self._sizes[fd]]):]
        except BlockingIOError:
            return
        except BrokenPipeError as e:
            raise ReaderGone() from e
        if not piece[0]:
            queue.popleft()
            if not queue:
                self._selector.unregister(fd)
            piece[1]()


def open_standard_streams():
    """Where one of the three is closed it becomes /dev/null, so that no descriptor of ours takes its number."""
    for fd in (0, STDOUT, STDERR):
        try:
            os.fstat(fd)
        except OSError:
            null = os.open(os.devnull, os.O_RDWR)  # gets the lowest free number
            if null != fd:
                os.dup2(null, fd)
                os.close(null)
            os.set_inheritable(fd, True)


def stdin_of(rank):
    """Rank 0 reads ours; the others read nothing."""
    return subprocess.DEVNULL if rank else None
