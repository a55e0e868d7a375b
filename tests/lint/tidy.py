#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""clang-tidy over native/ with the rules of .clang-tidy.

usage: tidy.py ROOT BUILD
"""
import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

SKIP = 77


def main(root, build):
    tidy = shutil.which("clang-tidy")
    database = os.path.join(build, "compile_commands.json")
    if not tidy:
        print("clang-tidy is not installed (Debian package clang-tidy)")
        return SKIP
    if os.environ.get("IBVDEV_TEST_QUICK"):
        print("left out because it takes long (IBVDEV_TEST_QUICK)")
        return SKIP
    with open(database, encoding="utf-8") as f:
        entries = json.load(f)
    native = os.path.join(os.path.realpath(root), "native") + os.sep
    sources = {os.path.realpath(os.path.join(e["directory"], e["file"])) for e in entries}
    sources = sorted(s for s in sources if s.startswith(native))
    if not sources:
        print("no source of native/ in " + database)
        return 1

    def check(source):
        return subprocess.run([tidy, "-p", build, "--quiet", source], capture_output=True, text=True)

    failed = 0
    with ThreadPoolExecutor(max_workers=min(2, os.cpu_count() or 1)) as pool:
        for source, run in zip(sources, pool.map(check, sources)):
            if run.returncode or "warning:" in run.stdout:
                print(run.stdout or run.stderr)
                failed += 1
    print("%d files, %d with findings" % (len(sources), failed))
    return 1 if failed else 0


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
