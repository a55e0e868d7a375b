# SPDX-License-Identifier: MIT
"""Which two processors the ranks get: where there is a choice, a near pair and a far pair, in turn."""
import json
import os
import subprocess

MAX_PARTNERS = 8
DIFFERENT = 1.5


def _distance_ns(floor, pair, folder):
    path = os.path.join(folder, "distance")
    open(path, "w").close()
    subprocess.run([floor, "--only", "cacheline", "--samples", "5", "--sample-ms", "2", "--warmup", "1000", "--no-probe",
                    "--quiet", "--json", path], check=True, timeout=30, stdin=subprocess.DEVNULL,
                   preexec_fn=lambda: os.sched_setaffinity(0, pair))
    with open(path, encoding="utf-8") as lines:
        return json.loads(lines.readline())["median"] * 1e3


def choose(floor, folder):
    """(pairs of processors to use in turn, a sentence about them)."""
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        return [None], "one processor only: both ranks share it, and no sample is near or far"
    if len(cpus) == 2 or not os.path.isfile(floor):
        return [set(cpus[:2])], ("the ranks are on processors %d and %d; there is no other pair, so which state a sample "
                                 "meets is the host's doing" % tuple(cpus[:2]))
    step = max(1, (len(cpus) - 1) // MAX_PARTNERS)
    partners = sorted(set(cpus[1::step][:MAX_PARTNERS]) | {cpus[1], cpus[len(cpus) // 2], cpus[-1]})
    measured = sorted((_distance_ns(floor, {cpus[0], other}, folder), other) for other in partners)
    (near_ns, near), (far_ns, far) = measured[0], measured[-1]
    if far_ns < DIFFERENT * near_ns:
        return [{cpus[0], near}], ("processors %d and %d; all pairs tried are about as far apart (%.0f to %.0f ns for a cache "
                                   "line)" % (cpus[0], near, near_ns, far_ns))
    return [{cpus[0], near}, {cpus[0], far}], (
        "in turn processors %d and %d (%.0f ns for a cache line) and %d and %d (%.0f ns)" % (
            cpus[0], near, near_ns, cpus[0], far, far_ns))
