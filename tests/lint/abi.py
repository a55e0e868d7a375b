#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The binary interface of the C library is the one that native/ibvx.abi lists: functions, sizes of structures, version.
Debian's list of symbols has the same functions.

usage: abi.py [--write] ROOT LIBRARY COMPILER...

--write changes the list.  A function that goes, or a structure of another size, needs a new soname (native/meson.build).
"""
import difflib
import os
import re
import subprocess
import sys
import tempfile

HEADERS = ("ibvx.h", "ibvx_coll.h")


def functions(library):
    out = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout
    return sorted({line.split()[-1] for line in out.splitlines() if " ibvx_" in line})


def structures(root, compiler):
    """As the compiler lays them out."""
    names = []
    for header in HEADERS:
        with open(os.path.join(root, "native", header), encoding="utf-8") as f:
            names += re.findall(r"^struct (ibvx_\w+) \{", f.read(), re.M)
    lines = ["#include <stdio.h>"] + ['#include "%s"' % header for header in HEADERS] + ["int main(void)", "{"]
    lines += ['printf("struct %s %%zu bytes\\n", sizeof(struct %s));' % (name, name) for name in sorted(names)] + ["}", ""]
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "sizes")
        with open(program + ".c", "w", encoding="ascii") as f:
            f.write("\n".join(lines))
        subprocess.run(compiler + ["-I" + os.path.join(root, "native"), "-o", program, program + ".c"], check=True)
        return subprocess.run([program], check=True, capture_output=True, text=True).stdout.splitlines()


def in_symbols(root):
    """The functions of Debian's list, which names the version that first had each."""
    with open(os.path.join(root, "scripts", "packaging", "debian", "libibvx0.symbols"), encoding="ascii") as f:
        return ["function " + name for name in re.findall(r"^ (ibvx_\w+)@", f.read(), re.M)]


def main(argv):
    write = "--write" in argv
    root, library, *compiler = [word for word in argv[1:] if word != "--write"]
    found = structures(root, compiler) + ["function " + name for name in functions(library)]
    path = os.path.join(root, "native", "ibvx.abi")
    if write:
        with open(path, "w", encoding="ascii") as f:
            f.write("\n".join(found) + "\n")
        return 0
    with open(path, encoding="ascii") as f:
        listed = f.read().splitlines()
    for line in difflib.unified_diff(listed, found, "native/ibvx.abi", "the build", lineterm="", n=0):
        print(line)
    if listed != found:
        print("the interface has changed: see the usage of tests/lint/abi.py")
    packaged = set(in_symbols(root)) ^ {line for line in found if line.startswith("function ")}
    if packaged:
        print("only in one of the library and scripts/packaging/debian/libibvx0.symbols: " + ", ".join(sorted(packaged)))
    return 1 if listed != found or packaged else 0


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    sys.exit(main(sys.argv))
