# SPDX-License-Identifier: MIT
"""main: options -> hosts -> plan -> dry run, or a supervised job and nothing left behind."""
import os
import shlex
import shutil
import sys

from . import bootstrap, devices, engine, hosts, jvm, options, pmi
from .conf import LOOPBACK, Job, Ports, remove_folder
from .crew import LocalCrew
from .errors import UserError
from .guardian import Guardian
from .job import Supervisor, report
from .output import Output, open_standard_streams
from .paths import Installation
from .portserver import PortServer
from .remote import RemoteCrew
from .spawner import Spawner
from .stage import Stage

# What ranks on other machines get of our environment, beside -x.
FORWARDED_PREFIXES = ("IBVDEV_", "UCX_", "FI_", "LC_")
FORWARDED_NAMES = ("LANG", "LD_LIBRARY_PATH", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "TZ")
CLUSTER_DEVICES = ("ibvdev", "xxdev")


def main(script, argv):
    """Exit status for the words after the command's name.  script: real path of the command."""
    open_standard_streams()
    try:
        if not argv:
            sys.stderr.write(options.HELP)
            return 2
        opts = options.parse(argv)
        installation = Installation(script, os.environ)
        if opts.help:
            sys.stdout.write(options.HELP)
            return 0
        if opts.version:
            print("ibvrun (ibvdev) " + installation.version())
            return 0
        task = None if opts.dry_run or opts.hosts or opts.hostfile else engine.find(os.environ)
        if task and not starts_own_job(opts, task):
            return run_as_task(opts, installation, task)
        nodes = find_nodes(opts, os.environ)
        if nodes and not opts.dry_run:
            return run_on_nodes(opts, installation, nodes)
        return run_here(opts, installation, nodes)
    except UserError as e:
        report(str(e))
        return e.status
    except BrokenPipeError:
        return 141
    except KeyboardInterrupt:
        return 130  # before the supervisor was in charge


# -- where the ranks are ----------------------------------------------------------------------------


def find_nodes(opts, environ):
    """Nodes with their ranks, or None for this machine alone, and opts.np and opts.agent set."""
    chosen, system = None, None
    if opts.hosts is not None:
        chosen = hosts.parse_list(opts.hosts)
    elif opts.hostfile is not None:
        chosen = hosts.read_file(opts.hostfile)
    elif opts.device in CLUSTER_DEVICES and not opts.threads:
        chosen, system = hosts.allocation(environ) or (None, None)
    if opts.device not in CLUSTER_DEVICES and chosen:
        raise UserError("-dev %s: runs on one machine here; on several use -dev ibvdev" % opts.device)
    nodes = hosts.place(chosen, opts.np or None, opts.map_by, opts.ppn) if chosen else None
    if nodes:
        opts.np = sum(len(n.ranks) for n in nodes)
        if system and len(nodes) == 1 and hosts.is_here(nodes[0].name):
            nodes = None  # an allocation of this machine alone
    opts.np = opts.np or opts.ppn or os.cpu_count() or 1
    if opts.agent is None:
        opts.agent = options.agent_words(environ["IBVRUN_AGENT"]) if environ.get("IBVRUN_AGENT") else \
            default_agent(system)
    if not nodes and opts.wdir is not None and not os.path.isdir(opts.wdir):
        raise UserError("-wdir %s: no such folder" % opts.wdir)
    if opts.debug_port is not None and opts.debug_port + opts.np - 1 > 65535:
        raise UserError("-debug %d: %d ranks need as many ports from there on, and ports end at 65535"
                        % (opts.debug_port, opts.np))
    return nodes


def default_agent(system):
    """The command of the batch system, which starts processes under its control; else ssh."""
    if system == "Slurm" and shutil.which("srun"):
        return shlex.split(bootstrap.SRUN)
    if system == "LSF" and shutil.which("blaunch"):
        return ["blaunch"]
    return shlex.split(bootstrap.SSH)


def rank_environ(opts, environ):
    """What the ranks on other machines get of our environment."""
    found = {name: value for name, value in environ.items()
             if name.startswith(FORWARDED_PREFIXES) or name in FORWARDED_NAMES}
    found.update(exported(opts, environ))
    return found


def exported(opts, environ):
    """The variables of -x."""
    found = {}
    for word in opts.exports:
        name, equals, value = word.partition("=")
        if not equals and name not in environ:
            raise UserError("-x %s: there is no such variable here; write -x %s=value" % (name, name))
        found[name] = value if equals else environ[name]
    return found


# -- one rank of another launcher's job -------------------------------------------------------------


def starts_own_job(opts, task):
    """Is ibvrun called in a task of a launcher (an interactive shell of Slurm's, say) to start ranks itself?"""
    if not opts.np or opts.np == task.size:
        return False
    if task.size == 1:
        return True
    raise UserError("-np %d: ibvrun is rank %d%s of a job of %s already; leave -np out, as that decides the number of "
                    "ranks" % (opts.np, task.rank, " of %d" % task.size if task.size else "", task.engine))


def run_as_task(opts, installation, task):
    """Becomes the command of this rank."""
    for given, name in ((opts.tags, "-l"), (opts.output, "--output"), (opts.bind != "none", "--bind"), (opts.ppn, "--ppn"),
                        (opts.timeout_s is not None, "--timeout"), (opts.agent, "--agent"), (opts.threads, "--threads")):
        if given:
            raise UserError("%s: ibvrun is a task of %s here, which decides this; use its own option" % (name, task.engine))
    if opts.device not in CLUSTER_DEVICES:
        raise UserError("-dev %s: does not know how to join a job of %s; use -dev ibvdev" % (opts.device, task.engine))
    job = Job(os.environ, by_launcher=True, ours=False)
    places = devices.Places(task.size, [task.rank], {task.rank: LOOPBACK}, {task.rank: task.ranks_here})
    (command,) = devices.make(opts, job, installation, os.environ, places).commands
    command.argv = jvm.processors(command.argv, len(os.sched_getaffinity(0)), task.ranks_here)
    if opts.verbose:
        report("rank %d of a job of %s: %s" % (task.rank, task.engine, shlex.join(command.argv)))
    return engine.become(command, dict(os.environ, **exported(opts, os.environ)))


# -- running ------------------------------------------------------------------------------------------


def run_on_nodes(opts, installation, nodes):
    job = Job(os.environ, by_launcher=True)
    owners = {rank: node for node in nodes for rank in node.ranks}
    places = devices.Places(opts.np, range(opts.np), {r: n.name for r, n in owners.items()},
                            {r: len(n.ranks) for r, n in owners.items()}, stage=Stage() if opts.stage else None)
    plan = devices.make(opts, job, installation, os.environ, places)
    for command in plan.commands:
        command.cwd = command.cwd or os.getcwd()
    if places.stage:
        places.stage.close()
    output = Output(opts.tags, opts.output, opts.np)
    crew = RemoteCrew(opts, plan, nodes, rank_environ(opts, os.environ), output, places.stage)
    return Supervisor(opts, crew, output).run()


def run_here(opts, installation, nodes):
    job = Job(os.environ)
    owners = {rank: node for node in nodes or [hosts.Node(0, LOOPBACK, range(opts.np))] for rank in node.ranks}
    ports = Ports(2 * opts.np if needs_ports(opts) else 0)
    places = devices.Places(opts.np, range(opts.np), {r: n.name for r, n in owners.items()},
                            {r: len(n.ranks) for r, n in owners.items()}, ports.numbers)
    try:
        if opts.dry_run:
            plan = devices.make(opts, job, installation, os.environ, places)
            sys.stdout.write(dry_run(plan, job, places, opts))
            return 0
        return supervise(opts, installation, job, places)
    finally:
        ports.close()


def needs_ports(opts):
    return opts.executable is not None or opts.device in CLUSTER_DEVICES


def supervise(opts, installation, job, places):
    server = None
    guardian = None
    try:
        if opts.device == "niodev":
            server = PortServer(opts.np)
            places.server_port = server.port
        plan = devices.make(opts, job, installation, os.environ, places)
        output = Output(opts.tags, opts.output, opts.np)
        if plan.conf_text is not None:
            job.make_folder()
            # the folder has changed where the conf file is: the same plan with that path in it
            plan = devices.make(opts, job, installation, os.environ, places)
        for command in plan.commands:
            command.argv = jvm.processors(command.argv, len(os.sched_getaffinity(0)), opts.np)
        if opts.verbose and jvm.shown(plan.commands[0].argv):
            report("each JVM gets " + jvm.shown(plan.commands[0].argv))
        guardian = Guardian(job.folder)
        if plan.conf_text is not None:
            job.write_conf(job.conf_path(), plan.conf_text)
        spawner = Spawner(dict(pmi.without_outer(os.environ), **exported(opts, os.environ)), guardian.started)
        return Supervisor(opts, LocalCrew(opts, plan, spawner, output, guardian, server), output).run()
    finally:
        remove_folder(job.folder)
        if guardian:
            guardian.close()
        if server:
            server.close()


def dry_run(plan, job, places, opts):
    """A text for a shell: the conf file, then one line per process."""
    lines = ["# " + note for note in plan.notes]
    if plan.conf_text is not None:
        lines += ["# the conf file, once%s:" % ("" if places.hosts[0] == LOOPBACK else " on every node"),
                  "cat > %s <<'END_OF_CONF'" % shlex.quote(job.conf_path()), plan.conf_text + "END_OF_CONF"]
    more = exported(opts, os.environ)
    for command in plan.commands:
        host = places.hosts[command.rank]
        argv = jvm.processors(command.argv, len(os.sched_getaffinity(0)), places.ranks_there[command.rank])
        words = ["%s=%s" % (name, shlex.quote(value)) for name, value in sorted(dict(more, **command.environ).items())]
        words += [shlex.quote(w) for w in argv]
        lines.append("# %s%s:" % (command.name, "" if host == LOOPBACK else ", on " + host))
        lines.append("cd %s && %s" % (shlex.quote(command.cwd or os.getcwd()), " ".join(words)))
    return "\n".join(lines) + "\n"
