# SPDX-License-Identifier: MIT
"""The virtual machine in which Verbs are tried without an adapter (see scripts/ibvdev-vm --help).

cli        the options, and what the exit status means
packages   fetches Debian packages without installing them
cache      what is made of them once: kernel, modules, siw; and whether KVM works here
initramfs  the archive that a guest starts from
job        the command and the settings of one run, as files that the guest reads
machine    one qemu process and the channels to it
session    the run: boots the machines, brings output back, ends everything
guest/     what runs inside: boot (from the initramfs), node (on the host's root), on-node, node-server
"""


class RigError(Exception):
    """The run could not be done; the text names why and what to do.  unavailable: not on this machine."""

    def __init__(self, text, unavailable=False):
        super().__init__(text)
        self.unavailable = unavailable
