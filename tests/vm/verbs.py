#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tests of the transport verbs on real kernel RDMA, in a guest of scripts/ibvdev-vm.

usage: verbs.py RIG CASE VM_JOB [JAVA_ARGUMENT...]

Exits 77 (skipped) only where ibvdev-vm --prepare says that this machine cannot run a guest.
"""
import os
import shlex
import subprocess
import sys

SKIPPED = 77
VERBS = "transports=self,verbs"
# What one device has to stand; every line is one job.  The stream of seed 3 has messages of 1 MB.
TRAFFIC = [
    "--ranks 2 --seeds 3",
    "--ranks 4 --seeds 2",
    "--ranks 2 --seeds 2 --threads",
    "--ranks 4 --seeds 1 --seed 7 --threads",
    "--ranks 2 --big 20000000",
    "--ranks 3 --kill",
]
# Other ways through the transport.
VARIANTS = [
    "--ranks 3 --seeds 2 --seed 10 verbs_srq=0",
    "--ranks 3 --seeds 2 --seed 20 verbs_inline=0 verbs_slots=4",
    "--ranks 3 --seeds 2 --seed 30 verbs_chunk=512 psl=1k",
    "--ranks 2 --seeds 2 --seed 40 verbs_get_min=1g",
    "--ranks 2 --seeds 2 --seed 50 verbs_get_min=0 psl=0",
    "--ranks 2 --big 100000 spin_us=0 yield_us=0",
]
# Options of the rig and jobs, by case.
CASES = {
    "rxe": (["--no-siw"], TRAFFIC),
    "siw": (["--no-rxe"], TRAFFIC),
    "rxe-variants": (["--no-siw"], VARIANTS),
    "siw-variants": (["--no-rxe"], VARIANTS),
    "device": ([], ["--ranks 2 --seeds 1 verbs_device=siw0", "--ranks 2 --seeds 1 verbs_device=rxe0:1",
                    "--ranks 2 --seeds 1 verbs_device=rxe0 verbs_gid_index=1", "--ranks 2 --seeds 1"]),
    "memlock": (["--no-siw", "--memlock", "64", "--user", "nobody"], ["--ranks 2 --seeds 2", "--ranks 2 --big 3000000",
                                                                         "--ranks 4 --big 300000"]),
}


def guest(rig, options, script):
    return subprocess.run([rig, "--verbose", "--boot-limit", "240", "--limit", "900", *options, "--", "sh", "-ec", script],
                          stdin=subprocess.DEVNULL, check=False).returncode


def jobs(vm_job, lines):
    """A script that runs them one after the other and ends with the first that fails."""
    script = ""
    for line in lines:
        script += "echo '== %s'; timeout 240 %s %s %s\n" % (line, shlex.quote(vm_job), line, VERBS)
    return script


def main(rig, case, vm_job, java):
    prepared = subprocess.run([rig, "--prepare"], check=False).returncode
    if prepared:
        return prepared
    if case.startswith("java-"):
        device = case.split("-")[1]
        os.environ["IBVDEV_TRANSPORTS"] = "self,verbs"
        os.environ["IBVDEV_TEST_QUICK"] = "1"
        return guest(rig, ["--no-siw" if device == "rxe" else "--no-rxe", "--env", "IBVDEV_TEST_QUICK=1"],
                     " ".join(map(shlex.quote, java)))
    options, lines = CASES[case]
    return guest(rig, options, jobs(vm_job, lines))


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:]))
