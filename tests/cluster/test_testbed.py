# SPDX-License-Identifier: MIT
"""The nodes and the engines themselves, with trivial programs: what the other tests of this suite rely on."""
import os
import signal
import subprocess
import sys

import engines
import programs
import support
from nodes import namespace, wait_for

CONNECT = "import socket, sys; socket.create_connection((sys.argv[1], 22), 1)"
# node, then the rank by whatever the engine calls it
HOST_AND_RANK = "echo $(hostname) ${PMIX_RANK:-${PMI_RANK:-$SLURM_PROCID}}"


class Testbed(support.ClusterTest):
    def reaches(self, i, address):
        return self.nodes.on(i, sys.executable, "-c", CONNECT, address, check=False).returncode == 0

    def kinds(self, kind):
        return {namespace(self.nodes._first(i), kind) for i in self.nodes.numbers}


class Isolated(Testbed):
    def test_namespaces(self):
        for kind in ("net", "uts", "mnt", "pid", "ipc"):
            self.assertEqual(len(self.kinds(kind)), 4, kind)
        self.assertNotIn(namespace("self", "net"), self.kinds("net"))
        self.assertEqual(self.nodes.on(3, "hostname").stdout, "n3\n")

    def test_ssh_over_both_families(self):
        for name, address in (("n2", "192.0.2.1"), ("n2-6", "2001:db8:77::1")):
            out, _ = self.succeed("ssh", name, "hostname; echo $SSH_CONNECTION")
            self.assertEqual(out.split()[:2], ["n2", address])

    def test_status_and_streams_of_a_command(self):
        job = self.start("sh", "-c", "cat; echo wrong >&2; exit 5", stdin=subprocess.PIPE)
        self.assertEqual(self.finish(job, "data"), (5, "data", "wrong\n"))

    def test_signals_reach_the_command(self):
        job = self.start("sh", "-c", "trap 'exit 7' INT; sleep 1000")
        wait_for(lambda: len(self.left()) >= 3, "it runs")
        self.interrupt(job)
        self.assertEqual(self.finish(job)[0], 7)

    def test_a_cut_node_is_cut(self):
        self.assertTrue(self.reaches(1, "n3"))
        self.nodes.cut(3)
        self.assertFalse(self.reaches(1, "n3"))
        self.assertTrue(self.reaches(1, "n2"))
        self.nodes.mend(3)
        wait_for(lambda: self.reaches(1, "n3"), "the node is back")

    def test_what_is_left_is_found(self):
        """A check that finds nothing must be able to find something."""
        server = "import socket, time; s = socket.create_server(('', 7777)); time.sleep(1000)"
        job = self.start(sys.executable, "-c", server, node=2)
        self.nodes.on(3, "sh", "-c", "echo > /tmp/forgotten; echo > /dev/shm/forgotten")
        wait_for(lambda: any("7777" in line for line in self.left()), "the port is found")
        text = "\n".join(self.left())
        for pattern in ("n2: process .*socket", "n2: port tcp .*:7777", "n3: file /tmp/forgotten", "n3: file /dev/shm/forgotten"):
            self.assertRegex(text, pattern)
        with self.assertRaises(AssertionError):
            self.assert_nothing_left(limit_s=0.1)
        self.nodes.on(3, "rm", "/tmp/forgotten", "/dev/shm/forgotten")
        self.send(job, signal.SIGKILL)
        self.finish(job)

    def test_checkout_and_home_are_seen_everywhere(self):
        with open(self.path("file"), "w", encoding="ascii") as f:
            f.write("seen")
        for i in self.nodes.numbers:
            self.assertEqual(self.nodes.on(i, "cat", self.path("file")).stdout, "seen")
            self.assertEqual(self.nodes.on(i, "cat", programs.IBVRUN).stdout, support.read(programs.IBVRUN))
        self.assertFalse(os.path.exists("/tmp/forgotten"))


class Shared(Testbed):
    shared = True

    def test_namespaces(self):
        for kind, count in (("net", 4), ("uts", 4), ("pid", 1), ("ipc", 1)):
            self.assertEqual(len(self.kinds(kind)), count, kind)

    def test_shared_memory_is_common(self):
        self.nodes.on(1, "sh", "-c", "echo common > /dev/shm/common")
        self.assertEqual(self.nodes.on(4, "cat", "/dev/shm/common").stdout, "common\n")
        self.nodes.on(2, "rm", "/dev/shm/common")


class EngineCase:
    """Every engine starts two ranks on each node, in order, and reports a failing one."""

    def test_ranks(self):
        out, _ = self.succeed(*self.engine.words(8, ["sh", "-c", HOST_AND_RANK]))
        self.assertEqual(sorted(out.splitlines()), ["n%d %d" % (r // 2 + 1, r) for r in range(8)])

    def test_status(self):
        status, _, err = self.run_job(*self.engine.words(8, ["sh", "-c", "exit 5"]))
        self.assertEqual(status, 5, err)


for _name, _engine in engines.ALL.items():
    _class = "Engine_" + _name.replace("-", "_")
    globals()[_class] = type(_class, (EngineCase, support.ClusterTest), {"engine_class": _engine})
del EngineCase, _name, _engine, _class

if __name__ == "__main__":
    support.main()
