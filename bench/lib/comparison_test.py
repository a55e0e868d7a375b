#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The arithmetic behind the tables of bench/run: states stay apart, doubt is reported, verdicts follow the limits."""
import os
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

from comparison import perftest, results, sections, tables, targets  # noqa: E402  (the path has to be set first)

IBVX, OPENMPI, MPICH = ("ibvx", "c", "ibvdev"), ("openmpi", "c", "default"), ("mpich", "c", "default")
EIGHT = tables.latency_of(8)


def record(key, state, values, what=EIGHT):
    return {"tool": key[0], "level": key[1], "device": key[2], "op": what.op, "bytes": what.bytes, "param": what.param,
            "ranks": what.ranks, "state": state, "unit": "us", "values": values, "probe_ns": 60, "discarded": 0}


def pooled(*records):
    out = results.Results()
    for one in records:
        out.add(one)
    return out


class Pooling(unittest.TestCase):
    def test_states_stay_apart(self):
        r = pooled(record(IBVX, "near", [1, 2]), record(IBVX, "far", [10]), record(IBVX, "near", [3]))
        self.assertEqual([1, 2, 3], r.cell(IBVX, EIGHT, "near").values)
        self.assertEqual([10], r.cell(IBVX, EIGHT, "far").values)
        self.assertIsNone(r.cell(IBVX, EIGHT, "any"))

    def test_dropped_samples_are_counted_without_a_cell(self):
        r = pooled({**record(IBVX, "any", []), "discarded": 4})
        self.assertEqual(4, r.discarded)
        self.assertEqual([], r.whats("latency"))

    def test_what_is_written_can_be_read(self):
        r = pooled(record(IBVX, "near", [1.5, 2.5]))
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "lines")
            r.write(path)
            again = results.Results()
            self.assertEqual(1, again.read(path))
        self.assertEqual([1.5, 2.5], again.cell(IBVX, EIGHT, "near").values)


class Doubt(unittest.TestCase):
    def test_few_samples(self):
        self.assertEqual("2 samples", pooled(record(IBVX, "near", [1, 1])).cell(IBVX, EIGHT, "near").doubtful())

    def test_wide_spread(self):
        self.assertIn("spread", pooled(record(IBVX, "near", [1, 1, 2, 2, 3])).cell(IBVX, EIGHT, "near").doubtful())
        self.assertIsNone(pooled(record(IBVX, "near", [1, 1.01, 1.02])).cell(IBVX, EIGHT, "near").doubtful())

    def test_overlap(self):
        r = pooled(record(IBVX, "near", [1, 1.1, 1.2]), record(OPENMPI, "near", [1.05, 1.15, 1.25]))
        value, doubt = tables.ratio(r.cell(IBVX, EIGHT, "near"), r.cell(OPENMPI, EIGHT, "near"))
        self.assertAlmostEqual(1.1 / 1.15, value)
        self.assertIn("overlap", doubt)


class Verdicts(unittest.TestCase):
    def verdict(self, mine, best, state="near"):
        r = pooled(record(IBVX, state, mine), record(OPENMPI, state, best), record(MPICH, state, [99, 99, 99]))
        return [row for row in targets.block(r)[2] if row[0] == "ibvx C, 8 B / best C peer"]

    def test_against_the_best_peer(self):
        self.assertEqual([["ibvx C, 8 B / best C peer", "near", "0.500", "0.750", "met"]], self.verdict([1] * 3, [2] * 3))
        self.assertEqual("missed", self.verdict([1.6] * 3, [2] * 3)[0][4])

    def test_each_state_has_its_limit(self):
        self.assertEqual("missed", self.verdict([1.4] * 3, [2] * 3, "far")[0][4])
        self.assertEqual("met", self.verdict([1.4] * 3, [2] * 3, "near")[0][4])

    def test_doubt_is_reported(self):
        self.assertEqual("met, but: 1 sample", self.verdict([1], [2] * 3)[0][4])


class Absurd(unittest.TestCase):
    def test_java_is_not_faster_than_the_c_that_it_calls(self):
        what = tables.latency_of(1 << 20)
        xxdev = ("java", "xxdev", "ibvdev")
        r = pooled(record(IBVX, "near", [10] * 3, what), record(xxdev, "near", [9] * 3, what))
        self.assertEqual("1.0~", tables._ratio_text(r, what, "near", xxdev, (IBVX,)))
        row = [row for row in targets.block(r)[2] if row[0] == "Java xxdev, 1M / ibvx C"][0]
        self.assertEqual("1.000", row[2])


class Sections(unittest.TestCase):
    def test_list_for_perftest(self):
        options = sections.Options("8,64k", 1, 1, 1, 1)
        section = sections.Section(2, "latency,bandwidth=1k/1m,rate")
        self.assertEqual([("latency", [8, 65536], [1]), ("bandwidth", [1024, 1 << 20], [16]), ("rate", [8], [64])],
                         list(section.expanded(options)))

    def test_state_of_two_probes(self):
        self.assertEqual("near", perftest._state(60, 70))
        self.assertEqual("far", perftest._state(220, 230))
        self.assertIsNone(perftest._state(60, 220))
        self.assertIsNone(perftest._state(60, 90))
        self.assertIsNone(perftest._state(900, 900))


if __name__ == "__main__":
    unittest.main()
