#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""meson install puts everything where a distribution expects it, and it works from there.

usage: install.py ROOT BUILD PREFIX BINDIR LIBDIR DATADIR MANDIR MPJ_JAR
(MPJ_JAR is empty in a build without Java)
"""
import os
import subprocess
import sys
import tempfile
import zipfile

HELLO = ["the message went 0 -> 1 -> 0"]


def run(command, **more):
    print("$ " + " ".join(command), flush=True)
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=100, **more)
    print(done.stdout, flush=True)
    return done


def expected(bindir, libdir, datadir, mandir, java):
    files = [libdir + "/libibvdev.so", libdir + "/libibvdev.so.0", libdir + "/pkgconfig/ibvx.pc", "include/ibvx.h", "include/ibvx_coll.h"]
    files += [mandir + "/" + page for page in
              ("man1/ibvrun.1", "man1/ibvdev-info.1", "man3/ibvx.3", "man3/ibvx_coll.3", "man5/ibvdev.conf.5")]
    files += [bindir + "/ibvrun", bindir + "/ibvdev-info"]
    if java:
        files += [datadir + "/java/ibvdev.jar", datadir + "/java/ibvdev-mpi.jar"]
    return files


def manifest(jar):
    with zipfile.ZipFile(jar) as z:
        return z.read("META-INF/MANIFEST.MF").splitlines()  # Meson writes other ends of lines


def hello(root, top, bindir, work, mpj_jar):
    source = os.path.join(root, "java", "examples", "HelloIbvdev.java")
    if run(["javac", "-cp", mpj_jar, "-d", work, source]).returncode:
        return 1
    clean = {name: value for name, value in os.environ.items()
             if not name.startswith("IBVDEV_") and name != "LD_LIBRARY_PATH"}
    job = run([os.path.join(top, bindir, "ibvrun"), "-np", "2", "-cp", work, "HelloIbvdev"], env=clean, cwd="/")
    return 0 if job.returncode == 0 and all(line in job.stdout.splitlines() for line in HELLO) else 1


def main(root, build, prefix, bindir, libdir, datadir, mandir, mpj_jar):
    failed = 0
    with tempfile.TemporaryDirectory() as work:
        dest = os.path.join(work, "dest")
        if run(["meson", "install", "-C", build, "--no-rebuild", "--destdir", dest]).returncode:
            return 1
        top = dest + prefix
        for path in expected(bindir, libdir, datadir, mandir, mpj_jar):
            if not os.path.exists(os.path.join(top, path)):
                print("not installed: " + path)
                failed = 1
        for folder, _, files in os.walk(dest):
            for name in files:
                if name.endswith((".pyc", ".a", ".o")):
                    print("should not be installed: " + os.path.join(folder, name)[len(dest):])
                    failed = 1
        for jar in ("ibvdev.jar", "ibvdev-mpi.jar", "xxdev-api.jar") if mpj_jar and not failed else ():
            if manifest(os.path.join(top, datadir, "java", jar)) != manifest(os.path.join(build, "java", jar)):
                print("installed with another manifest: " + jar)  # Meson edits it
                failed = 1
        if mpj_jar and not failed:
            failed = hello(root, top, bindir, work, mpj_jar)
    return failed


if __name__ == "__main__":
    if len(sys.argv) != 9:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
