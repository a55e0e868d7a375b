#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The native library for 64-bit Arm, cross-compiled and run by qemu-user beside a Debian for arm64 in a folder.

usage: aarch64.py artifact|suites ROOT BUILD

artifact  makes the Maven artifacts by --cross linux-aarch_64, twice; looks at the library; two ranks of the guide's C program and
          two ranks of its Java program, in a JVM for arm64, talk by it
suites    builds the C tests for arm64 and runs those of the suites unit, proto, shm and coll

The emulator does not reorder accesses to memory, has pages of 4 KB and no process_vm_readv(2): the memory order of Arm, large pages
and the single copy are not tested.
"""
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree
import zipfile

from artifacts import Failed, Guide, check, check_jar, check_same, content, free_port, matches

SKIPPED = 77
MUST_RUN = bool(os.environ.get("IBVDEV_TEST_CI"))  # what cannot run in continuous integration has failed
SECONDS = 1500  # a limit for hangs
SUITE = "bookworm"
CLASSIFIER = "linux-aarch_64"
ENTRY = "META-INF/native/linux-aarch64/libibvdev.so"
GLIBC = "2.28"
AARCH64 = 183  # ELF's number of the machine
COMPILER = "aarch64-linux-gnu-gcc"
EMULATOR = "qemu-aarch64-static"
COMMANDS = [(COMPILER, "gcc-aarch64-linux-gnu"), (EMULATOR, "qemu-user-static"), ("mmdebstrap", "mmdebstrap"), ("readelf", "binutils")]
# What programs for arm64 need: to be linked, and to run.
PACKAGES = ["libc6", "openjdk-17-jre-headless", "libcmocka-dev", "libibverbs-dev", "librdmacm-dev"]
# shm_lease copies by process_vm_readv(2).
WITHOUT = {"shm_lease"}
CROSS = """[binaries]
exe_wrapper = ['%s', '-L', '%s']
[properties]
sys_root = '%s'
pkg_config_libdir = '%s/usr/lib/aarch64-linux-gnu/pkgconfig'
"""


def run(command, folder, **more):
    print("$ " + " ".join(command), flush=True)
    done = subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", timeout=SECONDS, **more)
    print(done.stdout, flush=True)
    check(done.returncode == 0, "exit status %d of %s" % (done.returncode, command))
    return done.stdout


def ranks(command, folder, env=None):
    """Two of them; command(rank). What both print."""
    print("$ " + " ".join(command(0)) + ", and rank 1", flush=True)
    started = [subprocess.Popen(command(rank), cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True) for rank in (0, 1)]
    try:
        printed = [process.communicate(timeout=300)[0] for process in started]
    finally:
        for process in started:
            process.kill()
    print("".join(printed), flush=True)
    check([process.returncode for process in started] == [0, 0], "a rank failed: %s" % [process.returncode for process in started])
    return "".join(printed)


def make_debian(folder):
    """Packages for arm64, extracted; their own scripts are not run."""
    root = os.path.join(folder, "arm64")
    run(["mmdebstrap", "--variant=extract", "--architectures=arm64", "--include=" + ",".join(PACKAGES), SUITE, root], folder)
    return root


def write_conf(folder):
    path = os.path.join(folder, "job.conf")
    with open(path, "w", encoding="ascii") as f:
        f.write("2\n131072\n")
        for rank in (0, 1):
            f.write("localhost@%d@%d@%d@0\n" % (free_port(), free_port(), rank))
    return path


def exported(library):
    printed = subprocess.run(["readelf", "--wide", "--dyn-syms", library], check=True, capture_output=True, text=True).stdout
    # Without the sizes; what is not defined here, and what is not global, is left out.
    return {line.split()[7] for line in printed.splitlines() if re.search(r" (FUNC|OBJECT) +GLOBAL +DEFAULT +\d", line)}


def check_library(root, build, library):
    """Machine, symbols of glibc, and the same functions as on this machine."""
    check(int.from_bytes(content(library)[18:20], "little") == AARCH64, "%s is for another machine" % library)
    run([sys.executable, os.path.join(root, "tests", "lint", "needed.py"), library, GLIBC], root)
    here = exported(os.path.join(build, "native", "libibvdev.so"))
    there = exported(library)
    check(any(name.startswith("Java_") for name in there), "%s has no functions for Java" % library)
    check(here == there, "other functions are exported than on this machine: %s" % sorted(here ^ there))


def check_artifact(folder, build, root):
    """The path of the library out of its jar."""
    repository = os.path.join(folder, "repository")
    maven = [os.path.join(root, "scripts", "packaging", "maven"), "--build", build, "--no-javadoc", "--cross", CLASSIFIER]
    run(maven + [repository], folder)
    os.mkdir(os.path.join(folder, "elsewhere"))
    run(maven + [os.path.join(folder, "second")], folder, env=dict(os.environ, TMPDIR=os.path.join(folder, "elsewhere"), LC_ALL="C"))
    check_same(repository, os.path.join(folder, "second"))
    jar = glob.glob(os.path.join(repository, "ibvdev", "ibvdev", "*", "*-%s.jar" % CLASSIFIER))
    check(len(jar) == 1, "the jars with the classifier: %s" % jar)
    check_jar(jar[0])
    pom = xml.etree.ElementTree.parse(glob.glob(os.path.join(os.path.dirname(jar[0]), "*.pom"))[0]).getroot()
    check(CLASSIFIER in [found.text for found in pom.iter("{http://maven.apache.org/POM/4.0.0}classifier")], "the POM does not name it")
    with zipfile.ZipFile(jar[0]) as z:
        check(sorted(z.namelist()) == ["META-INF/LICENSE", "META-INF/MANIFEST.MF", ENTRY], "the jar holds %s" % z.namelist())
        library = os.path.join(folder, "libibvdev.so.0")
        with open(library, "wb") as f:
            f.write(z.read(ENTRY))
    check_library(root, build, library)
    return library


def talk_in_c(root, debian, library, folder):
    """The program of the guide, as a user of the library links it."""
    with open(os.path.join(root, "native", "docs", "the-c-library.md"), encoding="utf-8") as f:
        program = re.search(r"^```c hello\n(.*?)^```$", f.read(), re.M | re.S).group(1)
    with open(os.path.join(folder, "hello.c"), "w", encoding="utf-8") as f:
        f.write(program)
    run([COMPILER, "-Wall", "-Wextra", "-Werror", "-I", os.path.join(root, "native"), "hello.c", library, "-o", "hello"], folder)
    conf = write_conf(folder)
    emulator = [EMULATOR, "-L", debian, "-E", "LD_LIBRARY_PATH=" + folder]
    matches('rank 1 got "hello"\n', ranks(lambda rank: emulator + [os.path.join(folder, "hello"), str(rank), conf], folder))


def talk_in_java(root, debian, folder):
    """The guide's program by a JVM for arm64, which chooses the jar by its os.arch."""
    guide = Guide(root, folder)
    jars = ":".join(name for name in glob.glob(os.path.join(folder, "repository", "**", "*.jar"), recursive=True) if "-sources" not in name)
    run(["javac", "--release", "11", "-cp", jars, "-d", "classes", "First.java"], folder)
    java = [EMULATOR, "-L", debian, os.path.join(debian, "usr", "lib", "jvm", "java-17-openjdk-arm64", "bin", "java"), "-Xcheck:jni",
            "-cp", jars + ":classes"]
    printed = run(java + ["xdev.ibvdev.Info"], folder)
    check("os.arch: aarch64" in printed and "native library: ibvdev.jar!/" + ENTRY in printed, "another library is loaded")
    conf = write_conf(folder)
    matches(guide.block["output", ""], ranks(lambda rank: java + ["First", str(rank), conf, "ibvdev"], folder))


def artifact(root, build, folder):
    debian = make_debian(folder)
    library = check_artifact(folder, build, root)
    talk_in_c(root, debian, library, folder)
    talk_in_java(root, debian, folder)


def suites(root, build, folder):
    debian = make_debian(folder)
    cross = os.path.join(folder, "arm64.ini")
    with open(cross, "w", encoding="utf-8") as f:
        f.write(CROSS % (EMULATOR, debian, debian, debian))
    tests = os.path.join(folder, "build")
    files = [os.path.join(root, "scripts", "packaging", "aarch64-linux-gnu.ini"), cross]
    run(["meson", "setup"] + ["--cross-file=" + name for name in files] + ["-Djava=disabled", "-Dverbs=enabled", tests, root], folder)
    run(["ninja", "-C", tests], folder)
    wanted = ["--suite=" + name for name in ("unit", "proto", "shm", "coll")]
    listed = run(["meson", "test", "-C", tests, "--list"] + wanted, folder)
    # A line is "project:suite / test".
    names = [line.split(" / ")[1].strip() for line in listed.splitlines() if " / " in line]
    check(WITHOUT <= set(names) and len(names) > 30, "the tests are other ones: %s" % names)
    run(["meson", "test", "-C", tests, "--no-rebuild", "--print-errorlogs", "--num-processes", "2", "-t", "3"] + wanted
        + sorted(set(names) - WITHOUT), folder, env=dict(os.environ, IBVDEV_TEST_QUICK="1"))


def main(mode, root, build):
    for command, package in COMMANDS:
        if not shutil.which(command):
            print("no %s here (Debian package %s)" % (command, package))
            return 1 if MUST_RUN else SKIPPED
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        try:
            {"artifact": artifact, "suites": suites}[mode](root, build, folder)
        except (Failed, subprocess.TimeoutExpired) as e:
            print("aarch64: %s" % e)
            return 1
    return 0


if __name__ == "__main__":
    if len(sys.argv) != 4 or sys.argv[1] not in ("artifact", "suites"):
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
