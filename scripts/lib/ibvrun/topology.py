# SPDX-License-Identifier: MIT
"""Which processors a rank may run on: --bind core and --bind numa."""
import os
import re

SYS = "/sys/devices/system"


def cpu_list(text):
    """"0-3,8" -> [0, 1, 2, 3, 8]"""
    cpus = []
    for part in filter(None, re.split(r"[,\s]+", text)):
        low, dash, high = part.partition("-")
        cpus += range(int(low), int(high if dash else low) + 1)
    return cpus


def shown(cpus):
    """[0, 1, 2, 3, 8] -> "0-3,8" """
    parts, cpus = [], sorted(cpus)
    while cpus:
        end = 1
        while end < len(cpus) and cpus[end] == cpus[0] + end:
            end += 1
        parts.append(str(cpus[0]) if end == 1 else "%d-%d" % (cpus[0], cpus[end - 1]))
        cpus = cpus[end:]
    return ",".join(parts)


def cores(allowed, sys=SYS):
    """Groups of processors that share a core, neighbours on a socket first."""
    groups = {}
    for cpu in sorted(allowed):
        siblings = _read("%s/cpu/cpu%d/topology/thread_siblings_list" % (sys, cpu)) or str(cpu)
        socket = _read("%s/cpu/cpu%d/topology/physical_package_id" % (sys, cpu)) or "0"
        groups.setdefault((int(socket), min(cpu_list(siblings))), []).append(cpu)
    return [groups[key] for key in sorted(groups)]


def numa_nodes(allowed, sys=SYS):
    """Allowed processors of each memory node that has some; one group where the kernel knows no nodes."""
    groups = []
    folder = sys + "/node"
    names = sorted((n for n in _names(folder) if re.fullmatch(r"node\d+", n)), key=lambda n: int(n[4:]))
    for name in names:
        cpus = sorted(set(cpu_list(_read("%s/%s/cpulist" % (folder, name)) or "")) & set(allowed))
        if cpus:
            groups.append(cpus)
    return groups or [sorted(allowed)]


def binding(how, index, count, wide, allowed, sys=SYS):
    """Processors for rank number index of count on this node; None: all.

    core: one core each, in turn, or one processor where there are fewer cores than ranks; with wide (a JVM, whose
    compiler and collector threads need room too) an equal share of neighbouring cores instead.  numa: a memory node,
    ranks in blocks.
    """
    if how == "core":
        groups = cores(allowed, sys)
        if count > len(groups):
            groups = [[cpu] for cpu in sorted(allowed)]  # the threads of a core are shared out, too
        share = max(1, len(groups) // count) if wide else 1
        first = index * share % len(groups)
        return sorted(cpu for group in groups[first:first + share] for cpu in group)
    if how == "numa":
        groups = numa_nodes(allowed, sys)
        return groups[index * len(groups) // count]
    return None


def _read(path):
    try:
        with open(path, encoding="ascii") as f:
            return f.read().strip()
    except OSError:
        return None


def _names(folder):
    try:
        return os.listdir(folder)
    except OSError:
        return []
