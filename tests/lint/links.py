#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The links of the Markdown files lead somewhere: relative ones to a file of the repository, and to a heading of it.

usage: links.py ROOT

Links to other hosts are not followed.  Prints "file:line: what" for every dead link and exits 1, or exits 0.
"""
import os
import re
import sys
from urllib.parse import unquote

LINK = re.compile(r"!?\[[^\]\[]*\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)")
DEFINITION = re.compile(r"^ {0,3}\[[^\]]+\]:\s*<?(\S+?)>?(?:\s|$)")
OTHER_HOST = re.compile(r"[a-z][a-z0-9+.-]*:", re.I)


def prose_of(text):
    """(number, line) of the lines that are no code."""
    fence = None
    for number, line in enumerate(text.splitlines(), 1):
        mark = re.match(r"\s*(```+|~~~+)", line)
        if mark and (fence is None or mark.group(1).startswith(fence)):
            fence = mark.group(1) if fence is None else None
        elif fence is None:
            yield number, line


def without_code(line):
    return re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", line)


def anchors(text):
    """What a heading is called in an address, as GitHub and its like do it."""
    found, seen = set(), {}
    for _, line in prose_of(text):
        heading = re.match(r"#{1,6}\s+(.*?)\s*#*$", line)
        if heading:
            shown = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading.group(1))
            name = re.sub(r"[^\w\- ]", "", shown.lower()).replace(" ", "-")
            count = seen.get(name, 0)
            seen[name] = count + 1
            found.add("%s-%d" % (name, count) if count else name)
        found.update(re.findall(r"<a\s+(?:id|name)=\"([^\"]+)\"", line))
    return found


def documents(root):
    for folder, names, files in os.walk(root):
        # a build folder has Markdown of others
        names[:] = sorted(n for n in names if not n.startswith(".") and
                          not os.path.isdir(os.path.join(folder, n, "meson-private")))
        for name in sorted(files):
            if name.endswith(".md"):
                yield os.path.relpath(os.path.join(folder, name), root)


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as f:
        return f.read()


def dead(root, path, target):
    """Why a link of a document does not work, or None."""
    if OTHER_HOST.match(target) or target.startswith("//"):
        return None
    name, _, anchor = unquote(target).partition("#")
    if name.startswith("/"):
        return "begins with /, which is another folder for every reader"
    to = os.path.normpath(os.path.join(os.path.dirname(path), name)) if name else path
    if to.startswith(".."):
        return "leads out of the repository"
    if not os.path.exists(os.path.join(root, to)):
        return "there is no %s" % to
    if anchor and to.endswith(".md") and anchor not in anchors(read(root, to)):
        return "%s has no heading of that name" % to
    return None


def check(root):
    found = []
    for path in documents(root):
        for number, line in prose_of(read(root, path)):
            definition = DEFINITION.match(line)
            targets = LINK.findall(without_code(line)) + ([definition.group(1)] if definition else [])
            for target in targets:
                why = dead(root, path, target)
                if why:
                    found.append((path, number, "link to %s: %s" % (target, why)))
    return found


def main(root):
    found = check(root)
    for path, number, why in found:
        print("%s:%d: %s" % (path, number, why))
    return 1 if found else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1]))
