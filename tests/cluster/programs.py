# SPDX-License-Identifier: MIT
"""The programs of the tests, as the words that start one rank: C, MPJ Express (by the agent), xxdev."""
import atexit
import functools
import os
import shutil
import subprocess
import tempfile

from nodes import ROOT

BUILD = os.path.abspath(os.environ.get("IBVDEV_BUILD") or os.path.join(ROOT, "build"))
IBVRUN = os.path.join(ROOT, "scripts", "ibvrun")
JAR = os.path.join(BUILD, "java", "ibvdev.jar")
XXDEV_JAR = os.path.join(BUILD, "java", "xxdev-api.jar")
PROBE = os.path.join(BUILD, "tests", "cluster", "cluster-probe")
MPJ_JAR = os.environ.get("IBVDEV_TEST_MPJ_JAR", "/usr/share/java/mpj.jar")
LOG4J_JAR = "/usr/share/java/log4j-1.2.jar"
MPJ_HOME = "/usr/share/mpj"
JVM = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx64m", "-XX:-UsePerfData"]  # eight on two processors
SOURCES = ("tests/cluster/Report.java", "tests/cluster/XxReport.java")


def compiled(class_path, *sources):
    """The folder of the classes of sources of the checkout, below the build folder, which all nodes see."""
    folder = tempfile.mkdtemp(prefix="cluster-classes-", dir=BUILD)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    subprocess.run(["javac", "-cp", class_path, "-d", folder] + [os.path.join(ROOT, source) for source in sources], check=True)
    return folder


@functools.lru_cache(maxsize=None)
def classes():
    """The folder of the programs of this suite."""
    return compiled(":".join((MPJ_JAR, XXDEV_JAR)), *SOURCES)


def c(*words):
    return [PROBE] + [str(w) for w in words]


def mpj(main, *words):
    """As the guide has it: a plain java command with one option."""
    return (["java", "-javaagent:" + JAR] + JVM + ["-cp", ":".join((classes(), MPJ_JAR, LOG4J_JAR)), main]
            + [str(w) for w in words])


def xxdev(main, *words):
    return ["java"] + JVM + ["-cp", ":".join((classes(), JAR, XXDEV_JAR)), main] + [str(w) for w in words]
