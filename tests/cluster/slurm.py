# SPDX-License-Identifier: MIT
"""A private Slurm over nodes: munged, slurmctld on n1, a slurmd a node.  It ends with the nodes."""
import os
import shutil
import subprocess

import world
from nodes import wait_for

CONF = """ClusterName=ibvdev
SlurmctldHost=n1
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
MpiDefault=none
MpiParams=ports=31000-31999
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SwitchType=switch/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
ReturnToService=2
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool.%n
TmpFS=/tmp
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.%n.log
SlurmctldPort=6817
SlurmdParameters=config_overrides
InactiveLimit=0
KillWait=2
MinJobAge=300
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1
NodeName={names} CPUs={cpus} State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=YES
"""


def why_not():
    """Why there can be no Slurm here, or None."""
    for command, package in (("slurmctld", "slurmctld"), ("slurmd", "slurmd"), ("srun", "slurm-client"), ("munged", "munge")):
        if not world.find(command):
            return "no %s here (Debian package %s)" % (command, package)
    return None


class Slurm:
    """Slurm on all nodes; environment: what srun and scancel need."""

    def __init__(self, nodes, cpus=4):
        self.nodes = nodes
        self.folder = os.path.join(nodes.folder, ".slurm")
        self.environment = {"SLURM_CONF": os.path.join(self.folder, "slurm.conf")}
        os.makedirs(os.path.join(self.folder, "state"))
        os.chmod(self.folder, 0o755)
        self._munge()
        self._write("slurm.conf", CONF.format(folder=self.folder, names="n[1-%d]" % nodes.count, cpus=cpus))
        self._write("cgroup.conf", "CgroupPlugin=cgroup/v%d\n" % (2 if os.path.exists("/sys/fs/cgroup/cgroup.procs") else 1))
        conf = self.environment["SLURM_CONF"]
        nodes.on(1, "slurmctld", "-f", conf)
        for i in nodes.numbers:
            os.mkdir(os.path.join(self.folder, "spool." + nodes.name(i)))
            # where Debian's munge has it, for programs that ask munge themselves
            nodes.on(i, "sh", "-c", "mkdir -p /run/munge && ln -s %s/munge.socket /run/munge/munge.socket.2" % self.folder)
            nodes.on(i, "slurmd", "-f", conf)
        wait_for(lambda: self.idle() == nodes.count, "all nodes of Slurm are idle", 60)

    def _write(self, name, text):
        with open(os.path.join(self.folder, name), "w", encoding="ascii") as f:
            f.write(text)

    def _munge(self):
        """One for all nodes: its socket is in a folder that all see."""
        key = os.path.join(self.folder, "munge.key")
        with open(os.open(key, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o400), "wb") as f:
            f.write(os.urandom(1024))
        subprocess.run([world.find("munged"), "--force", "--key-file=" + key]
                       + ["--%s=%s/munge.%s" % (name, self.folder, suffix) for name, suffix in (
                           ("socket", "socket"), ("pid-file", "pid"), ("log-file", "log"), ("seed-file", "seed"))],
                       check=True, stdin=subprocess.DEVNULL)

    def ask(self, *words):
        """Standard output of a command of Slurm on n1."""
        return self.nodes.on(1, *words, env=dict(os.environ, **self.environment), check=False).stdout

    def idle(self):
        return sum(int(line) for line in self.ask("sinfo", "-h", "-t", "idle", "-o", "%D").split())

    def log(self):
        """The ends of the daemons' logs, for a failure's text."""
        text = ""
        for name in sorted(os.listdir(self.folder)):
            if name.endswith(".log"):
                with open(os.path.join(self.folder, name), encoding="utf-8", errors="replace") as f:
                    text += "--- %s\n%s" % (name, "".join(f.readlines()[-15:]))
        return text

    def close(self):
        with open(os.path.join(self.folder, "munge.pid"), encoding="ascii") as f:
            os.kill(int(f.read()), 15)
        shutil.rmtree(self.folder, ignore_errors=True)
