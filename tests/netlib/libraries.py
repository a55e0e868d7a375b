#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""UCX and libfabric that are absent, too old or broken: the reason that is reported.

usage: libraries.py DESCRIBE FAKES HIDE [IBVDEV-INFO]

DESCRIBE: the program of describe.c; FAKES: the folder of the libraries made of fake.c; HIDE: that of hide.c. With IBVDEV-INFO also in
a JVM.
"""
import os
import shutil
import subprocess
import sys
import tempfile

NAMES = {"ucx": ("libucp.so.0", "UCX", "libucx0"), "ofi": ("libfabric.so.1", "libfabric", "libfabric1")}
# What stands in place of the library, what the reason has to contain.
CASES = {
    "lacks": ("libfake-lacks.so", ["%(product)s is too old or incomplete", "%(file)s has no function "]),
    "old": ("libfake-old.so", ["%(file)s is %(product)s 1.2", "is needed"]),
    "unresolved": ("libfake-unresolved.so", ["%(product)s cannot be loaded", "fake_defined_nowhere"]),
    "text": (None, ["%(product)s cannot be loaded", "%(file)s"]),
}


def environment(**more):
    return dict(os.environ, **more)


def check(what, command, env, words, status):
    done = subprocess.run(command, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False)
    out = done.stdout + done.stderr
    missing = [word for word in words if word not in out]
    if missing or done.returncode != status:
        sys.exit("%s: status %d, not %d; not reported: %s\n%s" % (what, done.returncode, status, missing, out))
    print("%s: %s" % (what, " ".join(out.split())[:300]))


def replaced(describe, fakes, info, folder):
    for case, (fake, words) in CASES.items():
        where = os.path.join(folder, case)
        os.mkdir(where)
        reasons = []
        for transport, (name, product, _package) in NAMES.items():
            if fake:
                shutil.copy(os.path.join(fakes, fake), os.path.join(where, name))
            else:
                with open(os.path.join(where, name), "w", encoding="ascii") as f:
                    f.write("this is text, and no library\n" * 100)
            reasons.append([word % {"product": product, "file": name} for word in words])
            check("%s %s" % (transport, case), [describe, transport], environment(LD_LIBRARY_PATH=where), reasons[-1], 1)
        if info:
            check("JVM " + case, info, environment(LD_LIBRARY_PATH=where), reasons[0] + reasons[1], 0)


def hidden(describe, hide):
    for transport, (name, product, package) in NAMES.items():
        check(transport + " absent", [describe, transport], environment(LD_AUDIT=hide, HIDDEN_LIBRARY=name),
              [product + " is not installed", package], 1)
    if subprocess.run([describe, "ucx"], stdout=subprocess.DEVNULL, check=False).returncode == 0:
        check("ucx without libucs", [describe, "ucx"], environment(LD_AUDIT=hide, HIDDEN_LIBRARY="libucs.so"),
              ["UCX cannot be loaded", "libucs.so"], 1)


def main(argv):
    describe, fakes, hide = argv[1:4]
    with tempfile.TemporaryDirectory() as folder:
        replaced(describe, fakes, argv[4:], folder)
    hidden(describe, hide)


if __name__ == "__main__":
    main(sys.argv)
