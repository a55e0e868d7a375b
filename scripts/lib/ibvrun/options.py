# SPDX-License-Identifier: MIT
"""The command line.  ibvrun's own options come before the class, mixed with the JVM's in any order."""
import math
import os
import re
import shlex
from dataclasses import dataclass, field
from typing import List, Optional

from .errors import UserError
from .output import TAGS

DEVICES = ("ibvdev", "xxdev", "niodev", "smpdev", "hybdev", "mxdev", "native")
DEVICE_ALIASES = {"multicore": "smpdev"}  # mpjrun's name for it
MAX_RANKS = 65535
DEFAULT_PSL_BYTES = 131072

# Options of java whose value is the next word.
JVM_OPTIONS_WITH_VALUE = frozenset((
    "-p", "--module-path", "--upgrade-module-path", "--add-modules", "--limit-modules",
    "--add-reads", "--add-exports", "--add-opens", "--patch-module", "--enable-native-access",
    "--illegal-native-access", "--finalization"))

# Options of mpjrun and fmpjrun that cannot work here, and why.
YARN = "Hadoop YARN is not supported"
REFUSED_WITH_VALUE = {
    "-dport": "there is no daemon: ibvrun starts the ranks itself",
    "-mpjport": "ibvrun uses no ports of MPJ Express",
    "-headnodeip": "name the interface by the setting IBVDEV_NET, for example -x IBVDEV_NET=eth0",
    "-mxboardnum": "no Myrinet boards are chosen here",
    "-src": "sources are not copied; --stage copies the class path", "-m": "run the main class of a "
    "module by its class name", "--module": "run the main class of a module by its class name",
}
REFUSED = {"-profile": "start the profiler of your choice by a JVM option such as -agentpath or -javaagent"}
for _name in ("-yarn", "-debugYarn"):
    REFUSED[_name] = YARN
for _name in ("-amCores", "-amMem", "-amPriority", "-appName", "-containerCores", "-containerMem",
              "-hdfsFolder", "-mpjContainerPriority", "-yarnQueue"):
    REFUSED_WITH_VALUE[_name] = YARN


@dataclass
class Options:
    np: int = 0                # 0: not given
    hosts: Optional[str] = None
    hostfile: Optional[str] = None
    map_by: str = "slot"
    ppn: Optional[int] = None
    exports: List[str] = field(default_factory=list)  # of -x: NAME or NAME=value
    agent: Optional[List[str]] = None
    agent_is_default: bool = True
    python: str = "python3"
    fan_out: int = 32
    heartbeat_s: float = 10.0
    device: str = "ibvdev"
    mpi: Optional[str] = None  # check() decides
    class_path: Optional[str] = None
    wdir: Optional[str] = None
    jar: Optional[str] = None
    main_class: Optional[str] = None
    executable: Optional[str] = None
    arguments: List[str] = field(default_factory=list)
    jvm_options: List[str] = field(default_factory=list)
    java: Optional[str] = None
    mpj_home: Optional[str] = None
    psl_bytes: int = DEFAULT_PSL_BYTES
    debug_port: Optional[int] = None
    tags: List[str] = field(default_factory=list)
    output: Optional[str] = None
    dry_run: bool = False
    grace_s: float = 3.0
    kill_after_s: float = 2.0
    timeout_s: Optional[float] = None
    dump: bool = False
    bind: str = "none"
    report_bindings: bool = False
    stage: bool = False
    no_class_archive: bool = False
    threads: bool = False
    verbose: bool = False
    help: bool = False
    version: bool = False


def whole_number(option, text, low, high):
    try:
        value = int(text)
    except ValueError:
        value = None
    if value is None or not low <= value <= high:
        raise UserError("%s %s: must be a whole number from %d to %d" % (option, text, low, high))
    return value


def seconds(option, text):
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value <= 1e9:
        raise UserError("%s %s: must be a number of seconds, 0 or more" % (option, text))
    return value


def device_name(text):
    name = DEVICE_ALIASES.get(text, text)
    if name not in DEVICES:
        raise UserError("-dev %s: no such device; there are %s (and multicore, which is smpdev)"
                        % (text, ", ".join(DEVICES)))
    return name


def one_of(option, *choices):
    def convert(text):
        if text not in choices:
            raise UserError("%s %s: must be %s" % (option, text, " or ".join(
                [", ".join(choices[:-1])] * bool(choices[:-1]) + [choices[-1]])))
        return text
    return convert


def tag_words(text):
    words = [w for w in text.split(",") if w]
    for word in words:
        if word not in TAGS:
            raise UserError("--tag %s: must be made of %s, for example --tag rank,host" % (text, ", ".join(TAGS)))
    return words


def agent_words(text):
    try:
        words = shlex.split(text)
    except ValueError as e:
        raise UserError("--agent %s: %s" % (text, e)) from e
    if not words:
        raise UserError("--agent \"\": must be a command that starts another one on a host, such as \"ssh -p 2222\"")
    return words


def _set_agent(opts, text):
    opts.agent, opts.agent_is_default = agent_words(text), False


def _add_export(opts, text):
    if not re.match(r"[A-Za-z_]\w*(=|$)", text):
        raise UserError("-x %s: must be NAME or NAME=value" % text)
    opts.exports.append(text)


def _setter(name, convert=None):
    def apply(opts, text):
        setattr(opts, name, convert(text) if convert else text)
    return apply


# name without its dashes -> what to do with its value; both -name and --name are accepted
VALUED = {
    "np": _setter("np", lambda t: whole_number("-np", t, 1, MAX_RANKS)),
    "dev": _setter("device", device_name),
    "mpi": _setter("mpi", one_of("-mpi", "ours", "mpjexpress")),
    "cp": _setter("class_path"), "classpath": _setter("class_path"), "class-path": _setter("class_path"),
    "wdir": _setter("wdir"),
    "jar": _setter("jar"), "class": _setter("main_class"), "exec": _setter("executable"),
    "psl": _setter("psl_bytes", lambda t: whole_number("-psl", t, 0, 2 ** 31 - 1)),
    "debug": _setter("debug_port", lambda t: whole_number("-debug", t, 1, 65535)),
    "java": _setter("java"), "mpjhome": _setter("mpj_home"), "mpj-home": _setter("mpj_home"),
    "output": _setter("output"),
    "grace": _setter("grace_s", lambda t: seconds("--grace", t)),
    "kill-after": _setter("kill_after_s", lambda t: seconds("--kill-after", t)),
    "timeout": _setter("timeout_s", lambda t: seconds("--timeout", t)),
    "bind": _setter("bind", one_of("--bind", "none", "core", "numa")),
    "tag": _setter("tags", tag_words),
    "hosts": _setter("hosts"), "host": _setter("hosts"), "hostfile": _setter("hostfile"),
    "machinefile": _setter("hostfile"), "machinesfile": _setter("hostfile"),
    "map-by": _setter("map_by", one_of("--map-by", "slot", "node")),
    "ppn": _setter("ppn", lambda t: whole_number("--ppn", t, 1, MAX_RANKS)),
    "nphost": _setter("ppn", lambda t: whole_number("-nphost", t, 1, MAX_RANKS)),
    "x": _add_export,
    "agent": _set_agent, "python": _setter("python"),
    "fan-out": _setter("fan_out", lambda t: whole_number("--fan-out", t, 1, 1024)),
    "heartbeat": _setter("heartbeat_s", lambda t: seconds("--heartbeat", t)),
}
FLAGS = {
    "-l": "tags", "-prefix": "tags", "--prefix": "tags", "--report-bindings": "report_bindings",
    "--stage": "stage", "--no-class-archive": "no_class_archive",
    "-n": "dry_run", "--dry-run": "dry_run", "--dump": "dump",
    "--threads": "threads",
    "-v": "verbose", "--verbose": "verbose",
    "-h": "help", "-help": "help", "--help": "help", "-?": "help", "--version": "version",
}
ENDS_OPTIONS = ("jar", "class", "exec")  # what follows belongs to the program


def own_option(word):
    """(name, value or None) if word is an option of ibvrun that takes a value, else None."""
    name, equals, value = word.partition("=")
    bare = name[2:] if name.startswith("--") else name[1:]
    if bare not in VALUED or (equals and not name.startswith("--")):
        return None
    return bare, value if equals else None


def parse(argv):
    """Options from the words after ibvrun, or UserError."""
    opts = Options()
    words = list(argv)

    def value_of(option):
        if not words:
            raise UserError("%s needs a value; see ibvrun --help" % option)
        return words.pop(0)

    while words:
        word = words.pop(0)
        own = own_option(word) if word.startswith("-") else None
        if word in FLAGS:
            setattr(opts, FLAGS[word], (opts.tags or ["rank"]) if FLAGS[word] == "tags" else True)
            if opts.help or opts.version:
                return opts
        elif own:
            name, value = own
            VALUED[name](opts, value_of(word) if value is None else value)
            if name in ENDS_OPTIONS:
                break
        elif word in REFUSED or word in REFUSED_WITH_VALUE:
            raise UserError("%s: %s" % (word, REFUSED.get(word) or REFUSED_WITH_VALUE[word]))
        elif word in JVM_OPTIONS_WITH_VALUE:
            opts.jvm_options += [word, value_of(word)]
        elif word.startswith("-") and word != "-" or word.startswith("@"):
            opts.jvm_options.append(word)
        else:
            opts.main_class = word
            break
    opts.arguments = words
    check(opts)
    return opts


def check(opts):
    if opts.main_class and opts.main_class.isdigit():
        raise UserError("%s is not the name of a class; the number of ranks is given by -np %s"
                        % (opts.main_class, opts.main_class))
    if not (opts.jar or opts.main_class or opts.executable):
        raise UserError("nothing to run: name a class, -jar FILE, or --exec PROGRAM; see ibvrun --help")
    if opts.executable and opts.jvm_options:
        raise UserError("%s: --exec runs a program without a JVM and takes no JVM options"
                        % opts.jvm_options[0])
    if opts.executable and opts.device != "ibvdev":
        raise UserError("-dev %s: --exec programs use the C library behind ibvdev" % opts.device)
    has_ours = opts.device == "ibvdev" and not opts.executable
    if opts.mpi == "ours" and not has_ours:
        raise UserError("-mpi ours: its programs are Java and run on -dev ibvdev; leave -mpi or %s out"
                        % ("--exec" if opts.executable else "-dev " + opts.device))
    opts.mpi = opts.mpi or ("ours" if has_ours else "mpjexpress")
    check_threads(opts)
    if opts.jar is not None and not os.path.isfile(opts.jar):
        raise UserError("-jar %s: no such file" % opts.jar)
    if opts.hosts is not None and opts.hostfile is not None:
        raise UserError("--hosts and --hostfile: name the hosts by one of them")


def check_threads(opts):
    """--threads makes one process of the ranks: what is done for each process apart has no meaning."""
    if not opts.threads:
        return
    if opts.executable or opts.device not in ("ibvdev", "xxdev"):
        raise UserError("--threads: its ranks are Java programs on ibvdev or xxdev; leave --threads or %s out"
                        % ("--exec" if opts.executable else "-dev " + opts.device))
    for given, name in ((opts.tags, "-l"), (opts.output, "--output"), (opts.bind != "none", "--bind"),
                        (opts.hosts or opts.hostfile, "--hosts"), (opts.stage, "--stage"),
                        (opts.mpi == "mpjexpress", "-mpi mpjexpress")):
        if given:
            raise UserError("--threads: all ranks are one process on this machine; leave --threads or %s out" % name)


HELP = """\
usage: ibvrun [options] [JVM options] Class [arguments]
       ibvrun [options] [JVM options] -jar FILE [arguments]
       ibvrun [options] --exec PROGRAM [arguments]

Starts a message-passing job of N ranks, on this machine or on several, and stays until the last one ended.

What to run
  -np N             number of ranks (default: all slots of the hosts, else the number of processors)
  -dev NAME         device: ibvdev (default), niodev, smpdev (also called multicore), mxdev;
                    hybdev and native are refused with the reason; xxdev: ibvdev for a program that
                    uses the interface of FastMPJ's devices, without MPJ Express
  -mpi WHICH        the package mpi on ibvdev: ours (default): ibvdev-mpi.jar in place of mpj.jar, which is
                    not needed; or mpjexpress, which is what runs on the other devices
  --threads         all ranks are threads of one JVM, each with its own copy of all classes but the JDK's:
                    for tests and first steps
  -cp PATH          class path of the program (also -classpath; default: $CLASSPATH, else .);
                    relative entries mean the folder in which ibvrun was called
  -jar FILE         run the main class of this jar; -class NAME is the same as NAME
  --exec PROGRAM    run a program that is not Java, for example one that uses ibvx.h;
                    in its arguments {rank}, {size} and {conf} are replaced
  -wdir DIR         working folder of the ranks (default: that of ibvrun, on every host)
  -x NAME[=VALUE]   an environment variable for the ranks; may be repeated
  -psl BYTES        protocol switch limit (default 131072)
  -debug PORT       rank r waits for a Java debugger at PORT + r
  -java FILE        the java to use (default: that of $JAVA_HOME, else of $PATH)
  --no-class-archive  JVMs do not map the archive of our and MPJ Express's classes in the user's cache
  -mpjhome DIR      the MPJ Express to use (default: $MPJ_HOME, else Debian's /usr/share/mpj)
  Any other word that starts with - or @ before the class is handed to the JVM (-Xmx1g, -Dname=value,
  -javaagent:..., --add-opens ...); {rank} and {size} are replaced in it.

Where to run it
  --hosts LIST      hosts and slots: a:4,b:4 or a,b or node[01-16]:8 (also --host)
  --hostfile FILE   one host a line: host, host slots=4 or host:4; repeats add up, # begins a comment
                    (also -machinefile, -machinesfile)
                    Without both: the hosts of the Slurm, LSF or PBS allocation that ibvrun runs in,
                    else this machine.
  --ppn N           N slots on every host (also -nphost)
  --map-by HOW      slot (default): fill a host before the next one; node: deal ranks out one by one
  --bind HOW        none (default); core: a core for each rank, for a JVM an equal share of
                    neighbouring cores, so that its own threads have room; numa: a memory node
  --report-bindings print the processors of every rank
  --agent CMD       start the agent of a host by this command in place of ssh: "ssh -p 2222",
                    "kubectl exec -i {host} --"; {host} is replaced, else the host is appended;
                    then the agent's command is, quoted for a shell in place of {command}
                    (default: $IBVRUN_AGENT, else srun or blaunch inside Slurm or LSF, else ssh)
  --stage           copy the class path, our jars and library or the program to a temporary folder on every
                    host (default: they are expected at the same paths there); removed afterwards
  --python NAME     python3 on the hosts, 3.9 or later (default python3)
  --fan-out N       hosts that are reached directly; agents there reach the others (default 32)
  --heartbeat S     a host that is silent for S seconds is lost (default 10; 0: never)

Where output goes
  -l, --prefix      write "[rank] " before each line; lines of different ranks are never mixed
  --tag WORDS       the same with any of rank, host and time: --tag rank,host,time
  --output DIR      write DIR/rank.R.out and DIR/rank.R.err here; with a prefix also show the lines
  Rank 0 reads ibvrun's standard input, the others read nothing.

How it ends
  --grace S         after the first failure, let the others end by themselves for S seconds
                    (default 3) before SIGTERM
  --kill-after S    seconds from SIGTERM to SIGKILL (default 2)
  --timeout S       end the job after S seconds
  --dump            print the Java threads of every rank when the time limit strikes

Other
  -n, --dry-run     print the command line of every rank, quoted for the shell, and run nothing;
                    create the conf file it shows and paste each line into a terminal of its own
  -v, --verbose     print which agents answered and how every rank ended
  -h, --help        this text
  --version         the version

Signals: SIGINT, SIGTERM and SIGHUP are passed on and end the job; a second one kills it.  SIGQUIT
(thread dump), SIGUSR1 and SIGUSR2 are passed on.  SIGTSTP stops the ranks too.

Exit status: 0 if every rank ended with 0; otherwise that of the rank that failed first, or 128 plus the
signal that killed it; 128 plus the signal if ibvrun was asked to end; 124 for --timeout; 2 for a command
line or an installation that cannot work; 126 if a rank or an agent could not be started; 255 if a host
was lost.

Environment: JAVA_HOME, MPJ_HOME, CLASSPATH, IBVRUN_AGENT, IBVDEV_BUILD (build folder of a checkout, default
build/), and every setting of the library as IBVDEV_name (see ibvdev-info).
"""
