# SPDX-License-Identifier: MIT
"""What this project wants to reach, held against one comparison."""
from .results import What
from .tables import C_PEERS, IBVX, RING, absurd, best, java, latency_of, ratio, size_text

NATIVES, XXDEV, MPI, NIODEV = java("natives", "ibvdev"), java("xxdev", "ibvdev"), java("mpi", "ibvdev"), java("mpi", "niodev")
OPENMPI = (("openmpi", "c", "default"),)
RATE = What("rate", 8, 64, 2)
SMALL = latency_of(8)
SIZES = tuple(latency_of(1 << shift) for shift in range(10, 25))
STREAMS = tuple(What("bandwidth", size << 10, 16, 2) for size in (8, 64, 512))


def _limit(near, far=None):
    return {"near": near, "far": near if far is None else far}


# what, ours, theirs, What, highest ratio of times for each state
LINES = [
    ("ibvx C, 8 B / best C peer", IBVX, C_PEERS, SMALL, _limit(0.75, 0.60)),
    ("ibvx C, 8 B / bare ring", IBVX, (RING,), SMALL, _limit(1.4)),
    ("Java xxdev byte[], 8 B / best C peer", XXDEV, C_PEERS, SMALL, _limit(1.0, 0.85)),
    ("Java mpi, 8 B / niodev", MPI, (NIODEV,), SMALL, _limit(0.04)),
    *[("ibvx C, %s / best C peer" % size_text(what.bytes), IBVX, C_PEERS, what, _limit(1.0)) for what in SIZES],
    *[("Java xxdev, %s / ibvx C" % size_text(what.bytes), XXDEV, (IBVX,), what, _limit(1.05)) for what in SIZES[2:]],
    ("ibvx C, time of a message, 8 B, window 64 / best C peer", IBVX, C_PEERS, RATE, _limit(1 / 1.15)),
    ("Java natives, time of a message, 8 B, window 64 / best C peer", NATIVES, C_PEERS, RATE, _limit(1 / 0.8)),
    ("Java xxdev, time of a message, 8 B, window 64 / best C peer", XXDEV, C_PEERS, RATE, _limit(1 / 0.5)),
    *[("ibvx C, windowed %s / best C peer" % size_text(what.bytes), IBVX, C_PEERS, what, _limit(1.0)) for what in STREAMS],
]
for _ranks in (4, 8, 16):
    for _op, _bytes in (("barrier", 0), ("allreduce", 8)):
        for _title, _key in (("ibvx C", IBVX), ("Java mpi", MPI)):
            LINES.append(("%s, %s of %d ranks / Open MPI C that yields" % (_title, _op, _ranks), _key, OPENMPI,
                          What(_op, _bytes, 1, _ranks), _limit(1.0)))


def _verdict(value, limit, doubt):
    return ("met" if value <= limit else "missed") + (", but: " + doubt if doubt else "")


def _depth(results, state):
    for op in ("posted", "unexpected"):
        for title, key in (("ibvx C", IBVX), ("Java mpi", MPI)):
            one, many = (results.cell(key, What(op, 8, depth, 2), state) for depth in (1, 10000))
            if one and many:
                value, _ = ratio(many, one)
                yield [title + ", 10,000 %s / 1" % op, state, "%.2f" % value, "2.00",
                       _verdict(value, 2, one.doubtful() or many.doubtful())]


def _switch(results, state):
    """The step where the announcement begins to precede the message: by default above 128 KB."""
    below, above = latency_of(128 << 10), latency_of((128 << 10) + 8)
    for title, key in (("ibvx C", IBVX), ("Java natives", NATIVES)):
        small, large = results.cell(key, below, state), results.cell(key, above, state)
        if small and large:
            value, doubt = ratio(large, small)
            yield [title + ", 131,080 B / 131,072 B", state, "%.3f" % value, "1.050", _verdict(value, 1.05, doubt)]


def _first(results, title, key, peers, what, limits):
    for state in ("near", "far"):
        mine, other = results.cell(key, what, state), best(results, what, state, peers)
        if mine and other:
            value, doubt = ratio(mine, other)
            if absurd(key, peers, value):
                value, doubt = 1.0, "noise"
            if doubt == "the middle halves overlap" and not limits[state] * 0.95 < value < limits[state] * 1.05:
                doubt = None  # they do, but that does not change the verdict
            yield [title, state, "%.3f" % value, "%.3f" % limits[state], _verdict(value, limits[state], doubt)]


def block(results):
    """(title, header, rows): the target lines for which there are figures."""
    rows = [row for line in LINES for row in _first(results, *line)]
    rows += [row for state in ("near", "far") for part in (_switch, _depth) for row in part(results, state)]
    return "targets: ratios of times within one state", ["what", "state", "ratio", "at most", ""], rows
