#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A document's programs and commands give the output that it shows.

usage: guide.py ROOT BUILD DOCUMENT

A block ```java NAME or ```c NAME becomes the file NAME.java or NAME.c of an empty folder, in which the checkout's
folders are seen by their names and the build folder as build/.  A block ```sh run is run there by a shell, and the
block ```output behind it is what it prints: lines in any order, because ranks print when they like, and [...] for what
differs from run to run.  The document begins with such a program.
"""
import os
import re
import signal
import subprocess
import sys
import tempfile

BLOCK = re.compile(r"^```(\S+)(?: (\S+))?\n(.*?)^```$", re.M | re.S)
SECONDS = 240  # a limit for hangs, far above what the slowest machine takes
SHOWN = ("bench", "java", "native", "scripts", "tests")


def blocks(text):
    return [match.groups() for match in BLOCK.finditer(text)]


def matches(wanted, printed):
    """Each line has its own counterpart."""
    left = printed.splitlines()
    for line in sorted(wanted.splitlines(), key=lambda line: "[...]" in line):  # exact ones choose first
        pattern = re.compile(".*".join(re.escape(part) for part in line.split("[...]")))
        found = next((candidate for candidate in left if pattern.fullmatch(candidate)), None)
        if found is None:
            return 'no line "%s"' % line
        left.remove(found)
    return "more lines than the document shows: %s" % left if left else None


def environment(root, build):
    env = {name: value for name, value in os.environ.items() if not name.startswith("IBVDEV_")}
    return dict(env, IBVDEV_BUILD=build, LC_ALL="C.UTF-8", PKG_CONFIG_PATH=os.path.join(build, "meson-uninstalled"))


def shell(text, folder, env):
    """Exit status, standard output, the errors."""
    job = subprocess.Popen(["sh", "-e"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                           cwd=folder, env=env, start_new_session=True)
    try:
        out, err = job.communicate(text, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(job.pid, signal.SIGKILL)
        out, err = job.communicate()
        err += "\nno end after %d s" % SECONDS
    return job.returncode, out, err


def folder_of(root, build, folder, programs):
    for name in SHOWN:
        os.symlink(os.path.join(root, name), os.path.join(folder, name))
    os.symlink(build, os.path.join(folder, "build"))
    for language, name, text in programs:
        with open(os.path.join(folder, "%s.%s" % (name, language)), "w", encoding="utf-8") as f:
            f.write(text)


def check(root, build, text, folder):
    """What is wrong with a document, or None."""
    found = blocks(text)
    programs = [block for block in found if block[0] in ("java", "c") and block[1]]
    if not programs:
        return "has no program: a block ```java NAME or ```c NAME"
    folder_of(root, build, folder, programs)
    env = environment(root, build)
    compared = 0
    for i, (language, tag, commands) in enumerate(found):
        if (language, tag) != ("sh", "run"):
            continue
        status, out, err = shell(commands, folder, env)
        print("%s--- exit status %d\n%s%s" % (commands, status, out, err), flush=True)
        if status != 0:
            return "the commands above fail"
        if i + 1 < len(found) and found[i + 1][0] == "output":
            compared += 1
            why = matches(found[i + 1][2], out)
            if why:
                return why
    return None if compared else "shows no output of its program"


def main(root, build, document):
    with open(os.path.join(root, document), encoding="utf-8") as f:
        text = f.read()
    with tempfile.TemporaryDirectory() as folder:
        why = check(root, build, text, folder)
    if why:
        print("%s: %s" % (document, why))
    return 1 if why else 0


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
