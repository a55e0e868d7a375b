# SPDX-License-Identifier: MIT
"""Host lists, host files, allocations, and which rank goes where."""
import importlib.util
import os
import subprocess
import sys

from support import LauncherTest, main

from ibvrun import bootstrap, branch, hosts, jvm, output, pmi, remote, topology, wire
from ibvrun.errors import UserError


def pairs(found):
    return [(h.name, h.slots) for h in found]


class Lists(LauncherTest):
    def test_lists(self):
        for text, expected in (
                ("a:4,b:2", [("a", 4), ("b", 2)]),
                ("a,b", [("a", None), ("b", None)]),
                ("a b,c", [("a", None), ("b", None), ("c", None)]),
                ("a,b,a", [("a", 2), ("b", 1)]),                       # repeats add up
                ("a:2,b,a:3", [("a", 5), ("b", 1)]),
                ("n[01-03,7]:2", [("n01", 2), ("n02", 2), ("n03", 2), ("n7", 2)]),
                ("r[1-2]n[8-9]", [(n, None) for n in ("r1n8", "r1n9", "r2n8", "r2n9")]),
                ("[2001:db8::1]:4,::1,me@[fe80::1%eth0]", [("2001:db8::1", 4), ("::1", 1), ("me@fe80::1%eth0", 1)]),
                ("root@n1:2,192.0.2.7:3", [("root@n1", 2), ("192.0.2.7", 3)])):
            with self.subTest(text):
                self.assertEqual(pairs(hosts.parse_list(text)), expected)

    def test_bad_lists(self):
        for text in ("", ",", "a:x", "a:-1", "a:0", "a:70000", "-oProxyCommand=x", "a[3-1]", "a[1-9999999]", "a$b", "a'"):
            with self.subTest(text), self.assertRaises(UserError) as caught:
                hosts.parse_list(text)
            self.assertIn(text, str(caught.exception))

    def test_files(self):
        with open(self.path("hosts"), "w", encoding="ascii") as f:
            f.write("# comment\n\na slots=4 max_slots=8 # more\n b:2\nc 3\nd\nd\ne[1-2] slots=2\n")
        self.assertEqual(pairs(hosts.read_file(self.path("hosts"))),
                         [("a", 4), ("b", 2), ("c", 3), ("d", 2), ("e1", 2), ("e2", 2)])
        with open(self.path("hosts"), "w", encoding="ascii") as f:
            f.write("a\nb colour=red\n")
        with self.assertRaisesRegex(UserError, r"hosts, line 2: \"colour=red\""):
            hosts.read_file(self.path("hosts"))

    def test_allocations(self):
        with open(self.path("nodes"), "w", encoding="ascii") as f:
            f.write("a\na\nb\nb\n")
        for environ, expected in (
                ({}, None),
                ({"PBS_NODEFILE": self.path("nodes")}, ([("a", 2), ("b", 2)], "PBS")),
                ({"LSB_DJOB_HOSTFILE": self.path("nodes")}, ([("a", 2), ("b", 2)], "LSF")),
                ({"LSB_MCPU_HOSTS": "x 4 y 2"}, ([("x", 4), ("y", 2)], "LSF")),
                ({"SLURM_JOB_ID": "1", "SLURM_JOB_NODELIST": "n[1-3],m", "SLURM_TASKS_PER_NODE": "4(x2),1(x2)"},
                 ([("n1", 4), ("n2", 4), ("n3", 1), ("m", 1)], "Slurm")),
                ({"SLURM_JOB_ID": "1", "SLURM_JOB_NODELIST": "n1", "SLURM_JOB_CPUS_PER_NODE": "2"},
                 ([("n1", 2)], "Slurm"))):
            found = hosts.allocation(environ)
            self.assertEqual(found and (pairs(found[0]), found[1]), expected)


class Places(LauncherTest):
    def ranks(self, text, np=None, **more):
        return [(n.name, n.ranks) for n in hosts.place(hosts.parse_list(text), np, **more)]

    def test_by_slot(self):
        self.assertEqual(self.ranks("a:2,b:2"), [("a", [0, 1]), ("b", [2, 3])])
        self.assertEqual(self.ranks("a:2,b:2", 3), [("a", [0, 1]), ("b", [2])])
        self.assertEqual(self.ranks("a:2,b:2", 2), [("a", [0, 1])])
        self.assertEqual(self.ranks("a,b", 5), [("a", [0, 1, 2]), ("b", [3, 4])])
        self.assertEqual(self.ranks("a,b"), [("a", [0]), ("b", [1])])
        self.assertEqual(self.ranks("a:1,b", ppn=2), [("a", [0, 1]), ("b", [2, 3])])

    def test_by_node(self):
        self.assertEqual(self.ranks("a:3,b:1,c:2", map_by="node"), [("a", [0, 3, 5]), ("b", [1]), ("c", [2, 4])])
        self.assertEqual(self.ranks("a:2,b:2", 3, map_by="node"), [("a", [0, 2]), ("b", [1])])

    def test_too_many(self):
        with self.assertRaisesRegex(UserError, "-np 5: the hosts have 4 slots"):
            self.ranks("a:2,b:2", 5)

    def test_tree(self):
        def shape(specs):
            return [(s["node"], shape(s["below"])) for s in specs]
        nodes = hosts.place(hosts.parse_list("n[0-6]"), 7)
        self.assertEqual(shape(remote.tree(nodes, 7)), [(i, []) for i in range(7)])
        self.assertEqual(shape(remote.tree(nodes, 2)),
                         [(0, [(1, [(2, [])]), (3, [])]), (4, [(5, []), (6, [])])])
        for count, fan_out in ((1, 1), (5, 1), (100, 32), (1000, 32)):
            specs = remote.tree(hosts.place(hosts.parse_list("n[1-%d]" % count), count), fan_out)
            self.assertEqual(sum((branch.nodes_of(s) for s in specs), []), list(range(count)))
            self.assertLessEqual(len(specs), fan_out)


class Commands(LauncherTest):
    def test_agent_commands(self):
        quoted = "python3 -I -S -c '%s'" % bootstrap.STUB
        plain = ["python3", "-I", "-S", "-c", bootstrap.STUB]
        for words, expected in (
                (["ssh", "-p", "22"], ["ssh", "-p", "22", "h", quoted]),
                (["/opt/bin/blaunch"], ["/opt/bin/blaunch", "h", quoted]),
                (["kubectl", "exec", "-i", "{host}", "--"], ["kubectl", "exec", "-i", "h", "--"] + plain),
                (["start"], ["start", "h"] + plain),
                (["start", "{host}", "sh", "-c", "cd /; {command}"], ["start", "h", "sh", "-c", "cd /; " + quoted]),
                (None, plain)):
            self.assertEqual(bootstrap.command(words, "h", "python3"), expected)

    def test_limits_of_a_jvm(self):
        self.assertEqual(jvm.limits(1, "none", []), [])
        self.assertEqual(jvm.limits(8, "core", []), ["-XX:MaxRAMPercentage=10"])
        self.assertEqual(jvm.limits(8, "core", ["-Xmx1g"]), [])
        self.assertEqual(jvm.limits(8, "none", ["-XX:MaxRAMPercentage=5", "-XX:ActiveProcessorCount=3"]), [])
        options = jvm.limits(4, "none", ["-Xmx1g"])
        self.assertEqual(jvm.processors(options, 64, 4), ["-XX:ActiveProcessorCount=16"])
        self.assertEqual(jvm.processors(options, 4, 4), ["-XX:ActiveProcessorCount=2"])
        self.assertEqual(jvm.processors(options + ["X"], 2, 4), ["X"])

    def test_process_mapping(self):
        self.assertEqual(pmi.process_mapping([0, 0, 1, 1, 2]), "(vector,(0,2,2),(2,1,1))")
        self.assertEqual(pmi.process_mapping([0, 1, 0, 1]), "(vector,(0,2,1),(0,2,1))")

    def test_tags(self):
        self.assertEqual(output.Tag(["rank"], " 3", "h")(), b"[ 3] ")
        self.assertEqual(output.Tag(["rank", "host"], "3", "100%s")(), b"[100%s 3] ")
        self.assertRegex(output.Tag(["rank", "host", "time"], "3", "a%b")(), rb"^\[\d\d:\d\d:\d\d\.\d{3} a%b 3\] $")


class Topology(LauncherTest):
    """A machine of 2 sockets with 2 cores of 2 threads each; one memory node a socket."""

    def setUp(self):
        super().setUp()
        for cpu in range(8):
            folder = self.path("cpu", "cpu%d" % cpu, "topology")
            os.makedirs(folder)
            core = cpu % 4
            for name, text in (("thread_siblings_list", "%d,%d" % (core, core + 4)),
                               ("physical_package_id", str(core // 2))):
                with open(os.path.join(folder, name), "w", encoding="ascii") as f:
                    f.write(text + "\n")
        for node, cpus in enumerate(("0-1,4-5", "2-3,6-7", "")):
            os.makedirs(self.path("node", "node%d" % node))
            with open(self.path("node", "node%d" % node, "cpulist"), "w", encoding="ascii") as f:
                f.write(cpus + "\n")

    def bindings(self, how, count, wide=False, allowed=range(8)):
        return [topology.binding(how, i, count, wide, allowed, self.folder) for i in range(count)]

    def test_bindings(self):
        self.assertEqual(self.bindings("none", 1), [None])
        self.assertEqual(self.bindings("core", 2), [[0, 4], [1, 5]])
        self.assertEqual(self.bindings("core", 2, wide=True), [[0, 1, 4, 5], [2, 3, 6, 7]])
        self.assertEqual(self.bindings("core", 3, wide=True), [[0, 4], [1, 5], [2, 6]])
        self.assertEqual(self.bindings("core", 8), [[c] for c in range(8)])  # more ranks than cores: threads
        self.assertEqual(self.bindings("core", 3, allowed=[2, 3]), [[2], [3], [2]])
        self.assertEqual(self.bindings("numa", 4), [[0, 1, 4, 5]] * 2 + [[2, 3, 6, 7]] * 2)
        self.assertEqual(self.bindings("numa", 1), [[0, 1, 4, 5]])
        self.assertEqual(self.bindings("numa", 2, allowed=[6, 7]), [[6, 7], [6, 7]])

    def test_cpu_lists(self):
        self.assertEqual(topology.cpu_list("0-3,8\n"), [0, 1, 2, 3, 8])
        self.assertEqual(topology.shown([8, 0, 1, 2, 3]), "0-3,8")


class Boot(LauncherTest):
    def test_source_and_code(self):
        """An agent starts from our code, and from the source where Python is another release."""
        for magic in (importlib.util.MAGIC_NUMBER, b"none"):
            done = subprocess.run([sys.executable, "-I", "-S", "-c", bootstrap.STUB], capture_output=True, timeout=60,
                                  input=bootstrap.message(bootstrap.read_modules(), magic), check=False)
            self.assertEqual((done.stdout, done.stderr), (wire.MAGIC, b""))  # and ends with its input

    def test_a_cut_input(self):
        text = bootstrap.message(bootstrap.read_modules())
        for length in (0, 100, 5000):
            done = subprocess.run([sys.executable, "-I", "-S", "-c", bootstrap.STUB], capture_output=True, timeout=60,
                                  input=text[:length], check=False)
            self.assertEqual(done.stdout, b"")

    def test_an_old_python_is_named(self):
        text = bootstrap.LOADER.format(oldest=(99, 0), text="99.0", sizes=[], magic=b"")
        with self.assertRaisesRegex(SystemExit, "99.0 or later is needed"):
            exec(text, {})


if __name__ == "__main__":
    main()
