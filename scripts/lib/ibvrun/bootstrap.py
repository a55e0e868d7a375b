# SPDX-License-Identifier: MIT
"""How an agent comes to a node that has nothing but python3.

The command on the node is `python3 -c STUB`.  The stub reads one line of Python from its standard input and runs it;
the line holds the modules of an agent, compressed.  Frames follow on the same input.  So nothing has to be installed
there, and neither commands, environments nor secrets stand in an argument.
"""
import base64
import json
import os
import shlex
import zlib

STUB = 'exec(open(0,"rb",0,closefd=False).readline())'  # unbuffered: takes no byte beyond the line
MODULES = ("errors", "conf", "spawner", "wire", "pmi", "keeper", "topology", "jvm", "bootstrap", "branch", "ranks", "agent")
OLDEST_PYTHON = (3, 9)
LOADER = """\
import sys, zlib, base64, json, types
if sys.version_info < {oldest}:
    sys.exit("ibvrun: python3 of this node is " + sys.version.split()[0] + "; {text} or later is needed")
modules = json.loads(zlib.decompress(base64.b85decode(packed)))
package = sys.modules["ibvrun"] = types.ModuleType("ibvrun")
package.__path__ = []
for name, text in modules:
    module = sys.modules["ibvrun." + name] = types.ModuleType("ibvrun." + name)
    module.__package__ = "ibvrun"
    setattr(package, name, module)
    exec(compile(text, "ibvrun/" + name + ".py", "exec"), module.__dict__)
package.agent.main(modules)
"""
# These hand their words to a shell on the node, as rsh does: the command has to be quoted for it.
SHELL_COMMANDS = ("ssh", "rsh", "remsh", "gsissh", "oarsh", "blaunch", "lsrun", "pbsdsh", "pbs_tmrsh")
SSH = "ssh -x -T -o BatchMode=yes -o ConnectTimeout=15 -o ServerAliveInterval=5 -o ServerAliveCountMax=3"
SRUN = "srun --overlap --nodes=1 --ntasks=1 --nodelist={host} --mpi=none --cpu-bind=none --input=all --quiet"


def read_modules():
    """[[name, text], ...] of what an agent needs, in the order of their imports."""
    here = os.path.dirname(os.path.abspath(__file__))
    modules = []
    for name in MODULES:
        with open(os.path.join(here, name + ".py"), encoding="utf-8") as f:
            modules.append([name, f.read()])
    return modules


def source_line(modules):
    packed = base64.b85encode(zlib.compress(json.dumps(modules).encode(), 9)).decode()  # has no quotes
    loader = LOADER.format(oldest=OLDEST_PYTHON, text="%d.%d" % OLDEST_PYTHON)
    return ("packed='%s';exec(%r)\n" % (packed, loader)).encode()


def command(words, host, python):
    """The argv that starts an agent on a host.  words: the user's --agent, split; None: on this machine.

    {host} is replaced, or the host is appended; {command} is replaced by the agent's command, quoted for a shell;
    without it the command is appended, quoted where the program is known to use a shell.
    """
    agent = [python, "-I", "-S", "-c", STUB]
    if words is None:
        return agent
    quoted = " ".join(shlex.quote(w) for w in agent)
    argv = [w.replace("{host}", host).replace("{command}", quoted) for w in words]
    if not any("{host}" in w for w in words):
        argv.append(host)
    if any("{command}" in w for w in words):
        return argv
    return argv + ([quoted] if os.path.basename(words[0]) in SHELL_COMMANDS else agent)
