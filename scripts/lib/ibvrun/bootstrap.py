# SPDX-License-Identifier: MIT
"""How an agent comes to a node that has nothing but python3.

The command on the node is `python3 -c STUB`.  The stub reads one line of Python from its standard input and runs it.
That line, the loader, reads the modules of an agent from the same input: their source, and their code for nodes with
our release of Python, where nothing has to be compiled.  Frames follow.  So nothing has to be installed there, and
neither commands, environments nor secrets stand in an argument.
"""
import importlib
import importlib.util
import json
import marshal
import os
import shlex
import zlib

STUB = 'exec(open(0,"rb",0,closefd=False).readline())'  # unbuffered: takes no byte beyond the line
MODULES = ("errors", "conf", "spawner", "wire", "pmi", "keeper", "topology", "jvm", "archive", "bootstrap", "branch",
           "ranks", "agent")
OLDEST_PYTHON = (3, 9)
LOADER = """\
import sys
if sys.version_info < {oldest}:
    sys.exit("ibvrun: python3 of this node is " + sys.version.split()[0] + "; {text} or later is needed")
import importlib.util, json, marshal, os, types, zlib
blobs = []
for left in {sizes}:
    blob = b""
    while len(blob) < left:
        piece = os.read(0, left - len(blob))
        if not piece:
            sys.exit(1)
        blob += piece
    blobs.append(blob)
same = importlib.util.MAGIC_NUMBER == {magic}
package = sys.modules["ibvrun"] = types.ModuleType("ibvrun")
package.__path__ = []
for name, text in marshal.loads(zlib.decompress(blobs[1])) if same else json.loads(zlib.decompress(blobs[0])):
    module = sys.modules["ibvrun." + name] = types.ModuleType("ibvrun." + name)
    module.__package__ = "ibvrun"
    setattr(package, name, module)
    exec(text if same else compile(text, "ibvrun/" + name + ".py", "exec"), module.__dict__)
package.agent.main(blobs, {magic})
"""
# These hand their words to a shell on the node, as rsh does: the command has to be quoted for it.
SHELL_COMMANDS = ("ssh", "rsh", "remsh", "gsissh", "oarsh", "blaunch", "lsrun", "pbsdsh", "pbs_tmrsh")
SSH = "ssh -x -T -o BatchMode=yes -o ConnectTimeout=15 -o ServerAliveInterval=5 -o ServerAliveCountMax=3"
SRUN = ("srun --overlap --nodes=1 --ntasks=1 --nodelist={host} --mpi=none --cpu-bind=quiet,none --unbuffered "
        "--input=all --quiet")


def read_modules():
    """What an agent needs, in the order of its imports: [source, code], each packed."""
    sources, codes = [], []
    for name in MODULES:
        loader = importlib.import_module("ibvrun." + name).__spec__.loader
        full_name = "ibvrun." + name
        sources.append([name, loader.get_source(full_name)])
        codes.append([name, loader.get_code(full_name)])
    return [zlib.compress(json.dumps(sources).encode(), 6), zlib.compress(marshal.dumps(codes), 6)]


def message(blobs, magic=importlib.util.MAGIC_NUMBER):
    """What makes an agent of the stub.  magic: of the Python that the code is for."""
    loader = LOADER.format(oldest=OLDEST_PYTHON, text="%d.%d" % OLDEST_PYTHON, sizes=[len(b) for b in blobs], magic=magic)
    return ("exec(%r)\n" % loader).encode() + b"".join(blobs)


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
