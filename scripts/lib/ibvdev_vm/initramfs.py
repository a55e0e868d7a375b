# SPDX-License-Identifier: MIT
"""The archive that the kernel unpacks before it runs /init: cpio in the "newc" format."""
import os
import stat


class Archive:
    def __init__(self):
        self.parts = []
        self.count = 0
        self.folders = set()

    def entry(self, name, mode, data=b"", device=(0, 0)):
        self.count += 1
        path = name.encode() + b"\0"
        fields = (self.count, mode, 0, 0, 1, 0, len(data), 0, 0, device[0], device[1], len(path), 0)
        head = b"070701" + b"".join(b"%08X" % f for f in fields) + path
        self.parts += [head, b"\0" * (-len(head) % 4), data, b"\0" * (-len(data) % 4)]

    def folder(self, name):
        for i in [i for i, c in enumerate(name) if c == "/"] + [len(name)]:
            if name[:i] and name[:i] not in self.folders:
                self.folders.add(name[:i])
                self.entry(name[:i], stat.S_IFDIR | 0o755)

    def file(self, name, data, mode=0o644):
        self.folder(os.path.dirname(name))
        self.entry(name, stat.S_IFREG | mode, data.encode() if isinstance(data, str) else data)

    def copy(self, name, path, mode=0o644):
        with open(path, "rb") as f:
            self.file(name, f.read(), mode)

    def node(self, name, major, minor):
        self.folder(os.path.dirname(name))
        self.entry(name, stat.S_IFCHR | 0o600, device=(major, minor))

    def write(self, path):
        self.entry("TRAILER!!!", 0)
        with open(path, "wb") as f:
            f.writelines(self.parts)


def write(path, busybox, kernel, guest_folder, job_files):
    """kernel: cache.Kernel; job_files: what /rig holds beside the guest's own scripts, name to text."""
    archive = Archive()
    archive.node("dev/console", 5, 1)  # or the kernel runs /init without standard streams
    archive.copy("rig/busybox", busybox, 0o755)
    archive.copy("init", os.path.join(guest_folder, "boot"), 0o755)
    for name in ("node", "on-node", "kill-node", "node-server"):
        archive.copy("rig/" + name, os.path.join(guest_folder, name), 0o755)
    for group, modules in kernel.modules.items():
        archive.file("modules/" + group, "".join("%s\n" % os.path.basename(m) for m in modules))
        for module in modules:
            archive.copy("modules/" + os.path.basename(module), module)
    for name, text in job_files.items():
        archive.file("rig/" + name, text)
    archive.write(path)
