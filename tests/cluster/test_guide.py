# SPDX-License-Identifier: MIT
"""The commands of the guide "On a cluster" (java/docs/on-a-cluster.md), run as they stand there.

A block ```sh TAG is run by the test of that tag, from a folder that has the guide's programs, with the prefix of an
installation in place of /opt/ibvdev.  A block ```sh run is run by tests/java/docs/guide.py.
"""
import os
import re
import subprocess

import engines
import programs
import support
from nodes import ROOT, wait_for

GUIDE = os.path.join(ROOT, "java", "docs", "on-a-cluster.md")
PREFIX = "/opt/ibvdev"
NP = 8
SHIMS = {"mpirun": "mpirun.openmpi", "mpiexec": "mpiexec.hydra"}  # Debian's alternatives may name either


def blocks():
    """{(language, tag): [texts]} of the guide's tagged blocks."""
    found = {}
    pattern = re.compile(r"^( *)```(\w+) (\w+)\n(.*?)^ *```$", re.M | re.S)
    for match in pattern.finditer(support.read(GUIDE)):
        indent, language, tag, text = match.groups()
        found.setdefault((language, tag), []).append(re.sub("(?m)^" + indent, "", text))
    return found


class Guide(support.ClusterTest):
    shared = True
    engine_class = engines.SrunPmix

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.blocks = blocks()
        cls.home = os.path.join(cls.nodes.folder, "home")
        cls.prefix = os.path.join(cls.nodes.folder, "usr/local")
        subprocess.run(["meson", "install", "-C", programs.BUILD, "--no-rebuild", "--quiet"], check=True,
                       env=dict(os.environ, DESTDIR=cls.nodes.folder), stdout=subprocess.DEVNULL)
        os.makedirs(os.path.join(cls.home, "classes"))
        os.mkdir(os.path.join(cls.home, "bin"))
        for name, target in SHIMS.items():
            cls.script(name, 'exec %s "$@"' % target)
        cls.compile()

    @classmethod
    def script(cls, name, text):
        """A command of this name on the path of the blocks."""
        with open(os.path.join(cls.home, "bin", name), "w", encoding="ascii") as f:
            f.write("#!/bin/sh\n%s\n" % text)
        os.chmod(f.name, 0o755)

    @classmethod
    def compile(cls):
        for (language, tag), texts in cls.blocks.items():
            if language in ("java", "c"):
                with open(os.path.join(cls.home, "%s.%s" % (tag, language)), "w", encoding="utf-8") as f:
                    f.write(texts[0])
        pc = next(f for f, _, names in os.walk(cls.prefix) if "ibvx.pc" in names)
        env = dict(os.environ, PKG_CONFIG_PATH=pc, PKG_CONFIG_SYSROOT_DIR=cls.nodes.folder)
        subprocess.run(["javac", "-cp", programs.MPJ_JAR, "-d", os.path.join(cls.home, "classes"),
                        os.path.join(ROOT, "java/examples/HelloIbvdev.java")], check=True)
        subprocess.run(["bash", "-e"], input=cls.installed(cls.blocks["sh", "compile"][0]), text=True, cwd=cls.home, env=env,
                       check=True)

    @classmethod
    def installed(cls, text):
        return text.replace(PREFIX, cls.prefix)

    def shell(self, tag, index=0, setup=True, env=None):
        """Standard output of a block that succeeds."""
        text = self.blocks["sh", "setup"][0] if setup else ""
        text = self.installed("set -e\n" + text + self.blocks["sh", tag][index])
        library = next(f for f, _, names in os.walk(self.prefix) if "libibvdev.so" in names)
        more = {"PATH": "%s/bin:%s" % (self.home, os.environ["PATH"]), "OMPI_ALLOW_RUN_AS_ROOT": "1",
                "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "LD_LIBRARY_PATH": library, "IBVDEV_BUILD": ""}
        more.update(env or {})
        out, _ = self.succeed("sh", "-c", "cd %s && exec bash -c \"$1\"" % self.home, "sh", text, env=more)
        return out

    def check_hello(self, out, times=1):
        self.assertEqual(sorted(re.findall(r"^rank (\d) of 8\b", out, re.M)), sorted([str(r) for r in range(NP)] * times), out)

    def check_nodes(self, out):
        self.assertEqual(sorted(re.findall(r"^rank (\d) of 8 on device .*, host n(\d)", out, re.M)),
                         [(str(r), str(r // 2 + 1)) for r in range(NP)], out)

    def test_every_block_is_run_or_declared_not_to_be(self):
        known = {"run", "setup", "slurm", "sbatch", "mpirun", "mpiexec", "ssh", "pbs", "lsf", "compile", "info"}
        self.assertEqual({tag for language, tag in self.blocks if language == "sh"}, known)
        untagged = re.findall(r"^ *```(sh|bash)$", support.read(GUIDE), re.M)
        self.assertEqual(untagged, [], "a block to be copied has no tag")

    def test_slurm_mpj_express(self):
        self.check_nodes(self.shell("slurm"))

    def test_slurm_xxdev_and_c(self):
        self.check_hello(self.shell("slurm", 1), times=2)

    def test_sbatch(self):
        script = os.path.join(self.home, "job.sh")
        with open(script, "w", encoding="utf-8") as f:
            f.write(self.installed(self.blocks["sh", "sbatch"][0]))
        out, _ = self.succeed("sh", "-c", "cd %s && sbatch job.sh" % self.home)
        number = re.search(r"Submitted batch job (\d+)", out).group(1)
        result = os.path.join(self.home, "hello.%s.out" % number)
        wait_for(lambda: number not in self.engine.slurm.ask("squeue", "-h", "-o", "%i").split(), "the job ends", 60)
        self.check_nodes(support.read(result))

    def test_mpirun(self):
        self.check_nodes(self.shell("mpirun"))

    def test_mpiexec(self):
        self.check_nodes(self.shell("mpiexec"))

    def test_ssh(self):
        self.check_hello(self.shell("ssh"), times=2)

    def test_pbs(self):
        nodefile = self.path("nodefile")
        with open(nodefile, "w", encoding="ascii") as f:
            f.write("".join(name + "\n" for name in self.nodes.names() for _ in range(2)))
        self.check_nodes(self.shell("pbs", setup=False, env={"PBS_NODEFILE": nodefile, "PBS_O_WORKDIR": self.home}))

    def test_lsf(self):
        """blaunch, in its place: ssh without options."""
        self.script("blaunch", '[ "$1" != -n ] || shift\nexec ssh "$@"')
        self.check_nodes(self.shell("lsf", setup=False, env={
            "LSB_MCPU_HOSTS": " ".join(name + " 2" for name in self.nodes.names()), "LSB_JOBID": "1"}))

    def test_info(self):
        out = self.shell("info")
        self.assertIn("chosen:      pmi ", out)
        self.assertIn("8 ranks met", out)


if __name__ == "__main__":
    support.main()
