# SPDX-License-Identifier: MIT
"""What is made once and kept: the guest's kernel, its modules, siw, and whether KVM works here.

cache/kernel-RECIPE/        vmlinux or vmlinuz, modules/*.ko, facts.json; made whole or not at all
cache/kernel-RECIPE/siw.ko  built from Debian's kernel source for exactly this kernel
cache/kvm.json              remembered answer of machine.probe_kvm
"""
import contextlib
import fcntl
import hashlib
import json
import lzma
import os
import re
import shutil
import struct
import tarfile
import tempfile
import zlib

from . import RigError, packages

RECIPE = 1  # count up when what is kept changes
BOOT_MODULES = ("virtio_pci", "virtio_console", "9pnet_virtio", "9p", "overlay")
# crc32_generic: no module depends on it, yet rxe cannot make a link without it.
NODE_MODULES = ("virtio_net", "crc32_generic", "rdma_rxe", "rdma_ucm", "ib_uverbs", "sch_netem")
SIW_NEEDS = ("crc32c_generic", "libcrc32c", "ib_core", "iw_cm", "rdma_cm")
SIW_FOLDER = "drivers/infiniband/sw/siw"


def default_folder():
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.environ.get("IBVDEV_VM_CACHE") or os.path.join(base, "ibvdev-vm")


@contextlib.contextmanager
def locked(folder):
    """One process at a time fills the cache; the others wait and then find it filled."""
    try:
        os.makedirs(folder, exist_ok=True)
        lock = open(os.path.join(folder, "lock"), "w", encoding="utf-8")
    except OSError as e:
        raise RigError("the cache %s: %s; --cache names another folder" % (folder, e.strerror)) from e
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


class Kernel:
    """A cached kernel.  modules: paths in loading order, by the time of loading ("boot", "node", "siw")."""

    def __init__(self, folder, facts):
        self.folder = folder
        self.release = facts["release"]
        self.version = facts["version"]
        self.image = os.path.join(folder, facts["image"])
        self.modules = {group: [os.path.join(folder, "modules", m + ".ko") for m in facts[group]]
                        for group in ("boot", "node", "siw")}
        self.siw = os.path.join(folder, "siw.ko")

    def with_siw(self, wanted):
        self.modules["siw"] = self.modules["siw"] + [self.siw] if wanted else []
        return self


def recipe_name():
    text = repr((RECIPE, BOOT_MODULES, NODE_MODULES, SIW_NEEDS))
    return "kernel-" + hashlib.sha256(text.encode()).hexdigest()[:12]


def kernel(folder, want_siw, report, refresh=False):
    """The cached kernel, made first if need be.  report(text) informs the user of what takes time."""
    with locked(folder):
        home = os.path.join(folder, recipe_name())
        if refresh:
            shutil.rmtree(home, ignore_errors=True)
        if not os.path.exists(os.path.join(home, "facts.json")):
            shutil.rmtree(home, ignore_errors=True)
            with work_folder(folder) as work:
                make_kernel(work, os.path.join(work, "new"), report)
                os.rename(os.path.join(work, "new"), home)
        with open(os.path.join(home, "facts.json"), encoding="utf-8") as f:
            found = Kernel(home, json.load(f))
        if want_siw and not os.path.exists(found.siw):
            packages.require(packages.SIW_COMMANDS, "building siw (--no-siw does without it)")
            with work_folder(folder) as work:
                built = build_siw(work, found, report)
                os.rename(built, found.siw)
        return found.with_siw(want_siw)


@contextlib.contextmanager
def work_folder(folder):
    work = tempfile.mkdtemp(prefix="work.", dir=folder)
    try:
        yield work
    finally:
        shutil.rmtree(work, ignore_errors=True)


def make_kernel(work, target, report):
    repository = packages.Repository(os.path.join(work, "apt"))
    meta = repository.require("linux-image-amd64")
    name = re.search(r"linux-image-[0-9][^ ,|]*", meta.get("Depends", ""))
    if not name:
        raise RigError("linux-image-amd64 depends on no kernel package: %s" % meta.get("Depends"))
    name = name.group()
    record = repository.require(name)
    version = record["Version"]
    report("fetching Debian's kernel package %s %s (once, about 70 MB)" % (name, version))
    tree = os.path.join(work, "tree")
    repository.unpack(["%s=%s" % (name, version)], tree)
    release = name[len("linux-image-"):]
    os.makedirs(os.path.join(target, "modules"))
    # From Debian 13 on, /lib is a link and packages use /usr/lib.
    for lib in ("lib", "usr/lib"):
        modules = os.path.join(tree, lib, "modules", release)
        if os.path.isdir(modules):
            break
    else:
        raise RigError("%s holds no modules of %s" % (name, release))
    index = ModuleIndex(modules)
    boot = index.closure(BOOT_MODULES, ())
    node = index.closure(NODE_MODULES, boot)
    siw = index.closure(SIW_NEEDS, boot + node)
    for module in boot + node + siw:
        with open(os.path.join(target, "modules", module + ".ko"), "wb") as f:
            f.write(index.content(module))
    image = copy_image(os.path.join(tree, "boot", "vmlinuz-" + release), target)
    facts = {"release": release, "version": version, "image": image, "boot": boot, "node": node, "siw": siw}
    with open(os.path.join(target, "facts.json"), "w", encoding="utf-8") as f:
        json.dump(facts, f, indent=1)


class ModuleIndex:
    """The modules of an unpacked kernel package, which comes without modules.dep."""

    def __init__(self, folder):
        self.paths = {}
        for at, _, names in os.walk(os.path.join(folder, "kernel")):
            for name in names:
                if re.search(r"\.ko(\.xz)?$", name):
                    self.paths[name.split(".")[0].replace("-", "_")] = os.path.join(at, name)
        with open(os.path.join(folder, "modules.builtin"), encoding="utf-8") as f:
            self.builtin = {os.path.basename(line.strip()).split(".")[0].replace("-", "_") for line in f}

    def content(self, name):
        path = self.paths[name]
        with (lzma.open if path.endswith(".xz") else open)(path, "rb") as f:
            return f.read()

    def closure(self, names, loaded):
        """The modules that names need, themselves included, without those in loaded, in loading order."""
        order = []

        def add(name):
            name = name.replace("-", "_")
            if name in order or name in loaded or name in self.builtin:
                return
            if name not in self.paths:
                raise RigError("this kernel has no module %s" % name)
            depends = re.search(rb"\0depends=([^\0]*)\0", self.content(name))
            for other in depends.group(1).decode().split(",") if depends else ():
                if other:
                    add(other)
            order.append(name)

        for name in names:
            add(name)
        return order


def copy_image(path, target):
    """Keeps the kernel unpacked where we can unpack it: an emulated processor takes seconds for it."""
    with open(path, "rb") as f:
        data = f.read()
    inner = unpacked_image(data)
    name = "vmlinux" if inner else "vmlinuz"
    with open(os.path.join(target, name), "wb") as f:
        f.write(inner or data)
    return name


def unpacked_image(data):
    """The ELF image in a bzImage (Linux's Documentation/x86/boot.rst), or None."""
    if data[0x202:0x206] != b"HdrS" or struct.unpack_from("<H", data, 0x206)[0] < 0x208:
        return None
    start = (data[0x1f1] + 1) * 512 + struct.unpack_from("<I", data, 0x248)[0]
    payload = data[start:start + struct.unpack_from("<I", data, 0x24c)[0]]
    try:
        if payload.startswith(b"\xfd7zXZ\0"):
            inner = lzma.LZMADecompressor().decompress(payload)
        elif payload.startswith(b"\x1f\x8b"):
            inner = zlib.decompressobj(31).decompress(payload)
        else:
            return None
    except (lzma.LZMAError, zlib.error):
        return None
    # Only a kernel with the PVH entry note ("Xen", type 18) can be started as ELF.
    pvh = struct.pack("<III4s", 4, 8, 18, b"Xen\0") in inner or struct.pack("<III4s", 4, 4, 18, b"Xen\0") in inner
    return inner if inner.startswith(b"\x7fELF") and pvh else None


def build_siw(work, found, report):
    """Debian's kernel has soft-iWARP switched off; its source package has it."""
    repository = packages.Repository(os.path.join(work, "apt"))
    series = re.match(r"\d+\.\d+", found.release).group()
    common = re.sub(r"-(cloud-)?amd64$", "-common", found.release)
    exact = "=" + found.version
    report("building siw from Debian's kernel source %s (once, fetches about 150 MB)" % found.version)
    tree = os.path.join(work, "tree")
    kbuild = "linux-kbuild-" + found.release if repository.record("linux-kbuild-" + found.release) else "linux-kbuild-" + series
    repository.unpack(["linux-source-" + series + exact, "linux-headers-" + found.release + exact,
                       "linux-headers-" + common + exact, kbuild], tree)
    source = os.path.join(work, "siw")
    extract_source(os.path.join(tree, "usr/src"), series, source)
    headers = os.path.join(tree, "usr/src/linux-headers-" + found.release)
    makefile = os.path.join(headers, "Makefile")
    with open(makefile, encoding="utf-8") as f:
        text = f.read()
    with open(makefile, "w", encoding="utf-8") as f:
        f.write(text.replace("/usr/src/", os.path.join(tree, "usr/src") + "/"))
    packages.run(["make", "-C", headers, "M=" + source, "CONFIG_RDMA_SIW=m", "modules"], "building siw")
    built = os.path.join(source, "siw.ko")
    packages.run(["strip", "--strip-debug", built], "building siw")
    return built


def extract_source(folder, series, target):
    os.makedirs(target)
    with tarfile.open(os.path.join(folder, "linux-source-%s.tar.xz" % series), "r|xz") as archive:
        found = False
        for member in archive:
            inside = "/%s/" % SIW_FOLDER in member.name
            if inside and member.isfile():
                found = True
                with open(os.path.join(target, os.path.basename(member.name)), "wb") as f:
                    shutil.copyfileobj(archive.extractfile(member), f)
            elif found and not inside:
                break  # the archive is sorted: the rest need not be unpacked
    if not found:
        raise RigError("linux-source-%s holds no %s" % (series, SIW_FOLDER))


def remembered(folder, name):
    try:
        with open(os.path.join(folder, name), encoding="utf-8") as f:
            return json.load(f)
    except (OSError, ValueError):
        return {}


def remember(folder, name, facts):
    temporary = os.path.join(folder, name + ".new")
    with open(temporary, "w", encoding="utf-8") as f:
        json.dump(facts, f, indent=1)
    os.replace(temporary, os.path.join(folder, name))
