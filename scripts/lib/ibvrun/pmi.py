# SPDX-License-Identifier: MIT
"""The PMI-1 wire, server side: ranks on one node exchange small values with all ranks of the job.

A rank finds its end of a socket pair in PMI_FD and writes lines of key=value words.  Values that ranks put become
visible to others at the next barrier.  An agent collects the barrier of its ranks and of the agents below it into
one FENCE frame, and answers its ranks when RELEASE brings the values of all.
"""
import selectors
import socket

MAX_LINE_BYTES = 1 << 16
MAX_KEY, MAX_VALUE, MAX_NAME = 64, 1024, 256
MAPPING_KEY = "PMI_process_mapping"


class Space:
    """The key-value space of a job, as one node sees it."""

    def __init__(self, name, size, mapping):
        self.name = name
        self.size = size
        self.values = {MAPPING_KEY: mapping}

    def release(self, values):
        self.values.update(values)


class Fence:
    """Waits for a barrier of all members (ranks here, agents below) and merges what they bring."""

    def __init__(self, members, complete):
        """complete(values) is called when the last one has entered."""
        self._members = members
        self._complete = complete
        self._entered = set()
        self._values = {}

    def enter(self, member, values):
        self._entered.add(member)
        self._values.update(values)
        if len(self._entered) == self._members:
            values, self._values, self._entered = self._values, {}, set()
            self._complete(values)


def process_mapping(node_of_rank):
    """MPICH's text for the number of the node of every rank: (first node, nodes, ranks on each) blocks."""
    runs = []  # [node, ranks in a row]
    for node in node_of_rank:
        if runs and runs[-1][0] == node:
            runs[-1][1] += 1
        else:
            runs.append([node, 1])
    blocks = []  # [first node, nodes, ranks on each]
    for node, ranks in runs:
        if blocks and blocks[-1][2] == ranks and blocks[-1][0] + blocks[-1][1] == node:
            blocks[-1][1] += 1
        else:
            blocks.append([node, 1, ranks])
    return "(vector,%s)" % ",".join("(%d,%d,%d)" % tuple(b) for b in blocks)


def open_port():
    """(our end, the rank's end)"""
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    return ours, theirs


class RankPort:
    """The wire of one rank.  fence.enter is called at its barrier, on_abort(rank, status, text) if it aborts."""

    def __init__(self, selector, sock, rank, space, fence, on_abort):
        self._selector = selector
        self._socket = sock
        self._rank = rank
        self._space = space
        self._fence = fence
        self._on_abort = on_abort
        self._input = b""
        self._puts = {}
        self._in_barrier = False
        selector.register(sock, selectors.EVENT_READ, self._on_readable)

    def close(self):
        if self._socket is not None:
            self._selector.unregister(self._socket)
            self._socket.close()
            self._socket = None

    def release(self):
        if self._in_barrier:
            self._in_barrier = False
            self._puts = {}
            self._answer("barrier_out", "rc=0")

    def _on_readable(self):
        if self._socket is None:
            return
        try:
            data = self._socket.recv(MAX_LINE_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.close()
            return
        *lines, self._input = (self._input + data).split(b"\n")
        if len(self._input) > MAX_LINE_BYTES:
            self.close()  # this is not PMI
            return
        for line in lines:
            words = (w.partition("=") for w in line.decode("utf-8", "replace").split(" ") if "=" in w)
            fields = {key: value for key, _, value in words}
            if self._socket is not None and "cmd" in fields:
                self._on_command(fields["cmd"], fields)

    def _answer(self, command, text=""):
        if self._socket is None:
            return
        try:
            self._socket.send(("cmd=%s%s%s\n" % (command, " " if text else "", text)).encode())
        except OSError:
            self.close()  # it does not read, or has gone

    def _on_command(self, command, fields):
        handler = getattr(self, "_do_" + command, None)
        if handler:
            handler(fields)
        else:
            self._answer(command + "_result", "rc=-1 msg=not_supported")

    def _do_init(self, _fields):
        self._answer("response_to_init", "pmi_version=1 pmi_subversion=1 rc=0")

    def _do_get_maxes(self, _fields):
        self._answer("maxes", "kvsname_max=%d keylen_max=%d vallen_max=%d rc=0" % (MAX_NAME, MAX_KEY, MAX_VALUE))

    def _do_get_appnum(self, _fields):
        self._answer("appnum", "appnum=0 rc=0")

    def _do_get_universe_size(self, _fields):
        self._answer("universe_size", "size=%d rc=0" % self._space.size)

    def _do_get_my_kvsname(self, _fields):
        self._answer("my_kvsname", "kvsname=%s rc=0" % self._space.name)

    def _do_put(self, fields):
        key, value = fields.get("key", ""), fields.get("value", "")
        if fields.get("kvsname") != self._space.name:
            self._answer("put_result", "rc=-1 msg=no_such_kvs")
        elif not key or len(key) > MAX_KEY or len(value) > MAX_VALUE:
            self._answer("put_result", "rc=-1 msg=key_or_value_too_long")
        else:
            self._puts[key] = value
            self._answer("put_result", "rc=0 msg=success")

    def _do_get(self, fields):
        key = fields.get("key", "")
        value = self._puts.get(key, self._space.values.get(key))
        if fields.get("kvsname") != self._space.name:
            self._answer("get_result", "rc=-1 msg=no_such_kvs value=unknown")
        elif value is None:
            self._answer("get_result", "rc=-1 msg=key_%s_not_found value=unknown" % key)
        else:
            self._answer("get_result", "rc=0 msg=success value=%s" % value)

    def _do_barrier_in(self, _fields):
        self._in_barrier = True
        self._fence.enter(("rank", self._rank), self._puts)

    def _do_finalize(self, _fields):
        self._answer("finalize_ack", "rc=0")

    def _do_abort(self, fields):
        code = fields.get("exitcode", "")
        status = int(code) & 255 if code.lstrip("-").isdigit() else 1
        self._on_abort(self._rank, status or 1, fields.get("error_msg") or fields.get("message") or "")


def rank_environ(rank, size, local_rank, local_size, fd):
    return {"PMI_FD": str(fd), "PMI_RANK": str(rank), "PMI_SIZE": str(size), "MPI_LOCALRANKID": str(local_rank),
            "MPI_LOCALNRANKS": str(local_size)}


# What an outer launcher gave us describes its job, not ours.
OUTER_PREFIXES = ("PMI_", "PMI2_", "PMIX_", "SLURM_", "OMPI_COMM_WORLD_", "OMPI_UNIVERSE_", "PRTE_", "HYDI_", "HYDRA_",
                  "MPI_LOCAL", "PALS_", "FLUX_")


def without_outer(environ):
    return {name: value for name, value in environ.items() if not name.startswith(OUTER_PREFIXES)}
