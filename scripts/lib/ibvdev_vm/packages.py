# SPDX-License-Identifier: MIT
"""Debian packages, fetched and unpacked without being installed; no root is needed."""
import os
import re
import shutil
import subprocess

from . import RigError

# What the rig itself needs: a command and the package that has it.
COMMANDS = (("qemu-system-x86_64", "qemu-system-x86"), ("busybox", "busybox-static"),
            ("apt-get", "apt"), ("dpkg-deb", "dpkg"))
GUEST_FILES = (("/etc/libibverbs.d/rxe.driver", "ibverbs-providers"),)
GUEST_COMMANDS = (("rdma", "iproute2"), ("tc", "iproute2"), ("ibv_devices", "ibverbs-utils"))
SIW_COMMANDS = (("make", "make"), ("gcc", "gcc"), ("strip", "binutils"))
EXTRA_PATH = ":/usr/local/sbin:/usr/sbin:/sbin"


def which(command):
    """Where a command is, also one that only root has in its path."""
    return shutil.which(command, path=os.environ.get("PATH", os.defpath) + EXTRA_PATH)


def require(pairs, what_for):
    missing = [(name, package) for name, package in pairs if not (os.path.exists(name) if name[0] == "/" else which(name))]
    if missing:
        raise RigError("%s needs %s, which %s not installed; as root: apt-get install -y --no-install-recommends %s" % (
            what_for, " and ".join(command for command, _ in missing), "is" if len(missing) == 1 else "are",
            " ".join(sorted({package for _, package in missing}))), unavailable=True)


def require_static_busybox():
    """Debian's other busybox package needs libc, which an initramfs has not."""
    if subprocess.run(["ldd", which("busybox")], capture_output=True, check=False).returncode == 0:
        raise RigError("the guest needs the busybox of busybox-static, this one is not static; as root: "
                       "apt-get install -y --no-install-recommends busybox-static", unavailable=True)


def run(argv, what, **options):
    """The output of a command, or a RigError that ends with the last lines the command wrote."""
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True, errors="replace", check=False, **options)
    except OSError as e:
        raise RigError("%s: %s: %s" % (what, argv[0], e.strerror)) from e
    if done.returncode != 0:
        reported = (done.stderr.strip() or done.stdout.strip()).splitlines()[-8:]
        raise RigError("%s: %s ended with status %d:\n  %s" % (what, argv[0], done.returncode, "\n  ".join(reported)))
    return done.stdout


class Repository:
    """Debian's archive as this machine is set up to use it.

    Where the system has no package lists (a fresh container), lists of our own are fetched into
    `folder`: the system's stay as they are.
    """

    def __init__(self, folder):
        self.folder = folder
        self.options = ["-o", "APT::Sandbox::User=root"]  # the folder need not be open to _apt

    def record(self, package):
        """The fields of the newest version of a package, as a dictionary; None: there is none."""
        out = subprocess.run(["apt-cache", *self.options, "show", "--no-all-versions", package],
                             stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False).stdout
        return dict(re.findall(r"^([A-Za-z-]+): (.*)$", out.split("\n\n")[0], re.M)) or None

    def require(self, package):
        found = self.record(package)
        if not found:
            self.own_lists()
            found = self.record(package)
        if not found:
            raise RigError("apt knows no package %s: is this Debian on amd64, with its main archive in /etc/apt?" % package,
                           unavailable=True)
        return found

    def own_lists(self):
        for name in ("lists/partial", "archives/partial"):
            os.makedirs(os.path.join(self.folder, name), exist_ok=True)
        self.options += ["-o", "Dir::State::lists=" + os.path.join(self.folder, "lists"), "-o", "Dir::Cache=" + self.folder]
        try:
            run(["apt-get", *self.options, "update", "-q"], "fetching package lists")
        except RigError as e:
            raise RigError("%s" % e, unavailable=True) from e

    def unpack(self, packages, target):
        """Fetches packages ("name" or "name=version") and unpacks them in target."""
        debs = os.path.join(self.folder, "debs")
        shutil.rmtree(debs, ignore_errors=True)
        os.makedirs(debs)
        os.makedirs(target, exist_ok=True)
        try:
            self.download(packages, debs)
            for name in sorted(os.listdir(debs)):
                deb = os.path.join(debs, name)
                run(["dpkg-deb", "-x", deb, target], "unpacking " + name)
        finally:
            shutil.rmtree(debs, ignore_errors=True)

    def download(self, packages, folder):
        argv = ["apt-get", *self.options, "download", "-q", *packages]
        what = "fetching " + " ".join(packages)
        try:
            run(argv, what, cwd=folder)
        except RigError:
            # Lists that are older than the archive name versions that it no longer has.
            self.own_lists()
            try:
                run(argv, what, cwd=folder)
            except RigError as e:
                raise RigError("%s" % e, unavailable=True) from e
