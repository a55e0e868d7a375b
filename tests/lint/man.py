#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The man pages and the guide java/docs/tuning.md agree with the code: every setting with its default, every counter,
every option of the scripts' --help, every function of ibvx.h and ibvx_coll.h.

usage: man.py ROOT
"""
import os
import re
import subprocess
import sys


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as f:
        return f.read()


def plain(roff):
    """Without escapes, fonts and comments."""
    text = re.sub(r'^\.\\".*$', "", roff, flags=re.M)
    text = re.sub(r"\\f[RBIP]", "", text)
    return text.replace("\\-", "-").replace('"', "")


def settings(source):
    """(name, default, help) of every entry of the table."""
    entry = re.compile(r'=\s*(?:INT|BYTES|BOOL|CHOICE|TEXT)\(((?:[^()"]|"[^"]*")*)\)', re.S)
    for match in entry.finditer(source):
        texts = re.findall(r'"([^"]*)"', match.group(1))
        yield texts[0], texts[-2], texts[-1]


def check_settings(root):
    found = []
    page = plain(read(root, "scripts/man/ibvdev.conf.5"))
    table = list(settings(read(root, "native/base/settings_table.c")))
    declared = len(re.findall(r"^\tSETTING_(?!COUNT\b)\w+,", read(root, "native/base/settings.h"), re.M))
    if len(table) != declared:
        found.append("settings_table.c: %d entries read, settings.h names %d" % (len(table), declared))
    for name, default, _ in table:
        if not re.search(r"^\.B %s \(%s[;)]" % (name, re.escape(default or "empty")), page, re.M):
            found.append('ibvdev.conf.5: no entry "%s (%s"' % (name, default or "empty"))
    for name in re.findall(r"^\.B (\w+) \(", page, re.M):
        if name not in [entry[0] for entry in table]:
            found.append("ibvdev.conf.5: %s is no setting" % name)
    return found


def counters(root):
    """The names that the library gives out; SIZE stands for the size classes of learned costs."""
    names = set()
    for folder, _, files in os.walk(os.path.join(root, "native")):
        for path in (os.path.join(folder, name) for name in files if name.endswith((".c", ".h"))):
            text = read(root, os.path.relpath(path, root))
            names.update(re.findall(r'\b(?:add|counters_add)\(\w+, "(\w+)"', text))
            for tail in re.findall(r'"(learned_)" size "(\w+)"', text):
                names.add("SIZE".join(tail))
    prefixed = re.findall(r'prefix "(_\w+)"', read(root, "native/transport/netlib/netlib_state.h"))
    return names | {library + tail for library in ("ucx", "ofi") for tail in prefixed}


def check_tables(root):
    """The tables of the guide; a row that is missing is printed as it has to be."""
    guide = read(root, "java/docs/tuning.md").splitlines()
    rows = ["| `%s` | %s | %s |" % (name, default or "empty", text)
            for name, default, text in settings(read(root, "native/base/settings_table.c"))]
    begin = guide.index("| setting | default | meaning |") + 2
    shown = guide[begin:guide.index("", begin)]
    found = ["tuning.md: lacks the row %s" % row for row in rows if row not in shown]
    found += ["tuning.md: no setting is like the row %s" % row for row in shown if row not in rows]
    described = set()
    for start in (i for i, line in enumerate(guide) if line.startswith("| counter |")):
        for row in guide[start + 2:(guide + [""]).index("", start)]:
            described.update(re.findall(r"`(\w+)`", row.split("|")[1]))
    known = counters(root)
    found += ["tuning.md: does not describe the counter %s" % name for name in sorted(known - described)]
    return found + ["tuning.md: there is no counter %s" % name for name in sorted(described - known)]


def check_functions(root):
    found = []
    for name in ("ibvx", "ibvx_coll"):
        header = re.sub(r"/\*.*?\*/", "", read(root, "native/%s.h" % name), flags=re.S)
        page = plain(read(root, "scripts/man/%s.3" % name))
        found += ["%s.3: does not mention %s" % (name, function)
                  for function in sorted(set(re.findall(r"\b(ibvx_\w+)\s*\(", header)))
                  if not re.search(r"\b%s\b" % function, page)]
    return found


def check_options(root, script):
    if not os.path.exists(os.path.join(root, "scripts", script)):
        return ["there is no scripts/%s, but a man page for it" % script]
    run = subprocess.run([os.path.join(root, "scripts", script), "--help"], capture_output=True, text=True)
    if run.returncode:
        return ["scripts/%s --help: exit status %d: %s" % (script, run.returncode, run.stderr)]
    page = plain(read(root, "scripts/man/%s.1" % script))
    heads = re.findall(r"^\s+(-\S+(?:, -\S+)*)", run.stdout, re.M)
    options = {option.split("=")[0].rstrip(",") for head in heads for option in head.split(", ")}
    options = sorted(option for option in options if ":" not in option)  # -javaagent:... is the JVM's
    return ["%s.1: does not mention %s" % (script, option) for option in options
            if not re.search(r"(?<![\w-])%s(?![\w-])" % re.escape(option), page)]


def main(root):
    found = check_settings(root) + check_tables(root) + check_functions(root)
    for script in ("ibvrun", "ibvdev-info"):
        found += check_options(root, script)
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1]))
