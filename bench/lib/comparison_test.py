#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The arithmetic behind the tables of bench/run: states stay apart, doubt is reported, verdicts follow the limits."""
import json
import os
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

from comparison import mpi_command, mpi_targets, perftest, results, sections, tables, targets  # noqa: E402  (the path has to be set first)

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


class MpiTargets(unittest.TestCase):
    """The table of bench/run --targets mpi."""
    BCAST = results.What("bcast", 8, 1, 4)

    def line(self, text):
        return [line for line in mpi_targets.LINES if line.text == text][0]

    def rows(self, text, *records):
        return mpi_targets.block(pooled(*records), [self.line(text)])

    def test_the_table_has_each_line_of_the_targets_once(self):
        self.assertEqual(len(mpi_targets.LINES), len({line.text for line in mpi_targets.LINES}))
        # 3 numbers of ranks, barrier and 5 operations of 4 sizes, 2 peers; 4 kernels, 2 numbers of ranks, time and share
        self.assertEqual({"p2p": 6, "collectives": 3 * 21 * 2, "objects": 1, "npb": 16},
                         {part: sum(line.part == part for line in mpi_targets.LINES) for part in mpi_targets.PARTS})

    def test_the_faster_peer_counts(self):
        _, rows, without = self.rows("bcast 8, 4 ranks / best C", record(mpi_targets.OURS, "near", [2.1] * 3, self.BCAST),
                                     record(OPENMPI, "near", [3] * 3, self.BCAST), record(MPICH, "near", [2] * 3, self.BCAST))
        self.assertEqual([["bcast 8, 4 ranks / best C, near", "2.10 us", "2.00 us (MPICH)", "1.05", "1.10", "met"]], rows)
        self.assertEqual([], without)

    def test_a_lucky_sample_is_no_peer(self):
        _, rows, _ = self.rows("bcast 8, 4 ranks / best C", record(mpi_targets.OURS, "near", [2.1] * 3, self.BCAST),
                               record(OPENMPI, "near", [3] * 3, self.BCAST), record(MPICH, "near", [0.1], self.BCAST))
        self.assertEqual("3.00 us (Open MPI)", rows[0][2])

    def test_a_peer_without_figures_in_a_state_leaves_its_ratio_in_doubt(self):
        near = [record(mpi_targets.OURS, "near", [2] * 3, self.BCAST), record(MPICH, "near", [9] * 3, self.BCAST)]
        far = [record(mpi_targets.OURS, "far", [4], self.BCAST), record(MPICH, "far", [19], self.BCAST)]
        openmpi = record(OPENMPI, "far", [5], self.BCAST)
        _, rows, _ = self.rows("bcast 8, 4 ranks / best C", *near, openmpi)
        self.assertEqual(["met ~ (no sample of Open MPI)"], [row[5] for row in rows])
        _, rows, _ = self.rows("bcast 8, 4 ranks / best C", *near, *far, openmpi)
        self.assertEqual([("5.00 us (Open MPI)", "met ~ (1 sample)")], [(row[2], row[5]) for row in rows])

    def test_the_limit_depends_on_the_ranks(self):
        two = self.BCAST._replace(ranks=2)
        _, rows, _ = self.rows("bcast 8, 2 ranks / best C", record(mpi_targets.OURS, "near",
                               [2.1] * 3, two), record(OPENMPI, "near", [2] * 3, two))
        self.assertEqual(["1.00", "missed"], rows[0][4:])

    def test_states_are_compared_apart_and_thin_ones_left_out(self):
        _, rows, _ = self.rows("bcast 8, 4 ranks / MPJ Express", record(mpi_targets.OURS, "near", [1] * 3, self.BCAST),
                               record(mpi_targets.OURS, "far", [3] * 3,
                                      self.BCAST), record(mpi_targets.EXPRESS, "near", [4] * 3, self.BCAST),
                               record(mpi_targets.EXPRESS, "far", [5] * 3, self.BCAST), record(mpi_targets.OURS, "any", [9], self.BCAST),
                               record(mpi_targets.EXPRESS, "any", [9], self.BCAST))
        self.assertEqual([("0.25", "met"), ("0.60", "missed")], [(row[3], row[5]) for row in rows])

    def test_without_enough_samples_the_state_with_most_is_shown_in_doubt(self):
        _, rows, _ = self.rows("bcast 8, 4 ranks / MPJ Express", record(mpi_targets.OURS, "near", [1] * 2, self.BCAST),
                               record(mpi_targets.OURS, "far", [3], self.BCAST), record(mpi_targets.EXPRESS, "near", [4] * 3, self.BCAST),
                               record(mpi_targets.EXPRESS, "far", [5] * 3, self.BCAST))
        self.assertEqual([("0.25", "met ~ (2 samples)")], [(row[3], row[5]) for row in rows])

    def test_overlap_matters_near_the_target_only(self):
        line = self.line("bcast 8, 4 ranks / best C")
        self.assertEqual("met", mpi_targets.verdict(0.9, line, "the middle halves overlap"))
        self.assertIn("overlap", mpi_targets.verdict(1.08, line, "the middle halves overlap"))

    def test_faster_means_less_than_one(self):
        line = self.line("NPB CG, 2 ranks, time")
        self.assertEqual(["missed", "met"], [mpi_targets.verdict(value, line, None) for value in (1.0, 0.99)])

    def test_without_a_target_there_is_no_verdict(self):
        self.assertEqual("-", mpi_targets.verdict(0.5, self.line("Send/Recv byte[] 8 B / MPJ Express"), None))
        self.assertEqual("1 of 2 met, 1 missed; 1 of these verdicts are in doubt (~).",
                         mpi_targets.summary([["-"], ["met ~ (2 samples)"], ["missed"]]))

    def test_messages_that_are_not_bytes_have_results_of_their_own(self):
        what = tables.latency_of(mpi_targets.COLUMN)
        _, rows, without = self.rows("column of 1000 x 1000 / MPJ Express", record(mpi_targets.OURS, "near", [1] * 3, what),
                                     record(mpi_targets.EXPRESS, "near", [4] * 3, what))
        self.assertEqual(([], ["column of 1000 x 1000 / MPJ Express"]), (rows, without))

    def test_busy_runs_of_npb_count_only_where_there_are_no_others(self):
        runs = [("ours", 2.0, 1), ("ours", 9.0, 50), ("ours", 2.2, 3), ("ours", 2.1, 0),
                ("ibvdev", 3.0, 60), ("ibvdev", 3.1, 60), ("ibvdev", 3.2, 60)]
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "npb.jsonl")
            with open(path, "w", encoding="utf-8") as out:
                for device, seconds, busy in runs:
                    out.write(json.dumps({"kernel": "FT", "class": "A", "ranks": 2, "device": device, "seconds": seconds,
                                          "communication": 10 * seconds, "busy": busy}) + "\n")
            r = results.Results()
            mpi_command.add_npb(r, path)
        _, rows, _ = mpi_targets.block(r, [self.line("NPB FT, 2 ranks, time"), self.line("NPB FT, 2 ranks, communication")])
        self.assertEqual([["2.10 s", "3.10 s (MPJ Express)", "0.68", "< 1.00", "met"], ["21.0 %", "31.0 % (MPJ Express)", "0.68", "0.67", "missed"]],
                         [row[1:] for row in rows])

    def test_all_that_is_compared_is_measured(self):
        planned = mpi_command.sections(mpi_command.FULL, mpi_targets.PARTS)
        names = {name for _, group in planned for section in group for name in section.only}
        key = {"java": lambda k: "%s-%s" % (k[1], k[2].replace(" ", "-")), "openmpi": lambda k: "openmpi", "mpich": lambda k: "mpich"}
        for line in mpi_targets.LINES:
            if line.part == "npb":
                continue
            for peer in (line.ours, *line.peers):
                name = key[peer[0]](peer)
                self.assertIn(name, names)
                self.assertTrue(any(section.ranks == line.what.ranks and name in section.only and
                                    any(op == line.what.op and (line.what.bytes in sizes or op == "barrier")
                                        for op, sizes, _ in section.expanded(options))
                                    for options, group in planned for section in group), line.text + ": " + name)


if __name__ == "__main__":
    unittest.main()
