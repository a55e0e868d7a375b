# SPDX-License-Identifier: MIT
"""Results as tables, aligned text or Markdown."""
from .results import What

RATE_MAX_BYTES = 1024  # smaller messages: how many, not how much
C_PEERS = (("openmpi", "c", "default"), ("openmpi", "c", "no CMA"), ("mpich", "c", "default"), ("ucx", "c", "default"),
           ("mpich", "c", "no CMA"), ("ucx", "c", "no CMA"))
IBVX = ("ibvx", "c", "ibvdev")
RING = ("floor", "c", "ring")
DOUBT = "~"
COLLECTIVES = ("barrier", "bcast", "reduce", "allreduce", "allgather", "alltoall", "pairs")
EXPLAIN = ("%s  means little: fewer than 3 samples, quartiles more than 25 %% of the median apart, or (of a ratio) two quartile "
           "ranges that overlap. More rounds (--rounds) on a quieter machine help." % DOUBT)


def java(level, device):
    return ("java", level, device)


# title, ours, those of which the best is taken
RATIOS = (
    ("ibvx C / best C peer", IBVX, C_PEERS),
    ("ibvx C / floor ring", IBVX, (RING,)),
    ("natives / best C peer", java("natives", "ibvdev"), C_PEERS),
    ("xxdev / ibvx C", java("xxdev", "ibvdev"), (IBVX,)),
    ("xxdev / best C peer", java("xxdev", "ibvdev"), C_PEERS),
    ("mpi ibvdev / best C peer", java("mpi", "ibvdev"), C_PEERS),
    ("xdev ibvdev / niodev", java("xdev", "ibvdev"), (java("xdev", "niodev"),)),
    ("mpi ibvdev / best of niodev, smpdev", java("mpi", "ibvdev"), (java("mpi", "niodev"), java("mpi", "smpdev"))),
)


def size_text(size):
    for shift, unit in ((20, "M"), (10, "K")):
        if size and size % (1 << shift) == 0:
            return "%d%s" % (size >> shift, unit)
    return str(size)


def number(value):
    """Three digits that count."""
    if abs(value) >= 100:
        return "%.0f" % value
    return "%.1f" % value if abs(value) >= 10 else "%.2f" % value if abs(value) >= 1 else "%.3f" % value


def aligned(header, rows):
    widths = [max(len(line[i]) for line in [header] + rows) for i in range(len(header))]
    return ["  ".join(cell.rjust(width) for cell, width in zip(line, widths)).rstrip() for line in [header] + rows]


def markdown(header, rows):
    lines = [header, ["---:"] * len(header)] + rows
    return ["| " + " | ".join(line) + " |" for line in lines]


def best(results, what, state, keys):
    """The Cell with the lowest median among those keys, or None."""
    cells = [c for c in (results.cell(key, what, state) for key in keys) if c]
    return min(cells, key=lambda cell: cell.median) if cells else None


def ratio(mine, other):
    """(ratio of medians, why it means little or None)."""
    (low, high), (other_low, other_high) = mine.quartiles(), other.quartiles()
    doubt = mine.doubtful() or other.doubtful()
    if not doubt and low <= other_high and other_low <= high:
        doubt = "the middle halves overlap"
    return mine.median / other.median if other.median else float("inf"), doubt


def absurd(ours, theirs, value):
    """Java cannot be faster than the C that it calls: below 1 such a ratio is noise."""
    return ours[0] == "java" and theirs == (IBVX,) and value < 1


def _ratio_text(results, what, state, ours, theirs):
    mine, other = results.cell(ours, what, state), best(results, what, state, theirs)
    if not mine or not other:
        return "-"
    value, doubt = ratio(mine, other)
    if absurd(ours, theirs, value):
        return "1.0" + DOUBT
    return "%.3f%s" % (value, DOUBT if doubt else "")


def _quantity(what, cell):
    if what.op not in ("bandwidth", "bibandwidth", "rate", "pairs"):
        return cell.median
    return 1 / cell.median if what.bytes <= RATE_MAX_BYTES else what.bytes / cell.median / 1e3


def _rows(results, shown, state, whats, label):
    rows = []
    for what in whats:
        cells = [results.cell(contestant.key, what, state) for contestant in shown]
        rows.append([label(what)] + ["-" if not cell else number(_quantity(what, cell)) + (DOUBT if cell.doubtful() else "")
                                     for cell in cells])
    return rows


def _where(state):
    return "" if state == "any" else ", state \"%s\"" % state


def _shown(results, contestants, whats, state):
    return [c for c in contestants if any(results.cell(c.key, w, state) for w in whats)]


def _ratios(results, title, whats, state, label):
    used = [r for r in RATIOS if any(_ratio_text(results, w, state, r[1], r[2]) != "-" for w in whats)]
    if used:
        yield ("%s: ratio of times, below 1 is faster%s" % (title, _where(state)), [""] + [r[0] for r in used],
               [[label(w)] + [_ratio_text(results, w, state, r[1], r[2]) for r in used] for w in whats])


def _by_size(results, contestants, state):
    def label(what):
        return size_text(what.bytes) + (", window %d" % what.param if what in small else "")

    latency = results.whats("latency")
    streams = [w for w in results.whats("bandwidth") if w.bytes > RATE_MAX_BYTES]
    small = [w for w in results.whats("bandwidth", "rate") if w.bytes <= RATE_MAX_BYTES]
    both = results.whats("bibandwidth")
    for title, whats in (("half round trip in us", latency), ("bandwidth in GB/s", streams),
                         ("bandwidth of both directions together in GB/s", both),
                         ("message rate in millions a second", small)):
        shown = _shown(results, contestants, whats, state)
        windowed = whats and whats is not latency and whats is not small
        more = ", window of %s" % "/".join(sorted({str(w.param) for w in whats})) if windowed else ""
        if shown:
            yield (title + more + _where(state), ["bytes"] + [c.title for c in shown],
                   _rows(results, shown, state, whats, label))
            yield from _ratios(results, title, whats, state, label)


def _by_param(results, contestants, state):
    for op, title in (("posted", "half round trip of 8 B in us, receives standing in the queue"),
                      ("unexpected", "half round trip of 8 B in us, messages standing in the queue"),
                      ("threads", "half round trip of 8 B in us as each of so many threads sees it")):
        whats = results.whats(op)
        shown = _shown(results, contestants, whats, state)
        if shown:
            yield (title + _where(state), [op] + [c.title for c in shown],
                   _rows(results, shown, state, whats, lambda what: str(what.param)))


def _overlap(results, contestants, state):
    whats = results.whats("exchange", "exposed")
    shown = _shown(results, contestants, whats, state)
    rows = _rows(results, shown, state, whats, lambda what: "%s %s" % (what.op, size_text(what.bytes)))
    for exchange in results.whats("exchange"):
        row = ["hidden " + size_text(exchange.bytes)]
        for contestant in shown:
            alone = results.cell(contestant.key, exchange, state)
            left = results.cell(contestant.key, exchange._replace(op="exposed"), state)
            row.append("-" if not alone or not left else "%.0f %%" % (100 * max(0, 1 - left.median / alone.median)))
        rows.append(row)
    if shown:
        yield ("an exchange in us, and what of it a computation of the same length leaves exposed" + _where(state),
               [""] + [c.title for c in shown], rows)


def _of_all(results, contestants, state):
    def label(what):
        return "%s%s" % (what.op, " " + size_text(what.bytes) if what.bytes else "")

    for ranks in sorted({w.ranks for w in results.whats(*COLLECTIVES)}):
        whats = [w for w in results.whats(*COLLECTIVES) if w.ranks == ranks]
        for title, chosen in (("collective operations of %d ranks in us" % ranks, [w for w in whats if w.op != "pairs"]),
                              ("messages of %d pairs together, millions a second" % (ranks // 2),
                               [w for w in whats if w.op == "pairs"])):
            shown = _shown(results, contestants, chosen, state)
            if shown:
                yield (title + _where(state), [""] + [c.title for c in shown],
                       _rows(results, shown, state, chosen, label))
                yield from _ratios(results, title, chosen, state, label)


def _waiting(results, contestants, state, processors):
    steps = results.whats("step")
    shown = _shown(results, contestants, steps, state)
    rows = []
    for what in steps:
        row = ["%d ranks" % what.ranks]
        for contestant in shown:
            cell = results.cell(contestant.key, what, state)
            ideal = what.param * max(1.0, what.ranks / processors)
            row.append("-" if not cell else "%.2f%s" % (cell.median / ideal, DOUBT if cell.doubtful() else ""))
        rows.append(row)
    if rows and shown:
        yield ("200 us of computation and a barrier on %d processors, time over that of the computation alone" % processors
               + _where(state), [""] + [c.title for c in shown], rows)
    for op, title in (("idle", "processor time of a rank that waits in a receive, ms a second"),
                      ("memory", "memory of a rank that has talked to all others, MB"),
                      ("job", "a job that does nothing, from start to end, ms")):
        whats = results.whats(op)
        shown = _shown(results, contestants, whats, state)
        scale = {"idle": 1e-3, "memory": 1 / 1024, "job": 1}[op]
        if shown:
            yield (title, ["ranks"] + [c.title for c in shown],
                   [[str(w.ranks)] + ["-" if not cell else number(cell.median * scale) for cell in
                                      (results.cell(c.key, w, state) for c in shown)] for w in whats])


def blocks(results, contestants, processors):
    """(title, header, rows) of every table."""
    for state in ("near", "far", "any"):
        for part in (_by_size, _by_param, _overlap, _of_all):
            yield from part(results, contestants, state)
        yield from _waiting(results, contestants, state, processors)


SUMMARY_BYTES = (8, 64 << 10, 1 << 20, 16 << 20)
SUMMARY = (("ibvx C", IBVX), ("Java natives", java("natives", "ibvdev")), ("Java xxdev", java("xxdev", "ibvdev")),
           ("mpi.* ibvdev", java("mpi", "ibvdev")), ("mpi.* niodev", java("mpi", "niodev")),
           ("mpi.* smpdev", java("mpi", "smpdev")), ("Open MPI C", C_PEERS[0]), ("Open MPI C, no CMA", C_PEERS[1]),
           ("MPICH C", C_PEERS[2]), ("MPICH C, no CMA", C_PEERS[4]), ("UCX C", C_PEERS[3]), ("UCX C, no CMA", C_PEERS[5]))


def summary(results):
    """(title, header, rows) of the table with the most important results, if there are any."""
    whats = [latency_of(n) for n in SUMMARY_BYTES]
    states = [s for s in ("near", "far") if s in results.states("latency")]
    shown = [(title, key) for title, key in SUMMARY if any(results.cell(key, w, s) for w in whats for s in states)]
    rows = []
    for what in whats:
        for state in states:
            cells = [results.cell(key, what, state) for _, key in shown]
            if any(cells):
                rows.append([size_text(what.bytes), state] + ["-" if not c else number(c.median) + (DOUBT if c.doubtful() else "")
                                                              for c in cells])
    if rows and len(shown) > 1:
        yield "half round trip in us", ["bytes", "state"] + [title for title, _ in shown], rows


def lines(tables, as_markdown):
    out = []
    for title, header, rows in tables:
        out += ["", ("**%s**" % title) if as_markdown else title, ""] + (markdown if as_markdown else aligned)(header, rows)
    return out + (["", EXPLAIN] if any(DOUBT in line for line in out) else [])


def demo(results, as_markdown):
    """ibvdev against niodev under MPJ Express; they differ by so much that the processors' state does not matter."""
    rows = []
    for what in results.whats("latency"):
        mine, other = (results.cell(java("mpi", device), what, "any") for device in ("ibvdev", "niodev"))
        if mine and other:
            mark = DOUBT if mine.doubtful() or other.doubtful() else ""
            rows.append([size_text(what.bytes), number(mine.median), number(other.median),
                         "%.1f%s" % (other.median / mine.median, mark)])
    text = ["", "MPJ Express, mpi.* with byte[] messages, 2 ranks: half round trip in us", ""]
    text += (markdown if as_markdown else aligned)(["bytes", "ibvdev", "niodev", "times faster"], rows)
    if any(DOUBT in row[3] for row in rows):
        text += ["", "%s  a wide spread: others use the processors too" % DOUBT]
    return text


def latency_of(size):
    return What("latency", size, 1, 2)
