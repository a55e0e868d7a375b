# SPDX-License-Identifier: MIT
"""--stage: what the ranks need and may not be on the nodes, as one archive that the agents unpack.

A file or folder keeps its name, in a numbered folder of its own; a path in a command is written with STAGE_TOKEN, which
each agent replaces by the folder that it has made.
"""
import os
import tarfile
import tempfile

from .errors import UserError
from .ranks import STAGE_TOKEN

LIMIT_BYTES = 1 << 32
SYSTEM = ("/bin/", "/sbin/", "/lib/", "/lib64/", "/usr/bin/", "/usr/sbin/", "/usr/lib/")


class Stage:
    def __init__(self):
        self._paths = {}  # path here -> path in the archive
        self._archive = None

    def path(self, path):
        """Where it will be on the nodes; what does not exist is left as it is."""
        real = os.path.abspath(path)
        if not os.path.exists(real):
            return path
        if real not in self._paths:
            self._paths[real] = "%d/%s" % (len(self._paths), os.path.basename(real) or "root")
        return "%s/%s" % (STAGE_TOKEN, self._paths[real])

    def program(self, path):
        """The same for a program, unless it belongs to the system."""
        return path if path.startswith(SYSTEM) or os.sep not in path else self.path(path)

    def close(self):
        """Nothing more is added: reads everything into the archive, a file without a name."""
        self._archive = tempfile.TemporaryFile(prefix="ibvrun-stage-")
        total = 0

        def count(info):
            nonlocal total
            total += info.size
            if total > LIMIT_BYTES:
                raise UserError("--stage: %s: more than %d GB in all; name just what is needed by -cp"
                                % (info.name, LIMIT_BYTES >> 30))
            info.uid = info.gid = 0
            info.uname = info.gname = ""
            return info

        try:
            with tarfile.open(fileobj=self._archive, mode="w", dereference=True) as archive:
                for path, name in self._paths.items():
                    archive.add(path, name, filter=count)
        except OSError as e:
            raise UserError("--stage: %s: %s" % (e.filename or tempfile.gettempdir(), e.strerror)) from e
        self._archive.seek(0)

    def read(self, count):
        """The next piece; empty at the end."""
        return self._archive.read(count)
