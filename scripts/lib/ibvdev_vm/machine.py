# SPDX-License-Identifier: MIT
"""One qemu process and the channels to the guest in it."""
import ctypes
import os
import re
import shutil
import signal
import socket
import subprocess
import time

from . import cache, initramfs, packages

GUEST = os.path.join(os.path.dirname(os.path.realpath(__file__)), "guest")
CHANNELS = ("control", "out", "err")  # ports 1, 2, 3 in the guest
PROBE_SECONDS = 20
KERNEL_ARGUMENTS = ("console=ttyS0 loglevel=4 panic=-1 nokaslr mitigations=off tsc=reliable no_timer_check "
                    "random.trust_cpu=on nowatchdog rcupdate.rcu_expedited=1 raid=noautodetect")


def die_with_parent():
    """In the child: whatever ends the rig, kill -9 included, ends the machine."""
    ctypes.CDLL(None, use_errno=True).prctl(1, signal.SIGKILL, 0, 0, 0)


class Machine:
    """node: its number; folder: for its files, private to the run; nets: sockets to the other node, one
    for each network device; without them, hubs devices have a link and nobody behind it."""

    def __init__(self, node, folder):
        self.node = node
        self.initrd = os.path.join(folder, "initrd%d" % node)
        self.console = os.path.join(folder, "console%d.log" % node)
        self.process = None
        self.channels = {}
        self.started = 0

    def prepare(self, kernel, files):
        initramfs.write(self.initrd, packages.which("busybox"), kernel, GUEST, files)

    def start(self, kernel, accel, smp, memory, nets=(), results=None, terminal=False, hubs=1):
        theirs = []
        argv = ["qemu-system-x86_64", "-nodefaults", "-no-user-config", "-no-reboot", "-display", "none",
                "-machine", "pc,usb=off,hpet=off", "-accel", accel if accel == "kvm" else "tcg,thread=multi",
                "-cpu", "host" if accel == "kvm" else "max", "-smp", str(smp), "-m", str(memory),
                "-kernel", kernel.image, "-initrd", self.initrd, "-append", KERNEL_ARGUMENTS,
                "-virtfs", "local,path=/,mount_tag=host,security_model=none,readonly=on,multidevs=remap",
                "-device", "virtio-serial-pci,max_ports=8"]
        if terminal:
            argv += ["-chardev", "stdio,id=console,signal=off,logfile=" + self.console]
        else:
            argv += ["-chardev", "file,id=console,path=" + self.console]
        argv += ["-serial", "chardev:console"]
        if results:
            argv += ["-virtfs", "local,path=%s,mount_tag=results,security_model=none,multidevs=remap" % results.replace(",", ",,")]
        for number, name in enumerate(CHANNELS, 1):
            ours, other = socket.socketpair()
            self.channels[name] = ours
            theirs.append(other)
            argv += ["-chardev", "socket,id=%s,fd=%d" % (name, other.fileno()),
                     "-device", "virtserialport,nr=%d,chardev=%s,name=ibvdev.%s" % (number, name, name)]
        for number, net in enumerate(nets or [None] * hubs):
            backend = "socket,fd=%d" % net.fileno() if net else "hubport,hubid=%d" % number
            argv += ["-netdev", "%s,id=net%d" % (backend, number),
                     "-device", "virtio-net-pci,netdev=net%d,mac=52:54:00:77:%02x:%02x,romfile=" % (number, number, self.node + 1)]
        inherited = [s.fileno() for s in (*theirs, *nets)]
        self.started = time.monotonic()
        self.process = subprocess.Popen(
            [packages.which(argv[0]), *argv[1:]], stdin=None if terminal else subprocess.DEVNULL,
            stdout=None if terminal else subprocess.DEVNULL, stderr=subprocess.PIPE, pass_fds=inherited,
            preexec_fn=die_with_parent)
        for s in (*theirs, *nets):
            s.close()

    def kill(self):
        if self.process:
            self.process.kill()
            self.process.wait()

    def console_tail(self, count=25):
        """The last lines of the console; of a kernel that crashed, all since the crash (60 at most)."""
        try:
            with open(self.console, encoding="utf-8", errors="replace") as f:
                lines = [line.rstrip() for line in f.read().splitlines() if line.strip()]
        except OSError:
            return []
        crash = next((i for i, line in enumerate(lines) if re.search(r"Kernel panic|BUG: |Oops: |general protection", line)), None)
        return lines[-count:] if crash is None else lines[max(0, crash - 1):crash + 60]

    def complaint(self):
        """What qemu itself wrote; only once it has ended."""
        return self.process.stderr.read().decode(errors="replace").strip()


def probe_kvm(folder, kernel, work):
    """Whether a guest lives under KVM here: on some machines /dev/kvm is there and yet a kernel hangs at boot."""
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return False
    key = "%s %s" % (os.uname().release, kernel.version)
    with cache.locked(folder):
        known = cache.remembered(folder, "kvm.json")
        if key not in known:
            known[key] = probe_once(kernel, os.path.join(work, "probe"))
            cache.remember(folder, "kvm.json", known)
        return known[key]


def probe_once(kernel, work):
    os.mkdir(work)
    machine = Machine(0, work)
    machine.prepare(kernel, {"settings": "PURPOSE=probe\n"})
    machine.start(kernel, "kvm", 1, 512)
    try:
        machine.process.wait(PROBE_SECONDS)
    except subprocess.TimeoutExpired:
        pass
    finally:
        machine.kill()
        for channel in machine.channels.values():
            channel.close()
    alive = any("the probe lives" in line for line in machine.console_tail())
    shutil.rmtree(work, ignore_errors=True)
    return alive
