# SPDX-License-Identifier: MIT
"""Who is measured, and how each one is started: two ranks, each pinned to a processor of its own."""
import os
import shutil
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Contestant:
    name: str  # for --only
    title: str  # of its column
    key: tuple  # (tool, level, device), as its JSON lines say
    command: list  # without the options of the harness
    environment: dict = field(default_factory=dict)
    ours: bool = False  # a failure is ours


class Places:
    """The checkout and its build folder."""

    def __init__(self, environ):
        here = os.path.dirname(os.path.realpath(__file__))
        self.root = os.path.normpath(os.path.join(here, "..", "..", ".."))
        self.build = os.path.abspath(environ.get("IBVDEV_BUILD") or os.path.join(self.root, "build"))

    def program(self, name):
        return os.path.join(self.build, "bench", "c", name)

    def bench_jar(self):
        return os.path.join(self.build, "bench", "java", "bench.jar")

    def ibvrun(self, *more):
        return [os.path.join(self.root, "scripts", "ibvrun"), "-np", "2", "--bind", "core", *more]


MPI_AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
               "OMPI_MCA_btl_base_warn_component_unused": "0"}


def _java(places, device, level):
    command = places.ibvrun("-dev", device, "-cp", places.bench_jar(), "-Xms256m", "ibvbench.PingPong",
                            "--level", level)
    return Contestant("%s-%s" % (level, device), "%s %s" % (level, device), ("java", level, device), command,
                      {"IBVDEV_BUILD": places.build}, ours=device == "ibvdev")


def _openmpi(places, device, *mca):
    command = ["mpirun.openmpi", "-np", "2", "--oversubscribe", "--bind-to", "none", *mca,
               places.program("bench_openmpi"), "--tool", "openmpi", "--device", device, "--pin"]
    title = "Open MPI C" if device == "default" else "Open MPI C " + device
    return Contestant("openmpi" if device == "default" else "openmpi-nocma", title, ("openmpi", "c", device),
                      command, MPI_AS_ROOT)


def _floor(places, name):
    return Contestant("floor-" + name, "floor " + name, ("floor", "c", name),
                      [places.program("bench_floor"), "--only", name])


def installed(places):
    """Every contestant that can be started here, in the order of the columns."""
    found = []
    if os.path.isfile(places.program("bench_floor")):
        found.append(_floor(places, "ring"))
    if os.path.isfile(places.program("bench_ibvx")):
        found.append(Contestant("ibvx", "ibvx C", ("ibvx", "c", "ibvdev"),
                                places.ibvrun("--exec", places.program("bench_ibvx"), "--rank", "{rank}", "--conf",
                                              "{conf}"),
                                {"IBVDEV_BUILD": places.build}, ours=True))
    if os.path.isfile(places.bench_jar()):
        found += [_java(places, "ibvdev", level) for level in ("natives", "xdev", "mpi")]
        found += [_java(places, "niodev", level) for level in ("xdev", "mpi")]
    if os.path.isfile(places.program("bench_openmpi")) and shutil.which("mpirun.openmpi"):
        found.append(_openmpi(places, "default"))
        found.append(_openmpi(places, "no CMA", "--mca", "btl_vader_single_copy_mechanism", "none"))
    if os.path.isfile(places.program("bench_mpich")) and shutil.which("mpirun.mpich"):
        found.append(Contestant("mpich", "MPICH C", ("mpich", "c", "default"),
                                ["mpirun.mpich", "-np", "2", "-bind-to", "none", places.program("bench_mpich"), "--tool",
                                 "mpich", "--pin"]))
    return found
