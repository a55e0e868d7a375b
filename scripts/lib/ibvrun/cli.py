# SPDX-License-Identifier: MIT
"""main: options -> plan -> dry run, or a supervised job and nothing left behind."""
import os
import shlex
import sys

from . import devices, options
from .conf import Job, Ports, remove_leftovers
from .errors import UserError
from .guardian import Guardian
from .job import Supervisor, say
from .output import Output
from .paths import Installation
from .portserver import PortServer
from .spawner import LocalSpawner


def main(script, argv):
    """Exit status for the words after the command's name.  script: real path of the command."""
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
        job = Job(os.environ)
        ports = Ports(2 * opts.np if needs_ports(opts) else 0)
        try:
            if opts.dry_run:
                plan = devices.make(opts, job, installation, os.environ, ports.numbers, 0)
                sys.stdout.write(dry_run(plan, job))
                return 0
            return run(opts, job, installation, ports)
        finally:
            ports.close()
    except UserError as e:
        say(str(e))
        return e.status
    except BrokenPipeError:
        return 141
    except KeyboardInterrupt:
        return 130  # before the supervisor was in charge


def needs_ports(opts):
    return opts.executable is not None or opts.device in ("ibvdev", "xxdev")


def run(opts, job, installation, ports):
    server = None
    guardian = None
    try:
        if opts.device == "niodev":
            server = PortServer(opts.np)
        plan = devices.make(opts, job, installation, os.environ, ports.numbers, server.port if server else 0)
        output = Output(opts.prefix, opts.output, opts.np)
        if plan.conf_text is not None:
            job.make_folder()
            # the folder has changed where the conf file is: the same plan with that path in it
            plan = devices.make(opts, job, installation, os.environ, ports.numbers, 0)
        guardian = Guardian(job.id, job.folder)
        if plan.conf_text is not None:
            job.write_conf(job.conf_path(), plan.conf_text)
        spawner = LocalSpawner(os.environ, opts.bind, guardian.started)
        return Supervisor(opts, plan, spawner, output, guardian, server).run()
    finally:
        remove_leftovers(job.id, job.folder)
        if guardian:
            guardian.close()
        if server:
            server.close()


def dry_run(plan, job):
    """A text for a shell: the conf file, then one line per process."""
    lines = ["# " + note for note in plan.notes]
    if plan.conf_text is not None:
        lines += ["# the conf file, once:", "cat > %s <<'END_OF_CONF'" % shlex.quote(job.conf_path()),
                  plan.conf_text + "END_OF_CONF"]
    for command in plan.commands:
        words = ["%s=%s" % (name, shlex.quote(value)) for name, value in sorted(command.environ.items())]
        words += [shlex.quote(w) for w in command.argv]
        lines.append("# %s:" % command.name)
        lines.append("cd %s && %s" % (shlex.quote(command.cwd or os.getcwd()), " ".join(words)))
    return "\n".join(lines) + "\n"
