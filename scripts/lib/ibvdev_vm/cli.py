# SPDX-License-Identifier: MIT
"""The options of ibvdev-vm, and from them a run."""
import argparse
import os
import re
import shutil
import signal
import sys
import tempfile

from . import RigError, cache, job, machine, packages
from .session import Session

STATUS_RIG = 125
STATUS_UNAVAILABLE = 77

ABOUT = """Runs a command in a virtual machine that has Verbs devices: rxe0 (soft-RoCE) on eth0 and
siw0 (soft-iWARP) on eth1, with Debian's kernel.  The guest sees this machine's files, read-only with a
scratch layer on top, so it runs what you have built here; nothing is installed and no root is needed."""

MORE = """exit status:
  that of the command; 124: it ran longer than --limit; 125: the guest or the rig failed;
  77 (--prepare only): this machine cannot run a guest at all (no qemu, no kernel package)

in the guest:
  the host's / is there, writes go to memory and are lost;
  /run and /dev/shm are empty, and so is /tmp unless the command, the working directory or --env name
  something in it.
  Names: ibvdev0 is eth0 (rxe0), 10.77.0.1 and fd00:77:0::1; ibvdev0-siw is eth1 (siw0), 10.77.1.1 and
  fd00:77:1::1; the second node's are ibvdev1 and ibvdev1-siw, .2 and ::2.  RDMA CM takes the device by the
  address.  With --no-rxe siw0 is on eth0.  The command finds IBVDEV_VM=1, IBVDEV_TEST_NODE,
  IBVDEV_TEST_NODES, with --results IBVDEV_VM_RESULTS, and of this environment PATH, LANG, JAVA_HOME and IBVDEV_*.

two nodes:
  --nodes 2 runs the command on node 0 only.  It starts a command on node 1, with its output and
  exit status, by "on-node 1 COMMAND...", and ends a node as a power failure would by "kill-node 1".
  With --both the same command runs on both, distinguished by IBVDEV_TEST_NODE; the exit status is
  that of the first node that has one other than 0.

examples:
  scripts/ibvdev-vm -- ibv_devinfo -d rxe0
  scripts/ibvdev-vm --memlock 64 --user nobody -- sh -c 'ulimit -l'
  scripts/ibvdev-vm --nodes 2 -- sh -c 'on-node 1 rping -s -C 3 & sleep 3; rping -c -a ibvdev1 -C 3 && wait'
"""


def positive(text):
    if not re.fullmatch(r"[1-9]\d{0,8}", text):
        raise argparse.ArgumentTypeError("a number of at least 1 is wanted, not \"%s\"" % text)
    return int(text)


def seconds(text):
    try:
        value = float(text)
    except ValueError:
        value = -1
    if not 0 <= value < 1e9:
        raise argparse.ArgumentTypeError("a number of seconds is wanted, not \"%s\"" % text)
    return value


def assignment(text):
    if not re.match(r"[A-Za-z_]\w*=", text):
        raise argparse.ArgumentTypeError("NAME=VALUE is wanted, not \"%s\"" % text)
    return text.split("=", 1)


def parser():
    p = argparse.ArgumentParser(prog="ibvdev-vm", usage="ibvdev-vm [options] [--] command [argument...]", description=ABOUT,
                                epilog=MORE, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False)
    p.add_argument("command", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    p.add_argument("--smp", type=positive, metavar="N", help="processors of a guest (default: 2; 1 with two nodes)")
    p.add_argument("--mem", type=positive, metavar="MB", help="memory of a guest (default: 4096; 2048 with two nodes)")
    p.add_argument("--nodes", type=int, choices=(1, 2), default=1, help="guests, joined by a network (default: 1)")
    p.add_argument("--both", action="store_true", help="with two nodes: run the command on both")
    p.add_argument("--no-rxe", dest="rxe", action="store_false", help="without soft-RoCE")
    p.add_argument("--no-siw", dest="siw", action="store_false", help="without soft-iWARP (which has to be built once)")
    p.add_argument("--mtu", type=positive, default=1500, metavar="BYTES", help="of the network (default: 1500)")
    p.add_argument("--netem", metavar="TEXT", help="loss, delay and the like on the network, as tc-netem(8) has it: "
                   "\"loss 1%% duplicate 1%% delay 5ms reorder 25%%\" (rxe within one node never reaches the network: "
                   "use --nodes 2)")
    p.add_argument("--memlock", type=int, metavar="KB", help="limit of locked memory, also for root (default: none)")
    p.add_argument("--user", default="root", metavar="NAME", help="the user that runs the command in the guest (default: root)")
    p.add_argument("--env", type=assignment, action="append", default=[], metavar="NAME=VALUE", help="for the command")
    p.add_argument("--directory", "-C", metavar="DIR", help="working directory of the command (default: this one)")
    p.add_argument("--results", metavar="DIR", help="what the command writes to $IBVDEV_VM_RESULTS is here afterwards")
    p.add_argument("--limit", type=seconds, default=300, metavar="SECONDS", help="for the command (default: 300; 0: none)")
    p.add_argument("--boot-limit", type=seconds, default=120, metavar="SECONDS", help="until the guests are ready (default: 120)")
    p.add_argument("--shell", action="store_true", help="a shell in the guest (node 0), no command")
    p.add_argument("--keep", action="store_true", help="a shell in the guest after the command")
    p.add_argument("--accel", choices=("auto", "kvm", "tcg"), default=os.environ.get("IBVDEV_VM_ACCEL", "auto"),
                   help="auto: KVM where a guest was seen to boot under it, else emulation")
    p.add_argument("--console", metavar="FILE", help="keep the guest's console there (with two nodes FILE.0 and FILE.1)")
    p.add_argument("--cache", default=cache.default_folder(), metavar="DIR",
                   help="where kernel and modules are kept (default: %(default)s)")
    p.add_argument("--prepare", action="store_true", help="fill the cache, run nothing")
    p.add_argument("--refresh", action="store_true", help="fetch the newest kernel package again")
    p.add_argument("--verbose", "-v", action="store_true", help="print where the time goes")
    return p


def parse(argv):
    p = parser()
    options = p.parse_args(argv)
    if options.command[:1] == ["--"]:
        del options.command[0]
    options.env = dict(options.env)
    wants_command = not (options.shell or options.prepare)
    if wants_command != bool(options.command):
        p.error("there is no command to run" if wants_command else "--shell and --prepare take no command")
    if options.both and options.nodes == 1:
        p.error("--both is for --nodes 2")
    if (options.shell or options.keep) and not sys.stdin.isatty():
        p.error("--shell and --keep need a terminal")
    if options.both and (options.shell or options.keep):
        p.error("--shell and --keep open one shell: they do not go with --both")
    if options.shell or options.keep:
        options.limit = 0
    if options.memlock is not None and options.memlock < 0:
        p.error("--memlock wants a number of kilobytes")
    options.smp = options.smp or (2 if options.nodes == 1 else 1)
    options.mem = options.mem or (4096 if options.nodes == 1 else 2048)
    options.directory = os.path.abspath(options.directory or os.getcwd())
    options.cache = os.path.abspath(options.cache)
    return options


def check(options):
    """What can be known before anything is fetched or booted."""
    packages.require(packages.COMMANDS, "ibvdev-vm")
    packages.require_static_busybox()
    packages.require(packages.GUEST_COMMANDS + packages.GUEST_FILES, "the guest")
    if options.memlock is not None or options.user != "root":
        packages.require((("setpriv", "util-linux"),), "--memlock or --user")
    job.user_record(options.user)
    if not os.path.isdir(options.directory):
        raise RigError("there is no folder %s" % options.directory)
    if not options.prepare and options.directory.startswith(("/proc/", "/sys/", "/dev/", "/run/")):
        raise RigError("the guest does not see the host's %s: run from a folder elsewhere" % options.directory)
    if options.results:
        options.results = os.path.abspath(options.results)
        try:
            fresh = not os.path.isdir(options.results)
            os.makedirs(options.results, exist_ok=True)
            user = job.user_record(options.user)
            if fresh and os.geteuid() == 0 and user.pw_uid:
                os.chown(options.results, user.pw_uid, user.pw_gid)
        except OSError as e:
            raise RigError("--results %s: %s" % (options.results, e.strerror)) from e


def run(options, work):
    report = lambda text: print("ibvdev-vm: " + text, file=sys.stderr, flush=True)  # noqa: E731
    check(options)
    kernel = cache.kernel(options.cache, options.siw, report, options.refresh)
    accel = options.accel
    if accel == "auto":
        accel = "kvm" if machine.probe_kvm(options.cache, kernel, work) else "tcg"
    if options.verbose:
        report("kernel %s, %s" % (kernel.version, "KVM" if accel == "kvm" else "emulation"))
    if options.prepare:
        return 0
    session = Session(options, kernel, accel, work)
    try:
        return session.run()
    finally:
        if options.console:
            for node in session.nodes:
                name = options.console + (".%d" % node.number if options.nodes == 2 else "")
                shutil.copyfile(node.machine.console, name)


def interrupted(number, _frame):
    sys.exit(128 + number)  # through every finally, so that no machine and no folder stays


def main(argv):
    options = parse(argv)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, interrupted)
    terminal = saved_terminal()
    try:
        with tempfile.TemporaryDirectory(prefix="ibvdev-vm.") as work:
            return run(options, work)
    except RigError as e:
        sys.stderr.write("ibvdev-vm: %s\n" % e)
        return STATUS_UNAVAILABLE if options.prepare and e.unavailable else STATUS_RIG
    except BrokenPipeError:
        sys.stderr.close()
        return STATUS_RIG
    finally:
        restore_terminal(terminal)


def saved_terminal():
    import termios
    try:
        return termios.tcgetattr(0)
    except termios.error:
        return None


def restore_terminal(saved):
    import termios
    if saved:
        termios.tcsetattr(0, termios.TCSANOW, saved)
