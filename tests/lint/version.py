#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The version in meson.build is that of every file that must name it, and has a section in CHANGELOG.md.

usage: version.py ROOT VERSION
"""
import os
import re
import sys

FILES = {
    "java/manifest.txt": r"Implementation-Version: (\S+)",
    "java/xxdev-api.manifest": r"Implementation-Version: (\S+)",
    "java/mpi-jar.manifest": r"Implementation-Version: (\S+)",
    "java/xdev/ibvdev/Native.java": r'VERSION = "([^"]+)"',
    "java/docs/first-message.md": r"<artifactId>ibvdev</artifactId><version>([^<]+)<",
    "native/ibvx.h": r'#define IBVX_VERSION "([^"]+)"',
    "scripts/man/ibvrun.1": r'"ibvdev (\d[^"]*)"',
    "scripts/man/ibvdev-info.1": r'"ibvdev (\d[^"]*)"',
    "scripts/man/ibvx.3": r'"ibvdev (\d[^"]*)"',
    "scripts/man/ibvx_coll.3": r'"ibvdev (\d[^"]*)"',
    "scripts/man/ibvdev.conf.5": r'"ibvdev (\d[^"]*)"',
    "CHANGELOG.md": r"^## (\S+)",
    "scripts/packaging/debian/changelog": r"^ibvdev \(([^)]+)\)",
}


def main(root, version):
    found = []
    for path, pattern in FILES.items():
        with open(os.path.join(root, path), encoding="utf-8") as f:
            text = f.read()
        named = re.findall(pattern, text, re.M)
        if not named or named[0] != version:
            found.append("%s names version %s, meson.build %s" % (path, named[0] if named else "none", version))
    with open(os.path.join(root, "native", "ibvx.h"), encoding="utf-8") as f:
        parts = re.findall(r"#define IBVX_VERSION_\w+ (\d+)", f.read())
    if ".".join(parts) != version:
        found.append("native/ibvx.h: IBVX_VERSION_MAJOR, _MINOR and _PATCH are %s, not %s" % (".".join(parts), version))
    for why in found:
        print(why)
    return 1 if found else 0


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
