#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""One formatter per language: clang-format for C and Java, autopep8 for Python, shfmt for shell.

usage: format.py ROOT            prints what is formatted otherwise, exits 1 if there is any
       format.py --write ROOT    formats it

The rules are those of .clang-format and .editorconfig and the options below.  The NAS benchmarks keep the form of their
origin.
"""
import os
import re
import shutil
import subprocess
import sys

SKIP = 77
FOLDERS = ("native", "java", "tests", "bench", "scripts", ".ci")
# Name of the language: the command, what makes it check, what makes it write, the versions whose output the tree has.
FORMATTERS = {
    "c": (["clang-format"], ["--dry-run", "--Werror"], ["-i"], r"version 14\."),
    "python": (["autopep8", "--max-line-length=140", "--ignore=E226,E24,W50,W690,E731"], ["--diff", "--exit-code"], ["-i"], r"\b2\.0"),
    "shell": (["shfmt"], ["-d"], ["-w"], r"^v?3\."),
}
PACKAGES = {"autopep8": "python3-autopep8"}
SUFFIXES = {".c": "c", ".h": "c", ".java": "c", ".py": "python", ".sh": "shell"}
SHEBANGS = {"python3": "python", "bash": "shell", "sh": "shell"}


def language(path):
    suffix = os.path.splitext(path)[1]
    if suffix or not os.access(path, os.X_OK):
        return SUFFIXES.get(suffix)
    with open(path, "rb") as f:
        words = re.match(rb"#!(?:/usr/bin/env )?(\S+)", f.readline())
    return SHEBANGS.get(os.path.basename(words.group(1).decode())) if words else None


def sources(root):
    """{language: paths}"""
    found = {name: [] for name in FORMATTERS}
    for top in FOLDERS:
        for folder, names, files in os.walk(os.path.join(root, top)):
            names[:] = [n for n in names if n != "__pycache__" and not (n == "npb" and folder.endswith("bench"))]
            for path in (os.path.join(folder, name) for name in sorted(files)):
                if os.path.isfile(path) and language(path):
                    found[language(path)].append(path)
    return found


def unusable(command, version):
    """Why this formatter cannot judge the tree, or None."""
    if not shutil.which(command):
        return "%s is not installed (Debian package %s)" % (command, PACKAGES.get(command, command))
    run = subprocess.run([command, "--version"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True)
    text = run.stdout
    return None if re.search(version, text) else "another version of %s formats otherwise: %s" % (command, text.strip())


def main(root, write):
    failed, missing = 0, 0
    for name, paths in sources(root).items():
        command, check, rewrite, version = FORMATTERS[name]
        why = unusable(command[0], version)
        if why:
            print(why)
            missing += 1
        elif subprocess.run(command + (rewrite if write else check) + paths).returncode:
            failed += 1
    if failed and not write:
        print("tests/lint/format.py --write . formats it")
    return 1 if failed else SKIP if missing else 0


if __name__ == "__main__":
    words = sys.argv[1:]
    writes = words[:1] == ["--write"]
    if len(words) != 1 + writes:
        sys.exit(__doc__)
    sys.exit(main(words[-1], writes))
