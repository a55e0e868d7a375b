#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The recipes for Spack and for containers agree with the tree: neither tool is here to run them whole.

usage: recipes.py ROOT VERSION

Spack's is executed with doubles of the names that it takes from Spack, in each combination of its variants; the
container's packages have to be Debian's, or those of scripts/packaging/debian, and its paths the checkout's.
"""
import itertools
import os
import re
import subprocess
import sys
import types
import unittest

ROOT, VERSION = sys.argv[1:3]
FOLDER = os.path.join(ROOT, "scripts", "packaging")


def text(*names):
    with open(os.path.join(*names), encoding="utf-8") as f:
        return f.read()


class Spec:
    def __init__(self, on, jar):
        self.on = on
        self.variants = {"mpj_jar": types.SimpleNamespace(value=jar)}

    def satisfies(self, word):
        return word[1:] in self.on

    def __contains__(self, name):
        return True

    def __getitem__(self, name):
        return types.SimpleNamespace(libs=types.SimpleNamespace(directories=["/lib/" + name]))


class Spack(unittest.TestCase):
    def setUp(self):
        self.noted = []

        def note(kind):
            return lambda *words, **options: self.noted.append((kind, words, options))
        package = types.ModuleType("spack.package")
        package.MesonPackage = object
        package.join_path = os.path.join
        for kind in ("license", "version", "variant", "depends_on", "requires"):
            setattr(package, kind, note(kind))
        sys.modules["spack"] = types.ModuleType("spack")
        sys.modules["spack.package"] = package
        names = {}
        sys.dont_write_bytecode = True
        exec(compile(text(FOLDER, "spack", "packages", "ibvdev", "package.py"), "package.py", "exec"), names)
        self.recipe = names["Ibvdev"]()

    def test_version(self):
        self.assertIn(("version", (VERSION,), {}), self.noted)
        self.assertIn("spack dev-build ibvdev@" + VERSION, self.recipe.__doc__)

    def test_options(self):
        """Each option that it gives to Meson is there, and each of the project's that decides what is built is given."""
        project = set(re.findall(r"option\('(\w+)'", text(ROOT, "meson_options.txt")))
        variants = [words[0] for kind, words, _ in self.noted if kind == "variant"]
        for count in range(len(variants) + 1):
            for on in itertools.combinations(variants, count):
                self.recipe.spec = Spec(on, "/a/mpj.jar")
                given = dict(re.fullmatch(r"-D(\w+)=(.+)", word).groups() for word in self.recipe.meson_args())
                self.assertLessEqual(set(given), project)
                self.assertGreaterEqual(set(given), {"tests", "verbs", "java"})
                self.assertEqual(given.get("mpj_jar"), "/a/mpj.jar" if "java" in on else None)
                for option in ("verbs", "java"):
                    self.assertEqual(given[option], "enabled" if option in on else "disabled")

    def test_environment(self):
        calls = []
        self.recipe.spec = Spec(("java",), "")
        self.recipe.prefix = types.SimpleNamespace(share=types.SimpleNamespace(java="/p/share/java"))
        self.recipe.setup_run_environment(types.SimpleNamespace(prepend_path=lambda *words: calls.append(words)))
        self.assertIn(("LD_LIBRARY_PATH", "/lib/ucx"), calls)
        self.assertIn(("CLASSPATH", "/p/share/java/ibvdev-mpi.jar"), calls)


class Container(unittest.TestCase):
    def setUp(self):
        self.lines = re.sub(r"\\\n\s*", "", re.sub(r"(?m)^#.*\n", "", text(FOLDER, "Containerfile"))).splitlines()

    def test_packages_exist(self):
        own = re.findall(r"(?m)^Package: (\S+)", text(FOLDER, "debian", "control"))
        installed = []
        for line in self.lines:
            for command in re.findall(r"apt-get install ([^&]*)", line):
                installed += [word for word in command.split() if not word.startswith("-")]
        files = [word for word in installed if word.startswith("/packages/")]
        self.assertEqual(sorted(files), sorted("/packages/%s_*.deb" % name for name in own))
        names = [word for word in installed if word not in files]
        known = subprocess.run(["apt-cache", "show", "--no-all-versions"] + names, stdout=subprocess.PIPE, text=True).stdout
        provided = set(re.findall(r"(?m)^Package: (\S+)", known))
        self.assertFalse(set(names) - provided, "Debian has no such packages")
        needed = re.search(r"(?ms)^Build-Depends: (.*?)^\S", text(FOLDER, "debian", "control")).group(1)
        for name in re.findall(r"([\w.+-]+)(?: \([^)]*\))?(?: \|[^,]*)?(?:,|\n)", needed.replace("debhelper-compat", "debhelper")):
            self.assertIn(name, names)

    def test_instructions(self):
        self.assertEqual({line.split()[0] for line in self.lines if line}, {"FROM", "RUN", "COPY", "CMD"})
        for path in re.findall(r"/source/(\S+)", "\n".join(self.lines)):
            self.assertTrue(os.access(os.path.join(ROOT, path), os.X_OK), path)


unittest.main(argv=sys.argv[:1])
