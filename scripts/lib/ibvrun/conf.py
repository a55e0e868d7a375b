# SPDX-License-Identifier: MIT
"""What a job is made of before its first process: ids, ports, the conf file.

On one machine the ranks get a conf file, on several the wire of the agents (pmi).  The file stays for one machine because
programs get its path as MPJ Express documents it, --dry-run can show commands that start the ranks by hand, and no step of
ibvrun, which starts ranks meanwhile, lies between the ranks.  The ports in it are reserved, so that it cannot collide.
"""
import os
import shutil
import socket
import tempfile

from .errors import UserError

LOOPBACK = "127.0.0.1"


class Ports:
    """Free TCP ports that stay reserved until close.

    Each is bound with SO_REUSEADDR and never listened on.  Linux then gives it to no process that asks for any
    free port, while a rank that asks for exactly this port, with SO_REUSEADDR like every server, gets it.
    So there is no moment in which another job can take it.
    """

    def __init__(self, count):
        self._sockets = []
        self.numbers = []
        try:
            for _ in range(count):
                s = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
                self._sockets.append(s)
                s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                s.bind(("", 0))
                self.numbers.append(s.getsockname()[1])
        except OSError as e:
            self.close()
            raise UserError("reserving %d TCP ports: %s; start fewer ranks, or raise ulimit -n and the range "
                            "net.ipv4.ip_local_port_range" % (count, e.strerror)) from e

    def close(self):
        for s in self._sockets:
            s.close()
        self._sockets = []


def conf_text(np, psl_bytes, lines):
    return "# written by ibvrun\n# number of processes\n%d\n# protocol switch limit, bytes\n%d\n%s\n" % (
        np, psl_bytes, "\n".join(lines))


def conf_lines_classic(hosts, ports):
    """host@rport@wport@rank@debugport: hosts holds one a rank, ports two."""
    return ["%s@%d@%d@%d@0" % (host, ports[2 * r], ports[2 * r + 1], r) for r, host in enumerate(hosts)]


def conf_lines_mxdev(np):
    """host@board@rank@debugport, as mpjrun writes them for mxdev."""
    return ["localhost@%d@%d@0" % (r, r) for r in range(np)]


class Job:
    """Id, secret and the temporary folder of one job.

    The user's values go to the ranks as they are: the library reports what is wrong with them.
    """

    def __init__(self, environ, by_launcher=False, ours=True):
        """by_launcher: rank 0's address and the secret travel through a launcher's wire; there is no conf file.
        ours: the ranks are ours to name and to clean up after."""
        self.by_launcher = by_launcher
        self._ours = ours
        self._drawn = os.urandom(16).hex()
        self.id = environ.get("IBVDEV_JOB_ID") or self._drawn
        self.secret = environ.get("IBVDEV_JOB_SECRET") or os.urandom(16).hex()
        self.folder = None

    def write_conf(self, path, text):
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as f:
            f.write(text)

    def environ(self):
        """What every rank gets.  A secret that the user has set is among the settings that it gets anyway."""
        if not self._ours:
            return {}
        if self.by_launcher:
            return {"IBVDEV_JOB_ID": self.id}
        return {"IBVDEV_JOB_ID": self.id, "IBVDEV_JOB_SECRET": self.secret}

    def conf_word(self):
        """What a rank gets of the conf."""
        return "auto" if self.by_launcher else self.conf_path()

    def conf_path(self):
        """Where the conf file is or, before make_folder, where by-hand ranks can have it."""
        if self.folder:
            return os.path.join(self.folder, "job.conf")
        return os.path.join(tempfile.gettempdir(), "ibvrun-%s.conf" % self._drawn[:12])

    def make_folder(self):
        try:
            self.folder = tempfile.mkdtemp(prefix="ibvrun-")
        except OSError as e:
            raise UserError("no folder for the conf file can be made in %s: %s; set TMPDIR to a folder that "
                            "you can write to" % (tempfile.gettempdir(), e.strerror)) from e


def remove_folder(folder):
    """Removes a folder that this job made, with everything in it; None: there is none.  It may be gone already: the
    guardian and a keeper do the same."""
    if folder:
        shutil.rmtree(folder, ignore_errors=True)
