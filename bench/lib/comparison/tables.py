# SPDX-License-Identifier: MIT
"""Results as aligned text or as Markdown."""

RATE_MAX_BYTES = 1024  # smaller messages: how many, not how much
C_PEERS = (("openmpi", "c", "default"), ("openmpi", "c", "no CMA"), ("mpich", "c", "default"))
IBVX = ("ibvx", "c", "ibvdev")
DOUBT = "~"


def java(level, device):
    return ("java", level, device)


# title, ours, those of which the best is taken
RATIOS = (
    ("ibvx C / best C peer", IBVX, C_PEERS),
    ("ibvx C / floor ring", IBVX, (("floor", "c", "ring"),)),
    ("natives / best C peer", java("natives", "ibvdev"), C_PEERS),
    ("xdev ibvdev / niodev", java("xdev", "ibvdev"), (java("xdev", "niodev"),)),
    ("mpi ibvdev / niodev", java("mpi", "ibvdev"), (java("mpi", "niodev"),)),
)


def size_text(size):
    for shift, unit in ((20, "M"), (10, "K")):
        if size and size % (1 << shift) == 0:
            return "%d%s" % (size >> shift, unit)
    return str(size)


def number(value):
    """Three digits that count."""
    if value >= 100:
        return "%.0f" % value
    return "%.1f" % value if value >= 10 else "%.2f" % value if value >= 1 else "%.3f" % value


def aligned(header, rows):
    widths = [max(len(line[i]) for line in [header] + rows) for i in range(len(header))]
    return ["  ".join(cell.rjust(width) for cell, width in zip(line, widths)) for line in [header] + rows]


def markdown(header, rows):
    lines = [header, ["---:"] * len(header)] + rows
    return ["| " + " | ".join(line) + " |" for line in lines]


def _quantity(op, size, cell):
    if op == "latency":
        return cell.median
    return 1 / cell.median if size <= RATE_MAX_BYTES else size / cell.median / 1e3


def _rows(results, contestants, op, state, sizes):
    rows = []
    for size in sizes:
        row = [size_text(size)]
        for contestant in contestants:
            cell = results.cell(contestant.key, op, size, state)
            row.append("-" if not cell else number(_quantity(op, size, cell)) + (DOUBT if cell.doubtful() else ""))
        rows.append(row)
    return rows


def _ratio(results, op, size, state, ours, theirs):
    """Ratio of times, below 1 is faster; marked where it says little."""
    mine = results.cell(ours, op, size, state)
    others = [c for c in (results.cell(key, op, size, state) for key in theirs) if c]
    if not mine or not others:
        return "-"
    best = min(others, key=lambda cell: cell.median)
    (low, high), (other_low, other_high) = mine.quartiles(), best.quartiles()
    unclear = low <= other_high and other_low <= high  # the middle halves overlap
    return "%.3f%s" % (mine.median / best.median, DOUBT if mine.doubtful() or best.doubtful() or unclear else "")


def _blocks(results, contestants, op, state):
    """(title, header, rows) of each table of one operation and state."""
    shown = [c for c in contestants if any(results.cell(c.key, op, s, state) for s in results.sizes(op))]
    sizes = results.sizes(op)
    where = "" if state == "any" else ", state \"%s\"" % state
    small = [s for s in sizes if s <= RATE_MAX_BYTES] if op == "bandwidth" else []
    large = [s for s in sizes if s not in small]
    header = ["bytes"] + [c.title for c in shown]
    if small:
        yield "message rate in millions a second" + where, header, _rows(results, shown, op, state, small)
    if large:
        title = "half round trip in us" if op == "latency" else "bandwidth in GB/s"
        yield title + where, header, _rows(results, shown, op, state, large)
    ratios = [r for r in RATIOS if any(_ratio(results, op, s, state, r[1], r[2]) != "-" for s in sizes)]
    if ratios:
        yield ("ratio of times (%s, below 1 is faster)" % op + where, ["bytes"] + [r[0] for r in ratios],
               [[size_text(s)] + [_ratio(results, op, s, state, r[1], r[2]) for r in ratios] for s in sizes])


def comparison(results, contestants, as_markdown):
    """The lines of the whole report."""
    lines = []
    for op in results.ops():
        for state in results.states(op):
            for title, header, rows in _blocks(results, contestants, op, state):
                lines += ["", ("**%s**" % title) if as_markdown else title, ""]
                lines += (markdown if as_markdown else aligned)(header, rows)
    if any(DOUBT in line for line in lines):
        lines += ["", "%s  says little: fewer than 3 samples, quartiles more than 25 %% of the median apart, or (of a "
                  "ratio)" % DOUBT, "   two quartile ranges that overlap. More rounds (--rounds) on a quieter machine help."]
    return lines


def demo(results, as_markdown):
    """ibvdev against niodev under MPJ Express; they differ by so much that the processors' state does not matter."""
    rows = []
    for size in results.sizes("latency"):
        mine, other = (results.cell(java("mpi", device), "latency", size, "any") for device in ("ibvdev", "niodev"))
        if mine and other:
            mark = DOUBT if mine.doubtful() or other.doubtful() else ""
            rows.append([size_text(size), number(mine.median), number(other.median),
                         "%.1f%s" % (other.median / mine.median, mark)])
    lines = ["", "MPJ Express, mpi.* with byte[] messages, 2 ranks: half round trip in us", ""]
    lines += (markdown if as_markdown else aligned)(["bytes", "ibvdev", "niodev", "times faster"], rows)
    if any(DOUBT in row[3] for row in rows):
        lines += ["", "%s  a wide spread: others use the processors too" % DOUBT]
    return lines
