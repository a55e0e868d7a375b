# SPDX-License-Identifier: MIT
"""What the package mpi is to reach: each line of the table holds one of our times against that of a peer in the same state."""
from dataclasses import dataclass

from .results import FEW_SAMPLES, STATES, What
from .tables import DOUBT, java, latency_of, number, ratio, size_text

OURS, EXPRESS, XXDEV = java("mpi", "ours"), java("mpi", "ibvdev"), java("xxdev", "ibvdev")
OPENMPI, MPICH = ("openmpi", "c", "default"), ("mpich", "c", "default")
TITLES = {XXDEV: "xxdev", OPENMPI: "Open MPI", MPICH: "MPICH", EXPRESS: "MPJ Express"}
PARTS = ("p2p", "collectives", "objects", "npb")
RANKS = (2, 4, 8)
COLLECTIVES = ("barrier", "bcast", "allreduce", "allgather", "alltoall", "reduce")
SIZES = (8, 1 << 10, 64 << 10, 1 << 20)
DOUBLES = (64 << 10, 1 << 20, 16 << 20)
COLUMN = 8000  # bytes of a column of a matrix of 1000 x 1000
NODES = 1023
KERNELS = ("CG", "FT", "IS", "MG")
NPB_RANKS = (2, 4)
MET, MISSED, OPEN = "met", "missed", "-"


def of(key, message):
    """The key of a contestant whose messages are not bytes."""
    return (key[0], key[1], "%s %s" % (key[2], message))


def npb_what(kernel, ranks, share=False):
    return What("npb %s%s" % (kernel, " share" if share else ""), 0, 1, ranks)


@dataclass(frozen=True)
class Line:
    part: str
    text: str
    what: What
    ours: tuple
    peers: tuple  # keys, of which the best counts
    limit: float  # the highest ratio of ours to the peer; None: reported, no target
    below: bool = False  # the ratio has to be less than the limit


def _collectives():
    for ranks in RANKS:
        for op in COLLECTIVES:
            for size in (0,) if op == "barrier" else SIZES:
                text = "%s%s, %d ranks" % (op, " " + size_text(size) if size else "", ranks)
                what = What(op, size, 1, ranks)
                yield Line("collectives", text + " / best C", what, OURS, (OPENMPI, MPICH), 1.0 if ranks == 2 else 1.1)
                yield Line("collectives", text + " / MPJ Express", what, OURS, (EXPRESS,), 0.4)


def _npb():
    for kernel in KERNELS:
        for ranks in NPB_RANKS:
            text = "NPB %s, %d ranks" % (kernel, ranks)
            yield Line("npb", text + ", time", npb_what(kernel, ranks), OURS, (EXPRESS,), 1.0, below=True)
            yield Line("npb", text + ", communication", npb_what(kernel, ranks, True), OURS, (EXPRESS,), 2 / 3)


LINES = [
    Line("p2p", "Send/Recv byte[] 8 B / xxdev", latency_of(8), OURS, (XXDEV,), 1.15),
    Line("p2p", "Send/Recv byte[] 8 B / MPJ Express", latency_of(8), OURS, (EXPRESS,), None),
    *[Line("p2p", "Send/Recv double[] %s / xxdev" % size_text(size), latency_of(size), of(OURS, "doubles"), (XXDEV,), 1.05)
      for size in DOUBLES],
    Line("p2p", "column of 1000 x 1000 / MPJ Express", latency_of(COLUMN), of(OURS, "column"), (of(EXPRESS, "column"),), 0.5),
    *_collectives(),
    Line("objects", "tree of %d nodes / xxdev" % NODES, latency_of(NODES), of(OURS, "tree"), (of(XXDEV, "tree"),), 1.05),
    *_npb(),
]


def verdict(value, line, doubt):
    """What stands in the last column; a doubt that cannot change it is left out."""
    if line.limit is None:
        return OPEN
    if doubt == "the middle halves overlap" and not line.limit * 0.95 < value < line.limit * 1.05:
        doubt = None
    met = value < line.limit if line.below else value <= line.limit
    return (MET if met else MISSED) + (" %s (%s)" % (DOUBT, doubt) if doubt else "")


def best(results, line, state):
    """(key, Cell) of the fastest peer; one with few samples counts only where all have few."""
    cells = [(key, results.cell(key, line.what, state)) for key in line.peers]
    cells = [(key, cell) for key, cell in cells if cell]
    enough = [pair for pair in cells if len(pair[1]) >= FEW_SAMPLES] or cells
    return min(enough, key=lambda pair: pair[1].median) if enough else (None, None)


def absent(results, line, state):
    """Those peers that have figures, but not in this state: the best of the others need not be the best."""
    return [key for key in line.peers if not results.cell(key, line.what, state)
            and any(results.cell(key, line.what, other) for other in STATES)]


def compared(results, line):
    """(state, ours, key of the peer, peer): all states with enough samples of ours and all peers, else that with the most."""
    found = []
    for state in STATES:
        mine, (key, other) = results.cell(line.ours, line.what, state), best(results, line, state)
        if mine and other:
            found.append((state, mine, key, other))
    enough = [one for one in found if min(len(one[1]), len(one[3])) >= FEW_SAMPLES and not absent(results, line, one[0])]
    return enough or sorted(found, key=lambda one: (len(absent(results, line, one[0])), -min(len(one[1]), len(one[3]))))[:1]


def _title(key):
    return next((title for known, title in TITLES.items() if key[:2] == known[:2] and key[2].split()[0] == known[2]), key[2])


def block(results, lines=None):
    """(header, rows, texts of the lines without figures)."""
    rows, without = [], []
    for line in LINES if lines is None else lines:
        found = compared(results, line)
        if not found:
            without.append(line.text)
        for state, mine, key, other in found:
            value, doubt = ratio(mine, other)
            away = absent(results, line, state)
            if away:
                doubt = "no sample of %s" % " and ".join(_title(key) for key in away)
            unit = mine.unit
            rows.append([line.text + ("" if state == "any" else ", " + state), "%s %s" % (number(mine.median), unit),
                         "%s %s (%s)" % (number(other.median), unit, _title(key)), "%.2f" % value,
                         "-" if line.limit is None else "%s%.2f" % ("< " if line.below else "", line.limit), verdict(value, line, doubt)])
    return ["what", "ours", "peer", "ratio", "target", "met"], rows, without


def summary(rows):
    """One sentence."""
    verdicts = [row[-1] for row in rows if row[-1] != OPEN]
    met = sum(v.startswith(MET) for v in verdicts)
    doubtful = sum(DOUBT in v for v in verdicts)
    return "%d of %d met, %d missed; %d of these verdicts are in doubt (%s)." % (met, len(verdicts), len(verdicts) - met, doubtful, DOUBT)
