# SPDX-License-Identifier: MIT
"""ibvdev through MPJ Express's own daemons, one on each of two nodes, and its mpjrun: the recipe of ibvrun(1)."""
import glob
import os
import shutil
import signal
import unittest

import programs
import support
from nodes import wait_for

LIBRARIES = ("log4j-1.2.jar", "commons-io.jar", "commons-codec.jar", "commons-cli.jar")
PORT = 40055  # of Debian's conf file


def setUpModule():
    global CLASSES
    if not os.path.exists(os.path.join(support.MPJ_HOME, "lib", "starter.jar")):
        raise unittest.SkipTest("no MPJ Express with mpjrun in " + support.MPJ_HOME)
    CLASSES = programs.compiled(programs.MPJ_JAR, "tests/launcher/Ring.java")


class Mpjrun(support.ClusterTest):
    count = 2
    shared = True  # shared memory carries the data

    def setUp(self):
        super().setUp()
        self.home = self.path("mpj")
        for folder in ("lib", "logs"):
            os.makedirs(os.path.join(self.home, folder))
        shutil.copytree(os.path.join(support.MPJ_HOME, "conf"), os.path.join(self.home, "conf"))
        shutil.copytree(CLASSES, os.path.join(self.home, "work"))
        for jar in glob.glob(os.path.join(support.MPJ_HOME, "lib", "*.jar")):
            shutil.copy(jar, os.path.join(self.home, "lib"))
        for name in LIBRARIES:
            if os.path.exists("/usr/share/java/" + name):
                shutil.copy("/usr/share/java/" + name, os.path.join(self.home, "lib", name))
        with open(os.path.join(self.home, "work", "machines"), "w", encoding="ascii") as f:
            f.write("n1\nn2\n")

    def java(self, node, jar, *words):
        script = 'cd "$0/work" && exec java -XX:-UsePerfData -Duser.home="$0" -jar "$0/lib/%s" "$@"' % jar
        return self.start("sh", "-c", script, self.home, *[str(w) for w in words], node=node, env={"MPJ_HOME": self.home})

    def listens(self, node):
        return "LISTEN" in self.nodes.on(node, "ss", "-ltn", "sport = %d" % PORT).stdout

    def test_recipe(self):
        daemons = [self.java(i, "daemon.jar", PORT) for i in self.nodes.numbers]
        for i in self.nodes.numbers:
            wait_for(lambda: self.listens(i), "the daemon of node %d listens" % i, support.LIMIT_S)
        job = self.java(1, "starter.jar", "-np", 4, "-dev", "niodev", "-XX:-UsePerfData", "-javaagent:" + programs.JAR,
                        "-Dmpj.device.niodev=xdev.ibvdev.IBVDevice", "-Dibvdev.log=info", "Ring")
        status, out, err = self.finish(job)
        self.assertEqual(status, 0, out + err)
        for rank in range(4):
            self.assertRegex(out + err, r"(?m)^rank %d of 4 sum 10$" % rank)
            self.assertRegex(out + err, r"(?m)^ibvdev\[%d\] INFO .* rank %d of 4 in job" % (rank, rank))  # not niodev
        for name in ("n1", "n2"):
            self.assertRegex(out, r"Starting process <\d> on <%s>" % name)
        for daemon in daemons:
            self.send(daemon, signal.SIGTERM)


if __name__ == "__main__":
    support.main()
