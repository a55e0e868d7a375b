# SPDX-License-Identifier: MIT
"""Nodes of a cluster made of this machine: namespaces on one bridge, an sshd in each.

A node has a network (IPv4 192.0.2.I, IPv6 2001:db8:77::I, no route out), a host name nI, a /tmp and a /run of its own.
Isolated nodes also have processes, System V memory and /dev/shm of their own, as machines have; shared ones have
those in common, so that shared memory carries data between them.  Only for programs that called world.enter().
"""
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.normpath(os.path.join(HERE, "..", ".."))
sys.path.insert(0, os.path.join(ROOT, "tests", "common"))

from processes import wait_for  # noqa: E402  (the path has to be set first)

BRIDGE = "br0"
SSH_CONFIG = """Host n*
  User root
  IdentityFile {state}/id
  IdentitiesOnly yes
  UserKnownHostsFile {state}/known_hosts
  GlobalKnownHostsFile none
  BatchMode yes
  LogLevel ERROR
"""
SSHD_CONFIG = """Port 22
ListenAddress 192.0.2.{i}
ListenAddress 2001:db8:77::{i}
HostKey {state}/host_key
AuthorizedKeysFile {state}/id.pub
PermitRootLogin prohibit-password
PasswordAuthentication no
StrictModes no
UsePAM no
UseDNS no
PrintMotd no
PidFile none
MaxStartups 1000
MaxSessions 1000
"""


def ip(*words):
    subprocess.run(("ip",) + words, check=True)


def namespace(pid, kind):
    try:
        return os.readlink("/proc/%s/ns/%s" % (pid, kind))
    except OSError:
        return None


def children(pid):
    try:
        with open("/proc/%d/task/%d/children" % (pid, pid), encoding="ascii") as f:
            return [int(word) for word in f.read().split()]
    except OSError:
        return []


class Nodes:
    """count nodes n1, n2 ...; close() ends them and all that runs on them."""

    def __init__(self, count=4, shared=False, folders=()):
        self.count = count
        self.shared = shared
        self.numbers = range(1, count + 1)
        self.folder = tempfile.mkdtemp(prefix="ibvdev-cluster-")  # all nodes see it: the users' home
        self.state = os.path.join(self.folder, ".nodes")
        self._visible = [ROOT, self.folder] + [os.path.abspath(f) for f in folders]
        self._holders = {}
        os.mkdir(self.state, 0o700)
        self._write_files()
        ip("link", "add", BRIDGE, "type", "bridge", "stp_state", "0", "forward_delay", "0")
        ip("link", "set", BRIDGE, "up")
        try:
            for i in self.numbers:
                self._start(i)
            for i in self.numbers:
                wait_for(lambda: self._ready(i), "node n%d is up" % i)
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def name(self, i):
        return "n%d" % i

    def names(self):
        return [self.name(i) for i in self.numbers]

    def _path(self, name):
        return os.path.join(self.state, name)

    def _write(self, name, text):
        with open(self._path(name), "w", encoding="ascii") as f:
            f.write(text)

    def _write_files(self):
        for name in ("host_key", "id"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self._path(name)], check=True)
        with open(self._path("host_key.pub"), encoding="ascii") as f:
            key = " ".join(f.read().split()[:2])
        self._write("hosts", "127.0.0.1 localhost\n::1 localhost6\n" + "".join(
            "192.0.2.{0} n{0}\n2001:db8:77::{0} n{0}-6\n".format(i) for i in self.numbers))
        self._write("known_hosts", "".join("n{0},n{0}-6,192.0.2.{0},2001:db8:77::{0} {1}\n".format(i, key)
                                           for i in self.numbers))
        self._write("ssh_config", SSH_CONFIG.format(state=self.state))
        for i in self.numbers:
            self._write("sshd_%d" % i, SSHD_CONFIG.format(state=self.state, i=i))

    def _start(self, i):
        words = ["unshare", "--net", "--uts", "--mount"]
        if not self.shared:
            words += ["--ipc", "--pid", "--fork", "--kill-child", "--mount-proc"]
        words += [sys.executable, os.path.join(HERE, "node.py"), str(i), self.state, "0" if self.shared else "1"]
        holder = subprocess.Popen(words + self._visible, stdin=subprocess.DEVNULL)
        self._holders[i] = holder
        ours = namespace("self", "net")
        wait_for(lambda: namespace(holder.pid, "net") not in (ours, None) or holder.poll() is not None, "a network namespace")
        ip("link", "add", "p%d" % i, "type", "veth", "peer", "name", "eth0", "netns", str(holder.pid))
        ip("link", "set", "p%d" % i, "master", BRIDGE, "up")

    def _ready(self, i):
        if self._holders[i].poll() is not None:
            raise AssertionError("node n%d ended with status %d" % (i, self._holders[i].returncode))
        return os.path.exists(self._path("ready_%d" % i))

    def _first(self, i):
        """Process id of the node's first process, which is in all of its namespaces."""
        holder = self._holders[i].pid
        return holder if self.shared else (children(holder) or [holder])[0]

    def words_on(self, i, words, cwd=None):
        """The command that runs `words` on node i, in a session of its own as ssh gives it."""
        kinds = ["--net", "--uts", "--mount"] + ([] if self.shared else ["--ipc", "--pid"])
        return (["nsenter", "-t", str(self._first(i))] + kinds + ["--wdns=" + (cwd or self.folder), "setsid"]
                + [str(w) for w in words])

    def start(self, i, *words, cwd=None, **options):
        """subprocess.Popen of a command on node i; real_pid() has the process to which signals go."""
        return subprocess.Popen(self.words_on(i, words, cwd), **options)

    def on(self, i, *words, cwd=None, check=True, **options):
        options = dict({"stdin": subprocess.DEVNULL, "capture_output": True, "text": True, "timeout": 60}, **options)
        done = subprocess.run(self.words_on(i, words, cwd), check=False, **options)
        if check and done.returncode:
            raise AssertionError("n%d: %s: status %d\n%s%s" % (i, words, done.returncode, done.stdout, done.stderr))
        return done

    def real_pid(self, job):
        """nsenter forks to get into a pid namespace; what it started is its child."""
        if self.shared:
            return job.pid
        return (wait_for(lambda: children(job.pid) or job.poll() is not None and [job.pid], "the command is started"))[0]

    def cut(self, i):
        """The node's cable is pulled."""
        ip("link", "set", "p%d" % i, "down")

    def mend(self, i):
        ip("link", "set", "p%d" % i, "up")

    # -- what is there ------------------------------------------------------------------------------------

    def processes(self, i):
        """{pid: command line} of the node's processes; the dead that nobody has collected do not count."""
        network = namespace(self._first(i), "net")
        found = {}
        for name in os.listdir("/proc"):
            if not name.isdigit() or namespace(name, "net") != network:
                continue
            try:
                with open("/proc/%s/stat" % name, encoding="utf-8", errors="replace") as f:
                    dead = f.read().rpartition(")")[2].split()[0] in "ZX"
                with open("/proc/%s/cmdline" % name, encoding="utf-8", errors="replace") as f:
                    line = f.read().replace("\0", " ").strip()
            except OSError:
                continue
            if not dead:
                found[int(name)] = line
        return found

    def ports(self, i):
        """Listening sockets, as "tcp address:port", and Unix sockets that have names."""
        lines = self.on(i, "ss", "-Hltunx").stdout.splitlines()
        return {" ".join((w[0], w[4]) if not w[0].startswith("u_") else (w[0], w[4])) for w in map(str.split, lines)
                if w[4] != "*"}

    def files(self, i):
        """Paths in the node's own /tmp and in /dev/shm."""
        skip = " ".join("-path %s -prune -o" % f for f in self._visible if f.startswith("/tmp/"))
        return set(self.on(i, "sh", "-c", "find /tmp /dev/shm /run -mindepth 1 %s -print" % skip).stdout.splitlines())

    def snapshot(self):
        return {i: (self.processes(i), self.ports(i), self.files(i)) for i in self.numbers}

    def new_since(self, before, ignore=lambda thing: False):
        """What there is now and was not before, as lines of text."""
        lines = []
        for i, now in self.snapshot().items():
            processes = [(p, line) for p, line in now[0].items() if p not in before[i][0]]
            things = ["process %d: %s" % (p, line) for p, line in processes]
            things += ["port " + p for p in sorted(now[1] - before[i][1])]
            things += ["file " + f for f in sorted(now[2] - before[i][2])]
            lines += ["n%d: %s" % (i, t) for t in things if not ignore(t)]
        return lines

    def close(self):
        for i, holder in self._holders.items():
            if self.shared:
                for pid in self.processes(i):
                    if pid != holder.pid:
                        _kill(pid)
            holder.kill()
            holder.wait()
        subprocess.run(["ip", "link", "del", BRIDGE], check=False)
        for i in self._holders:
            subprocess.run(["ip", "link", "del", "p%d" % i], check=False, stderr=subprocess.DEVNULL)
        shutil.rmtree(self.folder, ignore_errors=True)


def _kill(pid):
    try:
        os.kill(pid, 9)
    except OSError:
        pass
