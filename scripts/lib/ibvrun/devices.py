# SPDX-License-Identifier: MIT
"""From options to plans: the command line, folder and environment of every process of a job."""
import os
from dataclasses import dataclass, field
from typing import Dict, List, Optional, Sequence

from . import archive, conf, jvm
from .errors import UserError
from .options import DEFAULT_PSL_BYTES
from .paths import Java, Mpj, manifest, native_options
from .stage import Stage


@dataclass
class Command:
    """One process to start.  name: as messages and prefixes show it ("rank 3"); rank: its number."""
    rank: int
    name: str
    argv: List[str]
    environ: Dict[str, str]  # what it has more than ibvrun itself
    cwd: Optional[str]


@dataclass
class Plan:
    commands: List[Command]
    conf_text: Optional[str] = None   # goes to job.conf_path()
    needs_port_server: bool = False
    notes: List[str] = field(default_factory=list)  # for --dry-run


@dataclass
class Places:
    """Where the ranks of a job are."""
    size: Optional[int]    # None: not known to us
    ranks: Sequence[int]   # that need a command
    hosts: Dict[int, str]
    ranks_there: Dict[int, int]  # how many are on the host of a rank
    ports: List[int] = field(default_factory=list)  # conf.Ports numbers, two a rank; empty where nobody needs them
    server_port: int = 0   # of the port server for niodev
    stage: Optional[Stage] = None  # --stage

    def path(self, path):
        """Where a file of ours is for the ranks."""
        return self.stage.path(path) if self.stage else path


def replaced(word, rank, places, conf_word=None):
    """A word of the user's with {rank}, {size} and {conf} in it."""
    if "{size}" in word and places.size is None:
        raise UserError("%s: {size} is not known here, as the launcher gives it to the library alone" % word)
    for name, value in (("rank", rank), ("size", places.size), ("conf", conf_word)):
        if value is not None:
            word = word.replace("{%s}" % name, str(value))
    return word


def make(opts, job, installation, environ, places):
    """The plan of a job."""
    if opts.executable:
        return _plan_executable(opts, job, places, installation)
    return {"ibvdev": _plan_ibvdev, "xxdev": _plan_xxdev, "niodev": _plan_niodev, "smpdev": _plan_smpdev, "mxdev": _plan_mxdev,
            "hybdev": _refuse_hybdev, "native": _refuse_native}[opts.device](
                JavaSide(opts, installation, environ, places), job, places)


def _rendezvous(opts, job, places):
    """What a plan for the C library has beside its commands."""
    if job.by_launcher:
        return {}
    lines = conf.conf_lines_classic([places.hosts[r] for r in places.ranks], places.ports)
    return {"conf_text": conf.conf_text(places.size, opts.psl_bytes, lines)}


def _job_environ(opts, job):
    environ = job.environ()
    if job.by_launcher and opts.psl_bytes != DEFAULT_PSL_BYTES:
        environ["IBVDEV_PSL"] = str(opts.psl_bytes)  # otherwise it stands in the conf file
    return environ


class JavaSide:
    """What the plans of all Java devices share."""

    def __init__(self, opts, installation, environ, places):
        self.opts = opts
        self.places = places
        self.installation = installation
        self.environ = environ
        self.java = Java(opts.java, environ)
        self.mpj = Mpj(opts.mpj_home, environ)
        self.main_class, self.manifest_options = self._main()
        self.cwd = os.path.abspath(opts.wdir) if opts.wdir else None

    def _main(self):
        """-jar FILE becomes its Main-Class: java -jar would ignore our class path."""
        if not self.opts.jar:
            return self.opts.main_class, []
        found = manifest(self.opts.jar)
        if "Main-Class" not in found:
            raise UserError("-jar %s: its manifest has no Main-Class; run it as -cp %s and the class"
                            % (self.opts.jar, self.opts.jar))
        options = []
        for name, option in (("Add-Exports", "--add-exports"), ("Add-Opens", "--add-opens")):
            for package in found.get(name, "").split():
                options.append("%s=%s=ALL-UNNAMED" % (option, package))
        return found["Main-Class"], options

    def user_class_path(self):
        """Entries of the program; relative ones mean the folder ibvrun was called in."""
        opts = self.opts
        if opts.jar:
            entries = [opts.jar] + (opts.class_path.split(os.pathsep) if opts.class_path else [])
        else:
            text = opts.class_path if opts.class_path is not None else self.environ.get("CLASSPATH") or "."
            entries = text.split(os.pathsep)
        if self.cwd is None:
            return entries
        return [os.path.join(os.getcwd(), e) if e else os.getcwd() for e in entries]

    def class_path(self, ours, last=()):
        users = self.user_class_path()
        if self.places.stage or self.opts.threads:  # else java expands them
            users = list(expanded(users))
        entries = [e for e in ours if e] + users + [e for e in last if e]
        return os.pathsep.join(self.places.path(e) if self.places.stage else e for e in entries)

    def archive_options(self, jars):
        """For programs whose class path begins with these jars.  Staged jars are others to a JVM; a dry run does not
        take the time to make the archive, and of the tasks of another launcher rank 0 alone does."""
        if self.places.stage or self.opts.dry_run or self.opts.no_class_archive:
            return []
        return archive.options(self.java, jars, self.opts.jvm_options + self.manifest_options, self.environ,
                               0 in self.places.ranks, self.native_options())

    def native_options(self):
        return native_options(self.installation, self.java, self.opts.jvm_options, self.places.path)

    def mpj_home(self):
        """For the ranks, which read its conf alone."""
        home = self.mpj.require_home()
        if not self.places.stage:
            return home
        return os.path.dirname(self.places.path(os.path.join(os.path.realpath(home), "conf")))

    def command(self, rank, class_path, options, words, environ, limits=(), name=None):
        opts = self.opts
        debug = []
        if opts.debug_port is not None:
            debug = ["-agentlib:jdwp=transport=dt_socket,server=y,suspend=y,address=%d"
                     % (opts.debug_port + rank)]
        users = [replaced(o, rank, self.places) for o in opts.jvm_options]
        argv = [self.java.path] + list(limits) + options + self.manifest_options + debug + users
        argv += ["-cp", class_path] + words + opts.arguments
        return Command(rank, name or "rank %d" % rank, argv, environ, self.cwd)

    def per_rank(self, class_path, options, conf_word, environ, notes=(), device=None, **plan):
        opts = self.opts
        commands = [self.command(r, class_path, options,
                                 [self.main_class, str(r), conf_word, device or opts.device], environ,
                                 jvm.limits(self.places.ranks_there[r], opts.bind, opts.jvm_options))
                    for r in self.places.ranks]
        return Plan(commands, notes=list(notes), **plan)

    def as_threads(self, shared, class_path, options, conf_word, environ, device=None, **plan):
        """One JVM, a thread a rank; shared: class path of what the ranks do not have a copy of each."""
        size = self.places.size
        words = ["xdev.ibvdev.ThreadRanks", shared, class_path, str(size), conf_word, device or self.opts.device,
                 self.main_class]
        command = self.command(0, self.installation.require_jar(), options, words, environ,
                               name="the JVM of all %d ranks" % size)
        return Plan([command], **plan)

    def classic_jars(self, jar):
        return [jar, self.mpj.jar("mpj.jar"), self.mpj.log4j()]


def _plan_ibvdev(side, job, places):
    opts = side.opts
    if opts.mpi == "ours":
        return _plan_ours(side, job, places)
    jars = side.classic_jars(side.installation.require_jar())
    class_path = side.class_path(jars, [side.installation.xxdev_jar()])
    environ = dict(_job_environ(opts, job), MPJ_HOME=side.mpj_home())
    return side.per_rank(class_path, side.archive_options(jars) + side.native_options(), job.conf_word(), environ,
                         **_rendezvous(opts, job, places))


def _plan_ours(side, job, places):
    """ibvdev-mpi.jar in place of mpj.jar, which lies behind it for programs that name mpjbuf.Buffer."""
    installation = side.installation
    jars = [installation.require_mpi_jar(), installation.require_jar()]
    class_path = side.class_path(jars, [installation.xxdev_jar()] + side.mpj.found_jars())
    if side.opts.threads:
        return side.as_threads("", class_path, side.native_options(), job.conf_word(), _job_environ(side.opts, job),
                               **_rendezvous(side.opts, job, places))
    return side.per_rank(class_path, side.archive_options(jars) + side.native_options(), job.conf_word(), _job_environ(side.opts, job),
                         **_rendezvous(side.opts, job, places))


def _plan_xxdev(side, job, places):
    """The same device behind the interface of FastMPJ, whose own classes, if the user names them, come first."""
    opts = side.opts
    class_path = side.class_path([side.installation.require_jar()], [side.installation.xxdev_jar()])
    if opts.threads:
        return side.as_threads("", class_path, side.native_options(), job.conf_word(), _job_environ(opts, job),
                               device="ibvdev", **_rendezvous(opts, job, places))
    return side.per_rank(class_path, side.native_options(), job.conf_word(),
                         _job_environ(opts, job), device="ibvdev", **_rendezvous(opts, job, places))


def _plan_niodev(side, _job, places):
    opts = side.opts
    class_path = side.class_path(side.classic_jars(side.installation.jar()))
    word = ("#Number of Processes;%d;#Protocol Switch Limit;%d;#Server Name;%s;#Server Port;%d"
            % (places.size, opts.psl_bytes, conf.LOOPBACK, places.server_port))
    return side.per_rank(class_path, [], word, {"MPJ_HOME": side.mpj.require_home()}, needs_port_server=True,
                         notes=["niodev asks the server that ibvrun runs for the others' ports: these lines",
                                "show what ibvrun starts and do not run without it"])


def _plan_mxdev(side, job, places):
    opts = side.opts
    class_path = side.class_path(side.classic_jars(side.installation.jar()))
    return side.per_rank(class_path, [], job.conf_path(), {"MPJ_HOME": side.mpj.require_home()},
                         conf_text=conf.conf_text(places.size, opts.psl_bytes, conf.conf_lines_mxdev(places.size)),
                         notes=["mxdev needs Myrinet hardware and its libmxdev.so on java.library.path"])


def _plan_smpdev(side, _job, places):
    """What the ranks share and what each has a copy of (mpi.jar and mpjdev.jar, whose statics are a rank's own) is
    divided as MPJ Express's starter does it; mpj.jar lacks smpdev.
    """
    opts = side.opts
    shared = [side.mpj.jar(n) for n in ("smpdev.jar", "xdev.jar", "mpjbuf.jar", "mpiExp.jar")] + [side.mpj.log4j()]
    own = [side.mpj.jar(n) for n in ("mpi.jar", "mpjdev.jar")]
    program = [os.path.abspath(e or ".") for e in expanded(side.user_class_path())]
    return side.as_threads(os.pathsep.join(shared), os.pathsep.join(program + own), [], str(places.size),
                           {"MPJ_HOME": side.mpj.require_home()})


def expanded(entries):
    """Class path entries with "lib/*" replaced by its jars, as java does it for its own class path."""
    for entry in entries:
        if os.path.basename(entry) == "*":
            folder = os.path.dirname(entry) or "."
            names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
            yield from (os.path.join(folder, n) for n in names if n.lower().endswith(".jar"))
        else:
            yield entry


def _refuse_hybdev(_side, _job, _places):
    raise UserError("-dev hybdev: it joins machines by niodev and the threads of each by smpdev; on one machine that "
                    "is smpdev alone, so use -dev smpdev")


def _refuse_native(side, _job, places):
    raise UserError(
        "-dev native: its ranks are started by the mpirun of a C MPI and need libnativempjdev.so, which Debian's "
        "package does not hold. With one built: MPJ_HOME=%s mpirun -np %d java -cp %s:%s:. "
        "-Djava.library.path=FOLDER %s 0 0 native" % (side.mpj.require_home(), places.size, side.mpj.jar("mpj.jar"),
                                                      side.mpj.log4j(), side.main_class))


def _plan_executable(opts, job, places, installation):
    program = opts.executable
    if os.sep in program:
        program = os.path.abspath(program)  # -wdir does not change what is meant
    if places.stage:
        program = places.stage.program(program)
    cwd = os.path.abspath(opts.wdir) if opts.wdir else None
    environ = _job_environ(opts, job)
    library = installation.library()
    if places.stage and library and os.path.isfile(library + ".0"):  # as the dynamic loader calls it
        environ["LD_LIBRARY_PATH"] = os.path.dirname(places.path(library + ".0"))
    commands = [Command(r, "rank %d" % r, [program] + [replaced(a, r, places, job.conf_word()) for a in opts.arguments],
                        environ, cwd) for r in places.ranks]
    return Plan(commands, **_rendezvous(opts, job, places))
