# SPDX-License-Identifier: MIT
"""The samples of all rounds, pooled by contestant, operation, size and state."""
import json
import statistics

FEW_SAMPLES = 3
WIDE_SPREAD = 0.25  # quartile range over median
STATES = ("near", "far", "any")


class Cell:
    """All samples of one contestant for one operation, size and state: microseconds."""

    def __init__(self):
        self.values = []
        self.window = 1
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
        return (high - low) / self.median

    def doubtful(self):
        """Why its median says little, or None."""
        if len(self.values) < FEW_SAMPLES:
            return "%d sample%s" % (len(self.values), "" if len(self.values) == 1 else "s")
        if self.spread() > WIDE_SPREAD:
            return "spread %.0f %%" % (100 * self.spread())
        return None


class Results:
    def __init__(self):
        self._cells = {}  # (key, op, bytes, state) -> Cell
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
        key = (record["tool"], record["level"], record["device"])
        cell = self._cells.setdefault((key, record["op"], record["bytes"], record["state"]), Cell())
        cell.values += record["values_us"]
        cell.probes.append(record["probe_ns"])
        cell.window = record["window"]
        self.discarded += record["discarded"]

    def cell(self, key, op, size, state):
        """A Cell with at least one value, or None."""
        cell = self._cells.get((key, op, size, state))
        return cell if cell and cell.values else None

    def ops(self):
        return [op for op in ("latency", "bandwidth") if any(k[1] == op for k in self._cells)]

    def sizes(self, op):
        return sorted({k[2] for k in self._cells if k[1] == op})

    def states(self, op):
        return [s for s in STATES if any(k[1] == op and k[3] == s for k in self._cells)]

    def write(self, path):
        """One JSON object a line, the samples of all rounds together."""
        with open(path, "w", encoding="utf-8") as out:
            for (key, op, size, state), cell in sorted(self._cells.items()):
                tool, level, device = key
                record = {"tool": tool, "level": level, "device": device, "op": op, "bytes": size,
                          "window": cell.window, "state": state, "median_us": round(cell.median, 4),
                          "min_us": round(min(cell.values), 4), "max_us": round(max(cell.values), 4),
                          "samples": len(cell.values), "gb_per_s": round(size / cell.median / 1e3, 4),
                          "spread": round(cell.spread(), 3),
                          "probe_ns": round(statistics.median(cell.probes)),
                          "values_us": [round(v, 4) for v in cell.values]}
                out.write(json.dumps(record) + "\n")
