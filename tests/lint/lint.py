#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Rules of the project that no compiler checks.

usage: lint.py arrows|cycles|files|calls|words|prose|layout ROOT
       lint.py exports ROOT LIBRARY

Prints "file:line: what" for every breach and exits 1, or exits 0.
"""
import os
import re
import subprocess
import sys

MAX_LINES = 500
SOURCE_DIRS = ("native", "java", "tests", "bench", "scripts")
SOURCE_SUFFIXES = (".c", ".h", ".java", ".py", ".sh", ".map")
BANNED_CALLS = ("exit", "_exit", "_Exit", "quick_exit", "abort", "printf", "vprintf", "puts", "putchar",
                "setlocale", "signal", "sigaction", "sigset", "raise", "system")
BANNED_IMPORTS = set(BANNED_CALLS) | {"stdout", "__printf_chk", "__vprintf_chk", "__sysv_signal"}

# Levels of native/: an include may point to a lower level, to its own folder, or to what is named here.
LEVELS = {"base": 0, "wire.h": 1, "bootstrap": 2, "transport": 2, "core": 3, "ibvx.h": 4, "ibvx_pin.h": 5,
          "ibvx_area.h": 5, "ibvx_continue.h": 5, "ibvx_watch.h": 5, "ibvx_coll.h": 5, "coll": 6, "jni": 7}
# core implements what these headers promise
UPWARD_ALLOWED = {("core", "ibvx.h"), ("core", "ibvx_pin.h"), ("core", "ibvx_area.h"),
                  ("core", "ibvx_continue.h"), ("core", "ibvx_watch.h")}
JNI_MAY_INCLUDE = {"ibvx.h", "ibvx_pin.h", "ibvx_watch.h", "ibvx_coll.h", "base", "jni"}
COLL_MAY_INCLUDE = {"ibvx.h", "ibvx_area.h", "ibvx_coll.h", "ibvx_continue.h", "base", "coll"}


def walk(root, dirs, suffixes):
    for top in dirs:
        for folder, names, files in os.walk(os.path.join(root, top)):
            names[:] = sorted(n for n in names if not n.startswith(".") and n != "__pycache__")
            for name in sorted(files):
                if name.endswith(suffixes):
                    yield os.path.relpath(os.path.join(folder, name), root)


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as f:
        return f.read()


def strip_c(text):
    """Blanks comments, strings and character constants; keeps the lines."""
    pattern = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
    return pattern.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), text)


def unit_of(path):
    """native/core/match.c -> core; native/ibvx.h -> ibvx.h"""
    return path.split("/")[1]


def resolve(root, path, name):
    """What a quoted include means, relative to root; None: outside native/."""
    for base in (os.path.dirname(path), "native"):
        candidate = os.path.normpath(os.path.join(base, name))
        if os.path.isfile(os.path.join(root, candidate)):
            return candidate
    return None


def check_quoted(path, target):
    here, there = unit_of(path), unit_of(target)
    if not target.startswith("native/"):
        return "includes %s, which is not part of native/" % target
    for unit in (here, there):
        if unit not in LEVELS:
            return "%s has no level in LEVELS" % unit
    if here == "jni":
        return None if there in JNI_MAY_INCLUDE else "jni includes %s: only ibvx.h, ibvx_pin.h, ibvx_coll.h and base are its to use" % target
    if here == "coll" and there not in COLL_MAY_INCLUDE:
        return "coll includes %s: of the core it knows ibvx.h, ibvx_area.h and ibvx_continue.h" % target
    if here == there:
        if here == "transport":
            return check_between_transports(path, target)
        return None
    if there == "transport" and target != "native/transport/transport.h":
        return "includes %s: of the transports only transport.h is known above" % target
    if LEVELS[there] < LEVELS[here] or (here, there) in UPWARD_ALLOWED:
        return None
    return "the arrow to %s points up" % target


def check_between_transports(path, target):
    here, there = path.split("/")[2:], target.split("/")[2:]
    if len(here) == 1 or len(there) == 1 or here[0] == there[0] or there[0] == "netlib":
        return None
    return "transport %s includes a file of transport %s" % (here[0], there[0])


def check_angled(path, name):
    if name in ("jni.h", "jni_md.h") and unit_of(path) != "jni":
        return "only native/jni includes <%s>" % name
    if name.startswith(("infiniband/", "rdma/")) and not path.startswith("native/transport/verbs/"):
        return "only native/transport/verbs includes <%s>" % name
    return None


def arrows(root):
    found = []
    include = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
    for path in walk(root, ("native",), (".c", ".h")):
        for number, line in enumerate(read(root, path).splitlines(), 1):
            match = include.match(line)
            if not match:
                continue
            kind, name = match.groups()
            target = resolve(root, path, name) if kind == '"' else None
            if kind == "<" or (target is None and name in ("jni.h", "jni_md.h")):
                why = check_angled(path, name)
            elif target is not None:
                why = check_quoted(path, target)
            elif unit_of(path) == "jni" and os.path.isfile(os.path.join(root, "jni-headers", name)):
                why = None
            else:
                why = check_angled(path, name) or 'no file "%s" in native/' % name
            if why:
                found.append((path, number, why))
    return found


# Folders whose modules (a header and its .c file) must not include each other in a circle.
WITHOUT_CYCLES = ("native/coll", "native/core", "native/transport/shm", "native/transport/verbs", "native/transport/netlib",
                  "native/transport/ofi", "native/transport/ucx")


def cycles(root):
    """Includes that are part of a circle between the modules of a folder: at least one of each circle."""
    found = []
    for folder in WITHOUT_CYCLES:
        edges = {}
        for path in walk(root, (folder,), (".c", ".h")):
            module = os.path.splitext(os.path.basename(path))[0]
            for number, line in enumerate(read(root, path).splitlines(), 1):
                match = re.match(r'\s*#\s*include\s*"([^"]+)\.h"', line)
                other = os.path.basename(match.group(1)) if match else module
                if other != module and os.path.isfile(os.path.join(root, folder, other + ".h")):
                    edges.setdefault(module, {}).setdefault(other, (path, number))

        def reaches(start, goal, edges=edges):
            seen, stack = set(), [start]
            while stack:
                module = stack.pop()
                if module == goal:
                    return True
                if module not in seen:
                    seen.add(module)
                    stack += edges.get(module, {})
            return False

        for module, others in sorted(edges.items()):
            for other, (path, number) in sorted(others.items()):
                if module < other and reaches(other, module):
                    found.append((path, number, "%s and %s include each other in a circle" % (module, other)))
    return found


# Files of Debian packaging that admit no comment.
WITHOUT_COMMENTS = tuple("scripts/packaging/debian/" + name for name in ("changelog", "copyright", "source/format"))


def is_source(path):
    name = os.path.basename(path)
    if path in WITHOUT_COMMENTS:
        return False
    return name.endswith(SOURCE_SUFFIXES) or name == "meson.build" or path.startswith("scripts/") and "." not in name


def files(root):
    found = []
    marks = re.compile(r"\b(" + "|".join(("TO" + "DO", "FIX" + "ME", "X" + "XX")) + r")\b")
    tops = [name for name in ("meson.build", "meson_options.txt") if os.path.isfile(os.path.join(root, name))]
    for path in tops + [p for p in walk(root, SOURCE_DIRS, ("",)) if is_source(p)]:
        lines = read(root, path).splitlines()
        if path.startswith(("native/", "java/")) and len(lines) > MAX_LINES:
            found.append((path, len(lines), "longer than %d lines" % MAX_LINES))
        if not any("SPDX-License-Identifier: MIT" in line for line in lines[:2]) and not path.endswith(".map"):
            found.append((path, 1, "no SPDX line at the top"))
        for number, line in enumerate(lines, 1):
            if marks.search(line):
                found.append((path, number, "unfinished: " + line.strip()))
    return found


def calls(root):
    found = []
    call = re.compile(r"(?<![\w.>])(" + "|".join(BANNED_CALLS) + r")\s*\(")
    masked = re.compile(r"\bsettings_text\s*\([^)]*SETTING_JOB_SECRET")
    other = re.compile(r"\bstdout\b|\bSA_SIGINFO\b|\bsignalfd\s*\(")
    for path in walk(root, ("native",), (".c", ".h")):
        for number, line in enumerate(strip_c(read(root, path)).splitlines(), 1):
            for match in list(call.finditer(line)) + list(other.finditer(line)):
                found.append((path, number, "not in a library inside a JVM: %s" % match.group().strip()))
            if masked.search(line):
                found.append((path, number, 'settings_text() of the secret is "(set)", whatever it is: '
                              "a comparison needs settings_secret()"))
    return found


# Words of the past, what replaces them, and the other senses in which they are used (matched on the same line).  A rule with
# folders applies there alone: elsewhere the word has its ordinary meaning.
BELOW = ("native/", "java/", "jni-headers/", "tests/proto/", "tests/shm/", "tests/unit/", "tests/verbs/", "tests/java/xxdev/",
         "tests/java/device/", "scripts/man/")
CORE = ("native/core/", "native/transport/", "native/jni/", "tests/proto/", "tests/verbs/", "tests/shm/", "tests/unit/")
WORDS = [
    (r"hous(e|es)|rooms|doors?", "architecture, layer, module; listener", None, None),
    (r"whom|whoever", "the rank that, which rank", None, None),
    (r"who", "the rank that, which rank (of people it is fine: SECURITY.md, or 'user who')", r"users? who|nobody who|somebody who|anybody who",
     ("native/", "java/", "tests/", "scripts/", "bench/c/", "bench/java/")),
    (r"says|said|saying|tells|told", "reports, is notified, acknowledgement", None, None),
    (r"say|tell", "reports, is notified, acknowledgement", r", say[,)]", None),
    (r"lanes?", "revocable RDMA queue pair", None, None),
    (r"(un)?expose[ds]?|exposing|exposures?", "register and pack the remote key; release", r"exposed segment|\bexposed\b.*bench",
     ("native/", "java/", "scripts/", "tests/")),
    (r"glanc(e|es|ed|ing)", "poll once", None, None),
    (r"kick(s|ed|ing)?|bells?|rings the", "wake, doorbell", None, None),
    (r"token", "progress ownership", None, CORE),
    (r"doomed", "failed, error set", None, None),
    (r"favou?r(s|ed|ites?)?", "biased owner", None, None),
    (r"landings?|landed|lands?", "direct receive, deliver directly", r"MPI\.LAND|CODE_LAND|IBVX_LAND", None),
    (r"starv(e|es|ed|ing|ation)|grant(s|ed|ing)?|debts?", "emergency credit", None, None),
    (r"ow(e|es|ed|ing)|pa(y|ys|id|ying)", "pending control packet", None, None),
    (r"greetings?|greet(s|ed)?", "private data", None, None),
    (r"callers?", "the connecting side, active", None, ("native/transport/verbs/c", "native/transport/verbs/w", "native/transport/verbs/h")),
    (r"exchang(e|es|ed|ing)", "wire-up", r"(atomic|compare)_exchange|What the two ends exchange|--|core exchanges|Opens, exchanges",
     ("native/transport/verbs/", "tests/verbs/")),
    (r"lend(s|ing)?|lent", "zero-copy send", None, None),
    (r"windows?", "ring mapping, credit window, exposed segment", r"(?i)(eager|credit)[_ ]?windows?|memory window|near.miss|windows of 64|\(flow, arrive, window",
     ("native/", "java/", "jni-headers/", "scripts/", "tests/", "README.md")),
    (r"(un)?stag(e|es|ed|ing)", "bounce buffer", r"--stage|\\-\\-stage", BELOW),
    (r"places?", "array reference", r"in( the)? place|takes? place", ("native/jni/", "java/xxdev/ibvdev/")),
    (r"unkeep|unhold|kept (range|buffer|registration)s?|keeps? (the |a )?registrations?", "registration cache, pin", None, None),
    (r"mov(e|es|ed|ing)", "rma operation, transfer", r"links may move|never moved|moving them there|may not move it|that moves", CORE),
    (r"in reach|memory (of yours )?that moves", "pinnable memory, pinned", None, None),
    (r"regions?", "pin", r"Pool ?Region|region of MPJ|regions of MPJ|Array ?Region|regions of the pool|JVM critical region",
     ("native/core/", "tests/proto/", "tests/java/xxdev/")),
    (r"ways?", "connection method, scheme, method",
     r"under[ _]way|by way of|(on|made) (its|their|his) way|other way round|[Bb]oth[_ ][Ww]ays|[Oo]ne way,|no way|each way|same way", CORE),
    (r"TAKEN", "segment ACK", None, None),
]
CASE_MATTERS = {"TAKEN"}
# Not ours to name: third-party texts, the licence, generated data; and this list itself.
WORDS_LEFT_OUT = ("bench/npb/", "bench/results/", "jni-headers/jni", "tests/lint/lint.py", "tests/lint/selftest.py")
WORDS_TOPS = ("native", "java", "jni-headers", "tests", "bench", "scripts", ".ci")
WORDS_FILES = ("README.md", "SECURITY.md", "CHANGELOG.md", "meson.build", "meson_options.txt")


def words(root):
    """Old words in names, comments, texts and documents."""
    found = []
    rules = [(re.compile(r"(?<![A-Za-z])(%s)(?![a-z])" % old, 0 if old in CASE_MATTERS else re.I), new,
              re.compile(fine) if fine else None, where) for old, new, fine, where in WORDS]
    paths = [p for p in walk(root, WORDS_TOPS, ("",)) if is_source(p) or p.endswith((".md", ".1", ".3", ".5", ".build", ".txt"))
             or p.startswith("bench/") and "." not in os.path.basename(p)]
    for path in [p for p in paths if not p.startswith(WORDS_LEFT_OUT)] + [f for f in WORDS_FILES if os.path.isfile(os.path.join(root, f))]:
        here = [rule for rule in rules if not rule[3] or path.startswith(rule[3])]
        for number, line in enumerate([os.path.basename(path)] + read(root, path).splitlines()):
            spaced = re.sub(r"([a-z])([A-Z])", r"\1 \2", line.replace("_", " "))
            for old, new, fine, _ in here:
                match = old.search(spaced)
                if match and not (fine and fine.search(line)):
                    found.append((path, number, '"%s": use %s' % (match.group(1), new)))
    return found


PROSE_COLUMNS = 120


def prose(root):
    """The prose of documents is no wider than PROSE_COLUMNS; tables and code are as wide as they are."""
    found = []
    tops = [name for name in ("README.md", "SECURITY.md") if os.path.isfile(os.path.join(root, name))]
    guides = [p for p in walk(root, SOURCE_DIRS, (".md",)) if not p.startswith("bench/results/")]  # bench/run wrote those
    for path in tops + guides:
        code = False
        for number, line in enumerate(read(root, path).splitlines(), 1):
            code ^= line.lstrip().startswith("```")
            if not code and not line.startswith("|") and len(line) > PROSE_COLUMNS:
                found.append((path, number, "prose of %d columns, at most %d" % (len(line), PROSE_COLUMNS)))
    return found


# How a line may not begin: by what .editorconfig demands of the language.
INDENT = {".java": (r" [^*]", "indented by spaces"), ".c": (r"\t* {8}", "indented by spaces"),
          ".h": (r"\t* {8}", "indented by spaces"), ".py": (r"(?!)", "")}  # Python may have shell scripts in its strings


def layout(root):
    """C and Java are indented by tabs, as .editorconfig demands; no line ends with blanks, every file with a newline."""
    found = []
    for path in walk(root, SOURCE_DIRS, tuple(INDENT)):
        if path.startswith(("bench/npb/", "jni-headers/")) and not path.endswith(".py"):
            continue
        pattern, what = INDENT[os.path.splitext(path)[1]]
        text = read(root, path)
        for number, line in enumerate(text.splitlines(), 1):
            if re.match(pattern, line):
                found.append((path, number, what))
            elif line != line.rstrip():
                found.append((path, number, "blanks at the end of the line"))
        if text and not text.endswith("\n"):
            found.append((path, len(text.splitlines()), "no newline at the end of the file"))
    return found


def symbols(library, which):
    out = subprocess.run(["nm", "-D", which, library], check=True, capture_output=True, text=True).stdout
    return {line.split()[-1].split("@")[0] for line in out.splitlines() if line.strip()}


def declared(root):
    """The functions that ibvx.h, ibvx_coll.h and the generated JNI headers promise."""
    names = set()
    for header in ("native/ibvx.h", "native/ibvx_coll.h"):
        if os.path.exists(os.path.join(root, header)):
            names |= set(re.findall(r"\b(ibvx_\w+)\s*\(", strip_c(read(root, header))))
    natives = set()
    for path in walk(root, ("jni-headers",), (".h",)):
        natives |= set(re.findall(r"\b(Java_\w+)", strip_c(read(root, path))))
    return names, natives


def exports(root, library):
    found = []
    patterns = re.search(r"global:(.*?)local:", read(root, "native/ibvx.map"), re.S).group(1)
    allowed = [re.compile(p.strip().replace("*", r"\w*") + r"\Z") for p in patterns.split(";") if p.strip()]
    defined = symbols(library, "--defined-only")
    for name in sorted(defined):
        if not any(p.match(name) for p in allowed):
            found.append((library, 0, "exports %s, which native/ibvx.map does not list" % name))
    promised, natives = declared(root)
    if "JNI_OnLoad" in defined:
        promised |= natives
    for name in sorted(promised - defined):
        found.append((library, 0, "does not export %s, which a header declares" % name))
    for name in sorted(symbols(library, "--undefined-only") & BANNED_IMPORTS):
        found.append((library, 0, "calls %s" % name))
    return found


def main(argv):
    checks = {"arrows": arrows, "cycles": cycles, "files": files, "calls": calls,
              "words": words, "prose": prose, "layout": layout, "exports": exports}
    if len(argv) < 3 or argv[1] not in checks or len(argv) != (4 if argv[1] == "exports" else 3):
        sys.exit(__doc__)
    found = checks[argv[1]](*argv[2:])
    for path, number, why in found:
        print("%s:%d: %s" % (path, number, why))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
