# SPDX-License-Identifier: MIT
"""ibvrun as a task of another launcher: `srun ibvrun Prog`, `mpirun -np 64 ibvrun Prog`, `mpiexec ibvrun Prog`.

The engine has started one ibvrun a rank and knows them all.  Each becomes the command of its own rank, which finds the
others through the engine (conf "auto").
"""
import os
import re
import signal
from dataclasses import dataclass
from typing import Optional

from .errors import STATUS_NOT_RUN, UserError

SLURM_STEP_PSEUDO = 0xfffffff0  # from here on: the batch script, an interactive shell, not a step of tasks


@dataclass
class Task:
    engine: str
    rank: int
    size: Optional[int]  # None: the engine gives it to the library alone
    ranks_here: int      # on this machine, as far as is known


def find(environ):
    """The task that this process is, or None.  The order is the library's."""
    if "PMIX_RANK" in environ and "PMIX_NAMESPACE" in environ:
        size = _number(environ, "OMPI_COMM_WORLD_SIZE")
        if size is None and _is_slurm_task(environ):
            size = _number(environ, "SLURM_NTASKS")
        return _task("PMIx", environ, _number(environ, "PMIX_RANK"), size)
    if "PMI_FD" in environ or "PMI_PORT" in environ:
        rank = _number(environ, "PMI_RANK")
        return _task("PMI", environ, _number(environ, "PMI_ID") if rank is None else rank, _number(environ, "PMI_SIZE"))
    if _is_slurm_task(environ):
        return _task("Slurm", environ, _number(environ, "SLURM_PROCID"), _number(environ, "SLURM_NTASKS"))
    return None


def become(command, environ):
    """Replaces this process.  Its descriptors, that of PMI among them, stay open."""
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)  # Python ignores them
    try:
        if command.cwd:
            os.chdir(command.cwd)
    except OSError as e:
        raise UserError("-wdir %s: %s" % (command.cwd, e.strerror), STATUS_NOT_RUN) from e
    try:
        os.execvpe(command.argv[0], command.argv, dict(environ, **command.environ))
    except OSError as e:
        raise UserError("%s: starting %s: %s" % (command.name, command.argv[0], e.strerror), STATUS_NOT_RUN) from e


def _task(engine, environ, rank, size):
    if rank is None:
        raise UserError("this process is a task of %s, but the environment does not name its rank; to start a job of "
                        "its own here, unset PMIX_RANK, PMI_FD and SLURM_STEP_ID" % engine)
    here = _number(environ, "OMPI_COMM_WORLD_LOCAL_SIZE") or _number(environ, "MPI_LOCALNRANKS")
    if here is None and _is_slurm_task(environ):
        here = _slurm_tasks_here(environ)
    return Task(engine, rank, size, here or 1)


def _number(environ, name):
    text = environ.get(name, "")
    return int(text) if text.isdigit() else None


def _is_slurm_task(environ):
    step = _number(environ, "SLURM_STEP_ID")
    return step is not None and step < SLURM_STEP_PSEUDO and "SLURM_PROCID" in environ


def _slurm_tasks_here(environ):
    """SLURM_STEP_TASKS_PER_NODE=2(x3),1 and SLURM_NODEID"""
    counts = []
    for count, times in re.findall(r"(\d+)(?:\(x(\d+)\))?", environ.get("SLURM_STEP_TASKS_PER_NODE", "")):
        counts += [int(count)] * int(times or 1)
    node = _number(environ, "SLURM_NODEID")
    return counts[node] if node is not None and node < len(counts) else None
