# SPDX-License-Identifier: MIT
"""The server that MPJ Express's starter offers to niodev 0.44: collects every rank's ports and sends them to all.

A rank connects, sends writeUTF("Sending Info") and three big-endian ints (write port, read port, rank), and
waits for writeUTF("#Peer Information;ip@rport@wport@rank@debugport;...").  Each time all ranks have reported,
all are answered; so a program may call MPI.Init again after Finalize.  Never blocks: the job's event loop
drives it.
"""
import errno
import selectors
import socket
import struct

from .conf import LOOPBACK
from .errors import UserError

SENDING_INFO = b"Sending Info"
INTS = struct.Struct(">iii")
REQUEST_BYTES = 2 + len(SENDING_INFO) + INTS.size


class PortServer:
    def __init__(self, size):
        self._size = size
        self._partial = {}   # connection -> bytes so far
        self._reported = {}  # rank -> (connection, entry)
        self._selector = None
        try:
            self._listener = socket.create_server((LOOPBACK, 0), backlog=max(size, 128))
        except OSError as e:
            raise UserError("opening the port server for niodev at %s: %s" % (LOOPBACK, e.strerror)) from e
        self._listener.setblocking(False)
        self.port = self._listener.getsockname()[1]

    def attach(self, selector):
        self._selector = selector
        selector.register(self._listener, selectors.EVENT_READ, self._on_connection)

    def close(self):
        for connection in list(self._partial):
            self._drop(connection)
        for connection, _ in self._reported.values():
            connection.close()
        self._reported = {}
        self._listener.close()

    def missing(self):
        """Ranks that have not reported in the present round."""
        return [r for r in range(self._size) if r not in self._reported]

    def _on_connection(self):
        try:
            connection, _ = self._listener.accept()
        except OSError as e:
            if e.errno in (errno.EAGAIN, errno.ECONNABORTED, errno.EINTR):
                return
            raise
        connection.setblocking(False)
        self._partial[connection] = b""
        self._selector.register(connection, selectors.EVENT_READ, lambda: self._on_data(connection))

    def _on_data(self, connection):
        try:
            data = connection.recv(REQUEST_BYTES - len(self._partial[connection]))
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._drop(connection)
            return
        self._partial[connection] += data
        if len(self._partial[connection]) < REQUEST_BYTES:
            return
        request = self._partial[connection]
        write_port, read_port, rank = INTS.unpack(request[-INTS.size:])
        if (request[:2] != struct.pack(">H", len(SENDING_INFO)) or request[2:-INTS.size] != SENDING_INFO
                or not 0 <= rank < self._size or rank in self._reported):
            self._drop(connection)  # not a rank of this job
            return
        self._selector.unregister(connection)
        del self._partial[connection]
        address = connection.getpeername()[0]
        self._reported[rank] = (connection, "%s@%d@%d@%d@0" % (address, read_port, write_port, rank))
        if len(self._reported) == self._size:
            self._answer()

    def _drop(self, connection):
        self._selector.unregister(connection)
        del self._partial[connection]
        connection.close()

    def _answer(self):
        text = "#Peer Information" + "".join(";" + self._reported[r][1] for r in sorted(self._reported))
        data = text.encode("ascii")
        answer = struct.pack(">H", len(data)) + data
        for connection, _ in self._reported.values():
            try:
                connection.setblocking(True)
                connection.settimeout(5)
                connection.sendall(answer)
            except OSError:
                pass  # that rank has died; its end is noticed elsewhere
            connection.close()
        self._reported = {}
