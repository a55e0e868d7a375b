# SPDX-License-Identifier: MIT
"""ibvdev through MPJ Express's own daemon and mpjrun, whose jars are used as they are.

mpjrun knows no device of the name ibvdev; the agent of ibvdev.jar makes the name niodev mean it.  Debian's package
lacks log4j beside its jars, so MPJ_HOME is a copy that has it: the recipe of ibvrun(1).
"""
import glob
import os
import re
import shutil
import socket
import subprocess
import tempfile
import unittest

import support
from support import LauncherTest, main, wait_for

DEBIAN_HOME = "/usr/share/mpj"
LIBRARIES = ("log4j-1.2.jar", "commons-io.jar", "commons-codec.jar", "commons-cli.jar")


def setUpModule():
    global CLASSES, JAR
    if not os.path.exists(os.path.join(DEBIAN_HOME, "lib", "starter.jar")):
        raise unittest.SkipTest("no MPJ Express with mpjrun in " + DEBIAN_HOME)
    build = os.environ.get("IBVDEV_BUILD") or os.path.join(os.path.dirname(support.SCRIPTS), "build")
    JAR = os.path.join(build, "java", "ibvdev.jar")
    CLASSES = support.compile_java("Ring.java")


def listens(port):
    try:
        socket.create_connection(("127.0.0.1", port), 5).close()
        return True
    except OSError:
        return False


class Mpjrun(LauncherTest):
    def setUp(self):
        super().setUp()
        self.home = tempfile.mkdtemp(prefix="mpj-home-")  # mpjrun and its daemon cut paths at blanks
        self.addCleanup(shutil.rmtree, self.home, ignore_errors=True)
        for folder in ("lib", "conf", "logs", "work"):
            os.mkdir(os.path.join(self.home, folder))
        for jar in glob.glob(os.path.join(DEBIAN_HOME, "lib", "*.jar")):
            shutil.copy(jar, os.path.join(self.home, "lib"))  # java looks for siblings where a link leads to
        for name in LIBRARIES:
            if os.path.exists("/usr/share/java/" + name):
                shutil.copy("/usr/share/java/" + name, os.path.join(self.home, "lib", name))
        shutil.copytree(CLASSES, os.path.join(self.home, "work"), dirs_exist_ok=True)
        with open(os.path.join(self.home, "work", "machines"), "w", encoding="ascii") as f:
            f.write("localhost\n")
        self.ports = self.write_conf()

    def write_conf(self):
        """Debian's conf file with ports of our own."""
        names = ("mpjdaemon.port.1", "mpjdaemon.port.2", "mpjrun.port.1")
        sockets = [socket.socket() for _ in names]
        for s in sockets:
            s.bind(("", 0))
        ports = [s.getsockname()[1] for s in sockets]
        for s in sockets:
            s.close()
        with open(os.path.join(DEBIAN_HOME, "conf", "mpjexpress.conf"), encoding="utf-8") as f:
            text = f.read()
        for name, port in zip(names, ports):
            text, count = re.subn(r"(?m)^mpjexpress\.%s=.*$" % re.escape(name), "mpjexpress.%s=%d" % (name, port), text)
            self.assertEqual(count, 1, name)
        with open(os.path.join(self.home, "conf", "mpjexpress.conf"), "w", encoding="utf-8") as f:
            f.write(text)
        return ports

    def java(self, jar, *words):
        process = subprocess.Popen(["java", "-Duser.home=" + self.home, "-jar", os.path.join(self.home, "lib", jar)]
                                   + [str(w) for w in words], cwd=os.path.join(self.home, "work"), text=True,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   env=self.environ(MPJ_HOME=self.home))
        self.jobs.append(process)
        return process

    def test_recipe(self):
        daemon = self.java("daemon.jar", self.ports[0])
        wait_for(lambda: daemon.poll() is not None or listens(self.ports[0]), "the daemon listens")
        self.assertIsNone(daemon.poll(), "the daemon ended")
        job = self.java("starter.jar", "-np", 2, "-dev", "niodev", "-javaagent:" + JAR,
                        "-Dmpj.device.niodev=xdev.ibvdev.IBVDevice", "-Dibvdev.log=info", "Ring")
        status, out, _ = self.finish(job)
        self.assertEqual(status, 0, out)
        for rank in range(2):
            self.assertRegex(out, r"(?m)^rank %d of 2 sum 3$" % rank)
            self.assertRegex(out, r"(?m)^ibvdev\[%d\] INFO .* rank %d of 2 in job" % (rank, rank))  # not niodev


if __name__ == "__main__":
    main()
