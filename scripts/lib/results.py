#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Adds up the results of several Meson test runs.

usage: results.py RUN...
  RUN  label=FILE  a testlog*.json that meson test has written
       label!TEXT  a run that did not get that far (counts as one failure)

Prints every failure with the end of its output, every skip with its reason, and as the last line
"N passed, N failed, N skipped".  Exits 1 on a failure or if nothing passed.
"""
import json
import sys

PASSED = {"OK", "EXPECTEDFAIL"}
SKIPPED = {"SKIP"}
TAIL_LINES = 60


def read_run(path):
    """One JSON object a line; a run that was killed may have left half a line."""
    tests = []
    with open(path, encoding="utf-8", errors="replace") as f:
        for line in f:
            if not line.strip():
                continue
            try:
                tests.append(json.loads(line))
            except ValueError:
                tests.append({"name": "unreadable line in " + path, "result": "ERROR", "stdout": line[:200]})
    return tests


def output_of(test):
    return "\n".join(part.rstrip() for part in (test.get("stdout"), test.get("stderr")) if part)


def show_failure(label, test):
    print("\n--- FAILED: %s: %s (%s, exit status %s, %.1f s)"
          % (label, test["name"], test["result"], test.get("returncode", "?"), test.get("duration") or 0))
    lines = output_of(test).splitlines()
    if len(lines) > TAIL_LINES:
        print("    (the last %d of %d lines)" % (TAIL_LINES, len(lines)))
    for line in lines[-TAIL_LINES:]:
        print("    " + line)


def reason(test):
    lines = [line for line in output_of(test).splitlines() if line.strip()]
    return lines[-1].strip() if lines else "no reason given"


def main(runs):
    passed = failed = skipped = 0
    skips = []
    for run in runs:
        label, mark, rest = min((run.partition(mark) for mark in "=!" if mark in run), key=lambda p: len(p[0]))
        if mark == "!":
            print("\n--- FAILED: %s: %s" % (label, rest))
            failed += 1
            continue
        try:
            tests = read_run(rest)
        except OSError as e:
            print("\n--- FAILED: %s: no results: %s" % (label, e))
            failed += 1
            continue
        for test in tests:
            if test["result"] in PASSED:
                passed += 1
            elif test["result"] in SKIPPED:
                skipped += 1
                skips.append("%s: %s: %s" % (label, test["name"], reason(test)))
            else:
                failed += 1
                show_failure(label, test)
    if skips:
        print("\nSkipped:")
        for line in skips:
            print("  " + line)
    print("\n%d passed, %d failed, %d skipped" % (passed, failed, skipped), flush=True)
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1:]))
