#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A lint that finds nothing may be blind: plants every breach in a small tree and wants it found."""
import os
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import links  # noqa: E402
import lint  # noqa: E402

SPDX = "/* SPDX-License-Identifier: MIT */\n"
GOOD = {
    "native/base/a.h": SPDX,
    "native/wire.h": SPDX + '#include <stdint.h>\n',
    "native/ibvx.h": SPDX,
    "native/bootstrap/bootstrap.h": SPDX + '#include "base/a.h"\n',
    "native/transport/transport.h": SPDX + '#include "wire.h"\n',
    "native/transport/shm/ring.h": SPDX + '#include "transport/transport.h"\n#include "base/a.h"\n',
    "native/transport/shm/ring.c": SPDX + '#include "ring.h"\n',
    "native/transport/self/self.h": SPDX,
    "native/transport/registry.c": SPDX + '#include "transport/shm/ring.h"\n',
    "native/transport/verbs/qp.c": SPDX + "#include <infiniband/verbs.h>\n",
    "native/core/core.h": SPDX + '#include "ibvx.h"\n#include "transport/transport.h"\n',
    "native/core/round.h": SPDX + '#include "core/core.h"\n',
    "native/jni/xdev.c": SPDX + '#include <jni.h>\n#include "ibvx.h"\n#include "Generated.h"\n',
    "jni-headers/Generated.h": "",
    "native/core/fine.c": SPDX + '/* exit(1) */ void ibvx_abort(int x); const char *s = "printf(";\n'
                                 "void f(void) { t->exit(1); fprintf(stderr, s); my_abort(); }\n",
}
BREACHES = [
    ("arrows", "native/base/up.h", '#include "wire.h"\n', "points up"),
    ("arrows", "native/base/up2.c", '#include "ibvx.h"\n', "points up"),
    ("arrows", "native/transport/shm/core.c", '#include "core/core.h"\n', "points up"),
    ("arrows", "native/transport/shm/boot.c", '#include "bootstrap/bootstrap.h"\n', "points up"),
    ("arrows", "native/transport/shm/other.c", '#include "transport/self/self.h"\n', "of transport self"),
    ("arrows", "native/transport/shm/rel.c", '#include "../self/self.h"\n', "of transport self"),
    ("arrows", "native/core/shm.c", '#include "transport/shm/ring.h"\n', "only transport.h"),
    ("arrows", "native/core/jni.c", "#include <jni.h>\n", "only native/jni"),
    ("arrows", "native/core/jni2.c", '#include "jni.h"\n', "only native/jni"),
    ("arrows", "native/transport/shm/v.c", "#include <infiniband/verbs.h>\n", "only native/transport/verbs"),
    ("arrows", "native/coll/deep.c", '#include "core/core.h"\n', "coll includes"),
    ("arrows", "native/jni/deep.c", '#include "core/core.h"\n', "only ibvx.h"),
    ("arrows", "native/core/lost.c", '#include "nowhere.h"\n', "no file"),
    ("arrows", "native/attic/a.c", '#include "base/a.h"\n', "no level"),
    ("cycles", "native/core/core.c", '#include "core/round.h"\n', "in a circle"),
    ("files", "native/core/long.c", "\n" * 500, "longer"),
    ("files", "java/Long.java", "\n" * 500, "longer"),
    ("files", "tests/later.c", "// TO" "DO\n", "unfinished"),
    ("words", "java/xdev/Old.java", "// to whom it goes\n", "whom"),
    ("words", "java/xdev/Old2.java", "class BellRinger {}\n", "doorbell"),
    ("words", "native/core/old.c", "/* who polls */\n", "rank that"),
    ("words", "native/core/old.c", "int lane_count;\n", "queue pair"),
    ("words", "native/jni/old.c", "struct place_of *x;\n", "array reference"),
    ("words", "native/transport/old.c", "/* memory that moves */\n", "pinnable"),
    ("words", "native/bootstrap/old.c", "/* the launcher says so */\n", "reports"),
    ("words", "native/old.md", "the debt of a peer\n", "emergency credit"),
    ("words", "tests/old.py", "# is told the end\n", "is notified"),
    ("words", "scripts/man/old.1", "the window of a ring\n", "ring mapping"),
    ("prose", "native/Wide.md", "word " * 30 + "\n", "columns"),
    ("layout", "java/Spaces.java", "class A {\n    int a;\n}\n", "by spaces"),
    ("layout", "native/core/spaces.c", "void f(void)\n{\n        g();\n}\n", "by spaces"),
    ("layout", "tests/blanks.py", "x = 1 \n", "blanks"),
    ("layout", "native/core/cut.c", "int x;", "no newline"),
    ("layout", "java/Blanks.java", "class A { \n}\n", "blanks"),
    ("calls", "native/core/exit.c", "void f(void) { exit (1); }\n", "exit"),
    ("calls", "native/core/abort.c", "void f(void) { abort(); }\n", "abort"),
    ("calls", "native/core/print.c", 'void f(void) { printf("x"); }\n', "printf"),
    ("calls", "native/core/out.c", "FILE *f(void) { return stdout; }\n", "stdout"),
    ("calls", "native/jni/sig.c", "void f(void) { sigaction(1, 0, 0); }\n", "sigaction"),
    ("calls", "native/core/key.c", "void f(void) { key(settings_text(s, SETTING_JOB_SECRET)); }\n", "settings_secret"),
    ("calls", "native/jni/loc.c", 'void f(void) { setlocale(0, ""); }\n', "setlocale"),
]


LINKS_TO = {"java/docs/there.md": "# There\n\n## What `it` is, here\n\n## Twice\n\n## Twice\n"}
LINKS = [
    ("[x](java/docs/there.md)", None),
    ("[x](java/docs/there.md#what-it-is-here) and [y](java/docs/there.md#twice-1)", None),
    ("[x](https://other.example/nowhere.md#a) `[x](nowhere.md)`", None),
    ("```\n[x](nowhere.md)\n```", None),
    ("![x](nowhere.svg)", "no nowhere.svg"),
    ("[a](java) [x](java/docs/nowhere.md)", "no java/docs/nowhere.md"),
    ("[x](java/docs/there.md#nowhere)", "no heading"),
    ("[x](#nowhere)", "no heading"),
    ("[x](../nowhere.md)", "leads out"),
    ("[x](/nowhere.md)", "begins with /"),
    ("[x]: nowhere.md", "no nowhere.md"),
]


def plant(root, path, text):
    full = os.path.join(root, path)
    os.makedirs(os.path.dirname(full), exist_ok=True)
    with open(full, "w", encoding="utf-8") as f:
        f.write(text)


def run(check, extra):
    with tempfile.TemporaryDirectory() as root:
        for path, text in list(GOOD.items()) + extra:
            plant(root, path, text)
        return getattr(lint, check)(root)


def check_links():
    failed = 0
    for text, want in LINKS:
        with tempfile.TemporaryDirectory() as root:
            for path, content in list(LINKS_TO.items()) + [("README.md", text + "\n")]:
                plant(root, path, content)
            found = links.check(root)
        if len(found) != (want is not None) or found and want not in found[0][2]:
            print('links: of %r expected "%s", found %s' % (text, want, found))
            failed += 1
    return failed


def main():
    failed = check_links()
    for check in ("arrows", "files", "calls", "words", "prose", "layout"):
        found = run(check, [])
        if found:
            print("%s: finds breaches where there are none: %s" % (check, found))
            failed += 1
    for check, path, text, want in BREACHES:
        found = run(check, [(path, SPDX + text)])
        if len(found) != 1 or found[0][0] != path or want not in found[0][2]:
            print("%s: planted in %s, expected \"%s\", found %s" % (check, path, want, found))
            failed += 1
    found = run("files", [("native/core/bare.c", "int x;\n")])
    if len(found) != 1 or "SPDX" not in found[0][2]:
        print("files: a missing SPDX line: found %s" % found)
        failed += 1
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
