# SPDX-License-Identifier: MIT
"""The engines that start ranks, each as the command that starts `np` ranks of a program from node n1.

An engine promises: words(np, program) is run on n1 with environment(); the ranks go to the nodes in turn, np / nodes
on each, in the order of the nodes.  stdin: the ranks that read standard input; what is different between engines, and
documented as such in the guide "On a cluster", is a field here.
"""
import os
import shutil

import slurm
import world

FORWARDED = ("IBVDEV_TEST_WORD", "IBVDEV_LOG", "IBVDEV_START_TIMEOUT_MS", "MPJ_HOME", "JAVA_TOOL_OPTIONS", "PATH")


class Engine:
    name = ""
    stdin_to_all = False
    killed_rank_ends_job = True
    leftovers = ()  # beginnings of files that the engine itself leaves when it is killed

    def __init__(self, nodes):
        self.nodes = nodes

    @staticmethod
    def why_not():
        return None

    def environment(self):
        return {}

    def close(self):
        pass

    def _hosts(self, np):
        per_node = np // self.nodes.count
        return ",".join("%s:%d" % (name, per_node) for name in self.nodes.names())

    def words(self, np, program):
        raise NotImplementedError


class Srun(Engine):
    """srun --mpi=KIND; a killed rank ends the job because the guide says -K1."""
    kind = ""
    stdin_to_all = True

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
    leftovers = ("/tmp/ompi.", "/tmp/pmix")

    @staticmethod
    def why_not():
        return None if shutil.which(Mpirun.command) else "no mpirun.openmpi (Debian package openmpi-bin)"

    def words(self, np, program):
        words = [self.command, "--allow-run-as-root", "--host", self._hosts(np), "-np", str(np), "--map-by", "slot"]
        for name in FORWARDED:
            words += ["-x", name] if name in os.environ or name == "IBVDEV_TEST_WORD" else []
        return words + program


class Hydra(Engine):
    """MPICH's mpiexec, version 4 (Debian)."""
    name = "hydra"
    command = "mpiexec.hydra"

    @staticmethod
    def why_not():
        return None if shutil.which(Hydra.command) else "no mpiexec.hydra (Debian package mpich)"

    def words(self, np, program):
        return [self.command, "-launcher", "ssh", "-hosts", self._hosts(np), "-n", str(np)] + program


ALL = {engine.name: engine for engine in (SrunPmix, SrunPmi2, SrunNone, Mpirun, Hydra)}
