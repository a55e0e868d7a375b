#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What the shared library asks of the machine where it is loaded: the C library alone, of a version that old systems have.

usage: needed.py LIBRARY GLIBC
"""
import re
import subprocess
import sys

LOADER = re.compile(r"ld-linux[\w-]*\.so\.\d+$")


def readelf(option, library):
    return subprocess.run(["readelf", "--wide", option, library], check=True, capture_output=True, text=True).stdout


def number(version):
    return tuple(int(part) for part in version.split("."))


def main(library, glibc):
    found = []
    needed = re.findall(r"\(NEEDED\)\s+Shared library: \[(.+)\]", readelf("--dynamic", library))
    for name in needed:
        if name != "libc.so.6" and not LOADER.match(name):
            found.append("is loaded only where %s is: open it at run time (transport/loader.h)" % name)
    functions = re.findall(r"\bUND (\w+)@(\w+?)_([\d.]+)", readelf("--dyn-syms", library))
    if "libc.so.6" not in needed or not functions:
        found.append("shows no function of the C library: readelf prints something else than this test reads")
    for name, library_name, version in sorted(set(functions)):
        if library_name != "GLIBC":
            found.append("calls %s of %s" % (name, library_name))
        elif number(version) > number(glibc):
            found.append("calls %s of glibc %s, later than %s: call something older, or bind it in native/base/glibc.h" % (name, version, glibc))
    for why in found:
        print("%s: %s" % (library, why))
    return 1 if found else 0


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
