# SPDX-License-Identifier: MIT
"""What this project wants to reach, held against one comparison."""
from .results import What
from .tables import C_PEERS, IBVX, RING, best, java, latency_of, ratio, size_text

NATIVES, MPI, NIODEV = java("natives", "ibvdev"), java("mpi", "ibvdev"), java("mpi", "niodev")
OPENMPI = (("openmpi", "c", "default"),)
RATE = What("rate", 8, 64, 2)
SMALL, K64, M1, M16 = (latency_of(n) for n in (8, 64 << 10, 1 << 20, 16 << 20))


def _limit(near, far=None):
    return {"near": near, "far": near if far is None else far}


def _large(ours, title):
    for what, limit in ((K64, 0.85), (M1, 0.9), (M16, 0.95)):
        yield "%s, %s / best C peer" % (title, size_text(what.bytes)), ours, C_PEERS, what, _limit(limit)
    yield "%s, 1M / Open MPI as installed" % title, ours, OPENMPI, M1, _limit(0.3)


# what, ours, theirs, What, highest ratio of times for each state
LINES = [
    ("ibvx C, 8 B / best C peer", IBVX, C_PEERS, SMALL, _limit(0.6, 0.75)),
    ("ibvx C, 8 B / bare ring", IBVX, (RING,), SMALL, _limit(1.4)),
    ("Java natives, direct buffer, 8 B / best C peer", NATIVES, C_PEERS, SMALL, _limit(0.8, 0.85)),
    ("Java xxdev, 8 B / best C peer", java("xxdev", "ibvdev"), C_PEERS, SMALL, _limit(0.8, 0.85)),
    ("Java mpi, 8 B / niodev", MPI, (NIODEV,), SMALL, _limit(0.04)),
    *_large(IBVX, "ibvx C"),
    *_large(NATIVES, "Java natives"),
    *_large(MPI, "Java mpi"),
    ("ibvx C, time of a message, 8 B, window 64 / best C peer", IBVX, C_PEERS, RATE, _limit(1 / 1.3)),
    ("Java natives, time of a message, 8 B, window 64 / best C peer", NATIVES, C_PEERS, RATE, _limit(1.0)),
]
for _ranks in (4, 8):
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
            if doubt == "the middle halves overlap" and not limits[state] * 0.95 < value < limits[state] * 1.05:
                doubt = None  # they do, but that does not change the verdict
            yield [title, state, "%.3f" % value, "%.3f" % limits[state], _verdict(value, limits[state], doubt)]


def block(results):
    """(title, header, rows): the target lines for which there are figures."""
    rows = [row for line in LINES for row in _first(results, *line)]
    rows += [row for state in ("near", "far") for part in (_switch, _depth) for row in part(results, state)]
    return "targets: ratios of times within one state", ["what", "state", "ratio", "at most", ""], rows
