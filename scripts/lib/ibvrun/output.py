# SPDX-License-Identifier: MIT
"""What the ranks print: handed through, prefixed by rank, or into a file each."""
import errno
import os
import select
import subprocess

from .errors import UserError

READ_BYTES = 65536
LONGEST_LINE_BYTES = 1 << 20  # a longer one is broken here, so that memory stays bounded
STDOUT, STDERR = 1, 2
SUFFIX = {STDOUT: "out", STDERR: "err"}


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


class LinePump:
    """Reads one stream of one rank and writes whole lines with the rank in front."""

    def __init__(self, rank_text, fd, target_fd, copy_fd):
        self.fd = fd
        self._prefix = ("[%s] " % rank_text).encode()
        self._target_fd = target_fd
        self._copy_fd = copy_fd
        self._rest = b""
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
        lines = (self._rest + data).split(b"\n")
        self._rest = lines.pop()
        if self._rest and (not data or len(self._rest) > LONGEST_LINE_BYTES):
            lines.append(self._rest)
            self._rest = b""
        if lines:
            write_all(self._target_fd, b"".join(self._prefix + line + b"\n" for line in lines))
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

    def __init__(self, prefix, folder, size):
        self._prefix = prefix
        self._folder = os.path.abspath(folder) if folder else None
        self._width = len(str(size - 1))
        if self._folder:
            try:
                os.makedirs(self._folder, exist_ok=True)
            except OSError as e:
                raise UserError("--output %s: %s" % (folder, e.strerror)) from e

    def file_of(self, rank, stream):
        return os.path.join(self._folder, "rank.%d.%s" % (rank, SUFFIX[stream])) if self._folder else None

    def open_streams(self, rank):
        """(stdout, stderr) as Popen takes them, the pumps to run, and descriptors to close after the start."""
        given, pumps, to_close = [], [], []
        for stream in (STDOUT, STDERR):
            path = self.file_of(rank, stream)
            file_fd = None
            if path:
                try:
                    file_fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666)
                except OSError as e:
                    raise UserError("--output: %s: %s" % (path, e.strerror)) from e
            if self._prefix:
                read_end, write_end = os.pipe()
                pumps.append(LinePump("%*d" % (self._width, rank), read_end, stream, file_fd))
                given.append(write_end)
                to_close.append(write_end)
            elif path:
                given.append(file_fd)
                to_close.append(file_fd)
            else:
                given.append(None)
        return given[0], given[1], pumps, to_close


def stdin_of(rank):
    """Rank 0 reads ours; the others read nothing."""
    if rank:
        return subprocess.DEVNULL
    try:
        os.fstat(0)
    except OSError:
        return subprocess.DEVNULL  # we were started without one
    return None
