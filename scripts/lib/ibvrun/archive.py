# SPDX-License-Identifier: MIT
"""An archive of the classes that every mpi.* program on ibvdev loads, with our package mpi or that of MPJ Express, which JVMs map instead of reading them.

It is made once for each JVM and set of jars, and kept in the user's cache.  A JVM that does not like it (another heap
size, changed jars) starts without it.  The jars have to be the beginning of its class path.
"""
import hashlib
import os
import subprocess
import sys

from . import pmi

OPTION = "-XX:SharedArchiveFile="
KEPT = 4          # archives; older ones are of jars that have been built again
JAVA = range(13, 22)  # from -XX:ArchiveClassesAtExit on; later ones complain of --enable-native-access, which they need
MAKE_S = 30
USERS = (OPTION, "-Xshare:", "-XX:ArchiveClassesAtExit=", "-XX:+AutoCreateSharedArchive", "-Xlog:cds", "-agentlib:",
         "--", "-javaagent:")  # of modules; a JVM may print that it does not like the archive then


def folder():
    """Where archives are, or None: the cache is that of compiled modules, if this user has one (scripts/ibvrun)."""
    return os.path.join(os.path.dirname(sys.pycache_prefix), "classes") if sys.pycache_prefix else None


def options(java, jars, users, environ, make, library_options):
    """The option that names the archive, in a list; [] where there is none.  make: it may take the time to make it."""
    if folder() is None or java.feature() not in JAVA or any(o.startswith(USERS) for o in users):
        return []
    path = os.path.join(folder(), _key(java, jars) + ".jsa")
    if not os.path.exists(path) and make:
        _make(path, java, jars, environ, library_options)
    try:
        return [OPTION + path] if os.path.getsize(path) else []
    except OSError:
        return []


def without_missing(argv):
    """A command without an archive that is not on this machine."""
    return [w for w in argv if not w.startswith(OPTION + "/") or os.path.exists(w[len(OPTION):])]


def _key(java, jars):
    facts = [os.path.realpath(java.path)]
    for path in [os.path.realpath(java.path)] + jars:
        try:
            info = os.stat(path)
        except OSError:
            continue
        facts.append("%s %d %d" % (path, info.st_size, info.st_mtime_ns))
    return hashlib.sha256("\n".join(facts).encode()).hexdigest()[:24]


def _make(path, java, jars, environ, library_options):
    """An empty file marks that it cannot be made, so that it is not tried again."""
    new = "%s.%d" % (path, os.getpid())
    clean = {n: v for n, v in pmi.without_outer(environ).items()
             if not n.startswith("IBVDEV_") and n not in ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS")}
    argv = [java.path, "-XX:ArchiveClassesAtExit=" + new] + library_options + [
        "-cp", os.pathsep.join(jars), "xdev.ibvdev.ClassArchive", "0", "auto", "ibvdev"]
    try:
        os.makedirs(folder(), mode=0o700, exist_ok=True)
        done = subprocess.run(argv, env=dict(clean, IBVDEV_LAUNCHER="single"), stdin=subprocess.DEVNULL, timeout=MAKE_S,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True, check=False)
        if done.returncode or not os.path.exists(new):
            open(new, "wb").close()
        os.rename(new, path)
        _remove_old()
    except (OSError, subprocess.TimeoutExpired):
        pass  # it only saves time


def _remove_old():
    paths = [os.path.join(folder(), n) for n in os.listdir(folder()) if n.endswith(".jsa")]
    for path in sorted(paths, key=os.path.getmtime)[:-KEPT]:
        os.unlink(path)
