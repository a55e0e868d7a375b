# SPDX-License-Identifier: MIT
"""The samples of all rounds, pooled by contestant, operation, size, parameter, ranks and state."""
import json
import statistics
from collections import namedtuple

FEW_SAMPLES = 3
WIDE_SPREAD = 0.25  # quartile range over median
STATES = ("near", "far", "any")

# What is measured: an operation, bytes, its parameter (window, depth, threads ...), ranks.
What = namedtuple("What", "op bytes param ranks")


class Cell:
    """All samples of one contestant for one What in one state."""

    def __init__(self, unit="us"):
        self.values = []
        self.unit = unit
        self.probes = []

    @property
    def median(self):
        return statistics.median(self.values)

    def quartiles(self):
        if len(self.values) < 2:
            return self.values[0], self.values[0]
        low, _, high = statistics.quantiles(self.values, n=4, method="inclusive")
        return low, high

    def spread(self):
        low, high = self.quartiles()
        return (high - low) / self.median if self.median else 0.0

    def doubtful(self):
        """Why its median means little, or None."""
        if len(self.values) < FEW_SAMPLES:
            return "%d sample%s" % (len(self.values), "" if len(self.values) == 1 else "s")
        if self.spread() > WIDE_SPREAD:
            return "spread %.0f %%" % (100 * self.spread())
        return None

    def __len__(self):
        return len(self.values)


class Results:
    def __init__(self):
        self._cells = {}  # (key, What, state) -> Cell
        self.discarded = 0

    def read(self, path):
        """Adds the JSON lines of one run; returns how many there were."""
        count = 0
        with open(path, encoding="utf-8") as lines:
            for line in lines:
                self.add(json.loads(line))
                count += 1
        return count

    def add(self, record):
        self.discarded += record["discarded"]
        if not record["values"]:
            return
        key = (record["tool"], record["level"], record["device"])
        what = What(record["op"], record["bytes"], record["param"], record["ranks"])
        cell = self._cells.setdefault((key, what, record["state"]), Cell(record["unit"]))
        cell.values += record["values"]
        cell.probes.append(record["probe_ns"])

    def cell(self, key, what, state):
        """A Cell with at least one value, or None."""
        cell = self._cells.get((key, what, state))
        return cell if cell and cell.values else None

    def whats(self, *ops):
        """Everything that was measured of these operations, in order."""
        return sorted({what for _, what, _ in self._cells if what.op in ops},
                      key=lambda w: (ops.index(w.op), w.ranks, w.bytes, w.param))

    def states(self, *ops):
        return [s for s in STATES if any(w.op in ops and state == s for _, w, state in self._cells)]

    def samples(self, state, ranks=None):
        """How many samples of a state there are."""
        return sum(len(c.values) for (_, w, s), c in self._cells.items() if s == state and ranks in (None, w.ranks))

    def thin(self, state, key, whats, least=FEW_SAMPLES):
        """Those of whats for which a contestant has too few samples in a state."""
        return [w for w in whats if len(self.cell(key, w, state) or ()) < least]

    def write(self, path):
        """One JSON object a line, the samples of all rounds together."""
        with open(path, "w", encoding="utf-8") as out:
            for (key, what, state), cell in sorted(self._cells.items()):
                tool, level, device = key
                low, high = cell.quartiles()
                record = {"tool": tool, "level": level, "device": device, "op": what.op, "bytes": what.bytes,
                          "param": what.param, "ranks": what.ranks, "state": state, "unit": cell.unit,
                          "median": round(cell.median, 4), "low_quartile": round(low, 4), "high_quartile": round(high, 4),
                          "samples": len(cell.values), "doubt": cell.doubtful(), "discarded": 0,
                          "probe_ns": round(statistics.median(cell.probes)),
                          "values": [round(v, 4) for v in cell.values]}
                out.write(json.dumps(record) + "\n")
