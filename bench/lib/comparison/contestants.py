# SPDX-License-Identifier: MIT
"""The contestants: how each one is started; which are missing, and why."""
import glob
import os
import shutil
from dataclasses import dataclass, field

MPI_AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
               "OMPI_MCA_btl_base_warn_component_unused": "0"}


UCX_NO_CMA = {"UCX_TLS": "^cma,knem,xpmem"}


@dataclass(frozen=True)
class Contestant:
    name: str  # for --only
    title: str  # of its column
    key: tuple  # (tool, level, device), as in its JSON lines
    command: object  # command(ranks, crowded) without the options of the harness; crowded: more ranks than processors
    environment: dict = field(default_factory=dict)
    ours: bool = False  # a failure is ours
    lacks: dict = field(default_factory=dict)  # operation -> what replaces it in --op, "" leaves it out
    max_ranks: int = 1000
    perftest: bool = False  # is ucx_perftest, which has a harness of its own


@dataclass(frozen=True)
class Absent:
    title: str
    reason: str
    remedy: str


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

    def ibvrun(self, ranks, *more):
        return [os.path.join(self.root, "scripts", "ibvrun"), "-np", str(ranks), *more]


def _java(places, device, level, pinned=True, package="mpjexpress", message=None):
    # smpdev's ranks are threads, which pin themselves
    bind = [] if device == "smpdev" or not pinned else ["--bind", "core"]
    name = ("ours" if package == "ours" else device) + ("" if pinned else " unpinned") + (" " + message if message else "")
    label = ["--label", name] if name != device else []

    def command(ranks, crowded):
        heap = ["-Xms64m", "-Xmx768m"] if crowded else ["-Xms256m"]
        return places.ibvrun(ranks, *bind, "-dev", device, "-mpi", package, "-cp", places.bench_jar(), *heap, "ibvbench.PingPong",
                             "--level", level, *label, *(["--message", message] if message else []))

    # niodev and smpdev look at every entry of a queue, and smpdev keeps no message that nobody waits for
    lacks = {"smpdev": {"posted": "posted@1/100", "unexpected": "", "threads": ""},
             "niodev": {"posted": "posted@1/100", "unexpected": "unexpected@1/100"}}.get(device, {})
    return Contestant(("%s-%s" % (level, name)).replace(" ", "-"), "%s %s" % (level, name), ("java", level, name), command,
                      {"IBVDEV_BUILD": places.build}, ours=device == "ibvdev", lacks=lacks,
                      max_ranks=2 if device == "smpdev" else 1000)


def of_messages(places, level, package, message):
    """Java on ibvdev with messages that are not bytes: doubles, column or tree."""
    return _java(places, "ibvdev", level, package=package, message=message)


def _openmpi(places, device, *mca):
    def command(ranks, crowded):
        polite = ["--mca", "mpi_yield_when_idle", "1"] if crowded else []
        return ["mpirun.openmpi", "-np", str(ranks), "--oversubscribe", "--bind-to", "none", *polite, *mca,
                places.program("bench_openmpi"), "--tool", "openmpi", "--device", device, "--pin"]

    plain = device == "default"
    return Contestant("openmpi" if plain else "openmpi-nocma", "Open MPI C" if plain else "Open MPI C " + device,
                      ("openmpi", "c", device), command, MPI_AS_ROOT, max_ranks=1000 if plain else 2)


def _mpich(places, device, environment):
    def command(ranks, _crowded):
        return ["mpirun.mpich", "-np", str(ranks), "-bind-to", "none", places.program("bench_mpich"), "--tool", "mpich",
                "--device", device, "--pin"]

    plain = device == "default"
    return Contestant("mpich" if plain else "mpich-nocma", "MPICH C" if plain else "MPICH C " + device,
                      ("mpich", "c", device), command, environment, max_ranks=1000 if plain else 2)


def _floor(places, name):
    def command(_ranks, _crowded):
        return [places.program("bench_floor"), "--only", name]
    return Contestant("floor-" + name, "floor " + name, ("floor", "c", name), command, max_ranks=2)


def _ibvx(places):
    def command(ranks, _crowded):
        return places.ibvrun(ranks, "--bind", "core", "--exec", places.program("bench_ibvx"), "--rank", "{rank}",
                             "--conf", "{conf}")
    return Contestant("ibvx", "ibvx C", ("ibvx", "c", "ibvdev"), command, {"IBVDEV_BUILD": places.build}, ours=True)


def _c_peers(places, found, absent):
    for name, title, package in (("openmpi", "Open MPI", "libopenmpi-dev openmpi-bin"), ("mpich", "MPICH", "libmpich-dev mpich")):
        if not shutil.which("mpirun." + name):
            absent.append(Absent(title, "mpirun.%s is not installed" % name,
                                 "apt-get install %s, then: meson setup --reconfigure build && ninja -C build" % package))
        elif not os.path.isfile(places.program("bench_" + name)):
            absent.append(Absent(title, "bench_%s is not built: mpicc.%s or its mpi.h was not there" % (name, name),
                                 "apt-get install %s, then: meson setup --reconfigure build && ninja -C build" % package))
        elif name == "openmpi":
            found.append(_openmpi(places, "default"))
            found.append(_openmpi(places, "no CMA", "--mca", "btl_vader_single_copy_mechanism", "none"))
        else:
            found.append(_mpich(places, "default", {}))
            found.append(_mpich(places, "no CMA", {"MPIR_CVAR_CH4_CMA_ENABLE": "0", **UCX_NO_CMA}))
    if shutil.which("ucx_perftest") and os.path.isfile(places.program("bench_floor")):
        found.append(Contestant("ucx", "UCX C", ("ucx", "c", "default"), None, max_ranks=2, perftest=True))
        found.append(Contestant("ucx-nocma", "UCX C no CMA", ("ucx", "c", "no CMA"), None, UCX_NO_CMA, max_ranks=2,
                                perftest=True))
    else:
        absent.append(Absent("UCX", "ucx_perftest is not installed", "apt-get install ucx-utils"))


def _java_contestants(places, found, absent):
    if not os.path.isfile(places.bench_jar()):
        absent.append(Absent("all of Java", "bench.jar is not built", "meson setup -Djava=enabled build && ninja -C build"))
        return
    found += [_java(places, "ibvdev", level) for level in ("natives", "xdev", "xxdev", "mpi")]
    found.append(_java(places, "ibvdev", "mpi", package="ours"))
    found += [_java(places, "niodev", level) for level in ("xdev", "mpi")]
    found.append(_java(places, "niodev", "mpi", pinned=False))
    home = os.environ.get("MPJ_HOME", "/usr/share/mpj")
    if glob.glob(os.path.join(home, "lib", "smpdev*.jar")):
        found.append(_java(places, "smpdev", "mpi"))
    else:
        absent.append(Absent("MPJ Express smpdev", "%s/lib holds no smpdev.jar" % home, "apt-get install libmpj-java"))
    absent.append(Absent("MPJ Express hybdev", "on one machine it hands everything to smpdev, which is measured",
                         "none: it differs between machines only"))
    absent.append(Absent("MPJ Express native", "its library libnativempjdev.so is not in Debian",
                         "build it from the sources of MPJ Express; bench/run does not start it"))


def installed(places):
    """(every contestant that can be started here, in the order of the columns; those that cannot)."""
    found, absent = [], []
    if os.path.isfile(places.program("bench_floor")):
        found += [_floor(places, name) for name in ("cacheline", "memcpy", "cma", "ring")]
    if os.path.isfile(places.program("bench_ibvx")):
        found.append(_ibvx(places))
    _java_contestants(places, found, absent)
    _c_peers(places, found, absent)
    return found, absent
