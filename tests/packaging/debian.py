#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The Debian packages: what is in them, what lintian finds, and their life in a system that has nothing else of ours.

usage: debian.py packages|chroot ROOT

packages  builds them by scripts/packaging/deb; compares their files with FILES; runs lintian
chroot    builds them too, makes a Debian in a folder (root and Debian's archive are needed), installs an older version,
          upgrades, runs the tests of scripts/packaging/debian/tests there, and purges: nothing is left
"""
import fnmatch
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

SKIPPED = 77
MUST_RUN = bool(os.environ.get("IBVDEV_TEST_CI"))  # what cannot run in continuous integration has failed
SECONDS = 3000  # a limit for hangs
SUITE = "bookworm"
SOURCES = ("/etc/apt/sources.list.d/debian.sources", "/etc/apt/sources.list")
# Each file of a package is one of these, and each of these is there; {v} is the version.
FILES = {
    "libibvx0": ["usr/lib/*/libibvdev.so.0", "usr/lib/*/libibvdev.so.{v}"],
    "libibvx-dev": ["usr/include/ibvx.h", "usr/include/ibvx_coll.h", "usr/lib/*/libibvdev.so", "usr/lib/*/pkgconfig/ibvx.pc",
                    "usr/share/man/man3/ibvx.3.gz", "usr/share/man/man3/ibvx_coll.3.gz"],
    "libibvdev-jni": ["usr/lib/*/jni/libibvdev.so"],
    "libibvdev-java": ["usr/share/java/%s%s.jar" % (jar, version) for jar in ("ibvdev", "ibvdev-mpi", "xxdev-api") for version in ("", "-{v}")]
    + ["usr/share/maven-repo/ibvdev/%s/{v}/%s-{v}.%s" % (name, name, ending)
       for name in ("ibvdev", "ibvdev-mpi", "ibvdev-xxdev-api") for ending in ("jar", "pom")],
    "ibvdev-tools": ["usr/bin/ibvrun", "usr/bin/ibvdev-info", "usr/share/ibvdev/lib/ibvrun/*.py", "usr/share/man/man1/ibvrun.1.gz",
                     "usr/share/man/man1/ibvdev-info.1.gz", "usr/share/man/man5/ibvdev.conf.5.gz"],
}
OF_ALL = ("usr/share/doc/*", "usr/share/lintian/*")
# What a package manager itself leaves behind, and what is no file of the system.
NOT_COMPARED = ("proc", "sys", "dev", "tmp", "run", "var/lib/dpkg", "var/lib/apt", "var/cache", "var/log", "etc/ld.so.cache")
OLDER = "0.0.1"
# In namespaces of its own: what a program leaves ends with it.
INSIDE = """hostname localhost; mount -t proc proc "$0/proc"; mount --bind /dev "$0/dev"; mount -t tmpfs none "$0/dev/shm"; mount -t tmpfs none "$0/tmp"
exec chroot "$0" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive sh -ec "$1" """


class Failed(Exception):
    pass


def check(true, what):
    if not true:
        raise Failed(what)


def run(command, **more):
    print("$ " + " ".join(command), flush=True)
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", timeout=SECONDS, **more)
    print(done.stdout, flush=True)
    check(done.returncode == 0, "exit status %d of %s" % (done.returncode, " ".join(command)))
    return done.stdout


def build(root, folder):
    """Version, and package -> file."""
    run([os.path.join(root, "scripts", "packaging", "deb"), folder, "-us", "-uc"], env=dict(os.environ, DEB_BUILD_OPTIONS="nocheck"))
    with open(os.path.join(root, "scripts", "packaging", "debian", "changelog"), encoding="utf-8") as f:
        version = re.match(r"ibvdev \((.+)\)", f.readline()).group(1)
    debs = {os.path.basename(path).split("_")[0]: path for path in glob.glob(os.path.join(folder, "*_%s_*.deb" % version))}
    debs = {name: path for name, path in debs.items() if not name.endswith("-dbgsym")}
    check(sorted(debs) == sorted(FILES), "the packages are %s" % sorted(debs))
    return version, debs


def files_of(folder):
    """Relative paths of all that is no folder; links are not followed."""
    found = set()
    for top, names, files in os.walk(folder):
        found.update(os.path.relpath(os.path.join(top, name), folder)
                     for name in files + [name for name in names if os.path.islink(os.path.join(top, name))])
    return found


def check_files(name, version, folder):
    wanted = [pattern.format(v=version) for pattern in FILES[name]]
    files = files_of(folder)
    for pattern in wanted:
        check(fnmatch.filter(files, pattern), "%s has no %s" % (name, pattern))
    for file in sorted(files):
        check(any(fnmatch.fnmatch(file, pattern) for pattern in wanted + list(OF_ALL)), "%s has %s" % (name, file))


def packages(root, folder):
    version, debs = build(root, folder)
    for name, deb in debs.items():
        unpacked = os.path.join(folder, name)
        run(["dpkg-deb", "-x", deb, unpacked])
        check_files(name, version, unpacked)
    with zipfile.ZipFile(os.path.join(folder, "libibvdev-java", "usr", "share", "java", "ibvdev.jar")) as jar:
        check(not [entry for entry in jar.namelist() if entry.endswith(".so")], "a package for all machines has a native library")
    run(["lintian", "--allow-root", "--no-cfg", "--fail-on", "error", *glob.glob(os.path.join(folder, "*.changes"))])


def older(debs, version, folder):
    """The same packages with another version and one file that the new ones have not."""
    made = []
    for name, deb in debs.items():
        tree = os.path.join(folder, name + "-older")
        run(["dpkg-deb", "-R", deb, tree])
        control = os.path.join(tree, "DEBIAN", "control")
        with open(control, encoding="utf-8") as f:
            text = f.read()
        with open(control, "w", encoding="utf-8") as f:
            f.write(text.replace(version, OLDER))
        with open(os.path.join(tree, "usr", "share", "doc", name, "older"), "w", encoding="ascii") as f:
            f.write(OLDER)
        made.append(os.path.join(folder, "%s_%s.deb" % (name, OLDER)))
        run(["dpkg-deb", "--root-owner-group", "-b", tree, made[-1]])
    return made


def tests_of(root):
    """Name -> packages that the test needs, of the file that autopkgtest reads."""
    with open(os.path.join(root, "scripts", "packaging", "debian", "tests", "control"), encoding="utf-8") as f:
        return {name: re.split(r",\s*", needs) for name, needs in re.findall(r"^Tests: (\S+)\nDepends: (.+)$", f.read(), re.M)}


class System:
    """A Debian in a folder."""

    def __init__(self, folder, needed):
        self.folder = folder
        source = next((path for path in SOURCES if os.path.exists(path)), None)
        run(["mmdebstrap", "--mode=root", "--variant=apt", "--include=" + ",".join(sorted(needed)), SUITE, folder] + ([source] if source else []))
        self.before = self.files()

    def files(self):
        return {file for file in files_of(self.folder) if not file.startswith(tuple(part + "/" for part in NOT_COMPARED))
                and file not in NOT_COMPARED}

    def run(self, script):
        return run(["unshare", "--mount", "--uts", "--pid", "--fork", "--kill-child", "sh", "-ec", INSIDE, self.folder, script])

    def install(self, debs):
        """No network: what the packages need is there."""
        folder = os.path.join(self.folder, "root", "debs")
        os.mkdir(folder)
        for deb in debs:
            shutil.copy(deb, folder)
        self.run("apt-get install -y --no-install-recommends /root/debs/*.deb")
        shutil.rmtree(folder)

    def check_version(self, version, names):
        for name in names:
            found = self.run("dpkg-query -W -f '${Status} ${Version}' " + name)
            check(found == "install ok installed " + version, "%s is %s" % (name, found))


def chroot(root, folder):
    version, debs = build(root, folder)
    tests = tests_of(root)
    needed = {name for needs in tests.values() for name in needs} - set(FILES)
    check(needed and len(tests) > 1, "tests/control lists no tests")
    system = System(os.path.join(folder, "system"), needed | {"python3"})
    system.install(older(debs, version, folder))
    system.check_version(OLDER, debs)
    system.install(debs.values())
    system.check_version(version, debs)
    check(not [file for file in system.files() if file.endswith("/older")], "the upgrade left files of the older version")
    shutil.copytree(root, os.path.join(system.folder, "root", "tree"), ignore=shutil.ignore_patterns("build*", ".git*"))
    for name in tests:
        system.run("cd /root/tree; export AUTOPKGTEST_TMP=/tmp; scripts/packaging/debian/tests/%s; ls -A /dev/shm >/tmp/left; test ! -s /tmp/left" % name)
    shutil.rmtree(os.path.join(system.folder, "root", "tree"))
    system.run("apt-get purge -y " + " ".join(debs))
    check(system.files() == system.before, "left or lost: %s" % sorted(system.files() ^ system.before))


def why_not(mode):
    """Why this machine cannot run the test, or None."""
    commands = [("dpkg-buildpackage", "dpkg-dev"), ("dh", "debhelper"), ("lintian", "lintian")]
    if mode == "chroot":
        commands = commands[:2] + [("mmdebstrap", "mmdebstrap"), ("unshare", "util-linux")]
        if os.geteuid() != 0:
            return "not root: packages cannot be installed into a folder"
    for command, package in commands:
        if not shutil.which(command):
            return "no %s here (Debian package %s)" % (command, package)
    return None


def main(mode, root):
    why = why_not(mode)
    if why:
        print(why)
        return 1 if MUST_RUN else SKIPPED
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        try:
            {"packages": packages, "chroot": chroot}[mode](root, folder)
        except (Failed, subprocess.TimeoutExpired) as e:
            print("debian: %s" % e)
            return 1
    return 0


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in ("packages", "chroot"):
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
