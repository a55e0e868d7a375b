#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""scripts/lib/results.py decides whether the tests have passed: what does it make of each outcome?"""
import json
import os
import subprocess
import sys
import tempfile

RESULTS = os.path.join(sys.argv[1], "scripts", "lib", "results.py")


def test(name, result, stdout=""):
    return json.dumps({"name": name, "result": result, "stdout": stdout, "duration": 1.0, "returncode": 0})


CASES = [
    # lines of the log, extra runs, last line, exit status, what else must be printed
    ([test("a", "OK"), test("b", "EXPECTEDFAIL")], [], "2 passed, 0 failed, 0 skipped", 0, []),
    ([test("a", "OK"), test("b", "SKIP", "x\nno such device\n")], [], "1 passed, 0 failed, 1 skipped", 0,
     ["b: no such device"]),
    ([test("a", "OK"), test("b", "FAIL", "why it failed")], [], "1 passed, 1 failed, 0 skipped", 1,
     ["why it failed"]),
    ([test("a", "OK"), test("b", "TIMEOUT"), test("c", "ERROR"), test("d", "INTERRUPT"), test("e", "UNEXPECTEDPASS")],
     [], "1 passed, 4 failed, 0 skipped", 1, ["TIMEOUT"]),
    ([test("a", "OK"), '{"name": "half'], [], "1 passed, 1 failed, 0 skipped", 1, []),
    ([test("a", "OK")], ["asan!does not build"], "1 passed, 1 failed, 0 skipped", 1, ["asan: does not build"]),
    ([test("a", "OK")], ["asan=/no/such/file"], "1 passed, 1 failed, 0 skipped", 1, ["asan: no results"]),
    ([test("a", "OK")], ["tsan!x = y"], "1 passed, 1 failed, 0 skipped", 1, ["tsan: x = y"]),
    ([test("a", "SKIP")], [], "0 passed, 0 failed, 1 skipped", 1, []),
    ([], [], "0 passed, 0 failed, 0 skipped", 1, []),
]


def main():
    failed = 0
    for lines, extra, last, status, also in CASES:
        with tempfile.NamedTemporaryFile("w", suffix=".json") as log:
            log.write("\n".join(lines))
            log.flush()
            run = subprocess.run([sys.executable, RESULTS, "plain=" + log.name] + extra, capture_output=True, text=True)
        got = run.stdout.rstrip("\n").split("\n")[-1]
        if got != last or run.returncode != status or not all(word in run.stdout for word in also):
            print("%s: expected %r and %d, got %d and:\n%s%s"
                  % (lines, last, status, run.returncode, run.stdout, run.stderr))
            failed += 1
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
