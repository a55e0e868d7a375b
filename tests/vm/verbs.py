#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tests of the transport verbs on real kernel RDMA, in guests of scripts/ibvdev-vm.

usage: verbs.py RIG CASE BUILD
       verbs.py --list            (lines of suite, case, "java" if it needs the Java device; for Meson)

The cases are data: verbs_cases.py.  Exits 77 (skipped) only where ibvdev-vm --prepare reports that this machine cannot
run a guest.
"""
import os
import shlex
import subprocess
import sys

sys.dont_write_bytecode = True
import verbs_cases  # noqa: E402

# What the scripts of the cases use.  $BUILD, $SOURCE and $MPJ are put in front.
PRELUDE = """
VM_JOB=$BUILD/tests/vm/vm-job
MPI_TESTS=$BUILD/tests/java/mpi/mpi-tests.jar:$BUILD/tests/java/java-harness.jar
NPB=$BUILD/bench/npb/npb.jar
# What is freed, or not written yet, reads as this; the guest does not see the variable of the same name that Meson sets.
export MALLOC_PERTURB_=165
export IBVDEV_BUILD=$BUILD IBVDEV_TEST_QUICK=1 IBVDEV_TEST_PLAIN=1
# The optimising compiler would take most of the time of an emulated processor.
export JAVA_TOOL_OPTIONS="-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xmx300m -XX:-UsePerfData"
step() { # step SECONDS COMMAND...: prints what it runs and how long it took
	limit=$1; shift
	began=$(date +%s%N)
	timeout $limit "$@" || { status=$?; echo "== status $status: $*" >&2; return $status; }
	echo "== $((($(date +%s%N) - began) / 1000000)) ms: $*"
}
mpi() { # mpi RANKS CLASSPATH MAIN ARGUMENT...
	ranks=$1 classpath=$2; shift 2
	step 1000 $SOURCE/scripts/ibvrun -np $ranks -mpi mpjexpress -cp $classpath "$@"
}
xxdev() { # xxdev RANKS MAIN ARGUMENT...: a program of tests/java/xxdev, whose ranks print "finished"
	ranks=$1; shift
	rm -rf /tmp/xxdev.out
	step 1000 $SOURCE/scripts/ibvrun -np $ranks -dev xxdev -l --output /tmp/xxdev.out -cp $BUILD/tests/java/xxdev/xxdev-tests.jar \\
		$XXDEV_OPTIONS "$@"
	[ "$(cat /tmp/xxdev.out/rank.*.out | grep -c '^finished')" = $ranks ] || { echo "not every rank finished"; exit 1; }
	# -Xcheck:jni only prints
	! cat /tmp/xxdev.out/* | grep -A 5 -E '(WARNING|FATAL ERROR) in native|JNI local refs' || exit 1
}
mpi_nodes() { # mpi_nodes CLASSPATH MAIN ARGUMENT...: four ranks, this node's half of them
	classpath=$1 main=$2; shift 2
	export MPJ_HOME=/usr/share/mpj
	printf '4\\n131072\\n' >/tmp/job.conf
	for r in 0 1 2 3; do echo "ibvdev$((r / 2))@$((7200 + 2 * r))@$((7201 + 2 * r))@$r@0" >>/tmp/job.conf; done
	ranks=
	for r in $((IBVDEV_TEST_NODE * 2)) $((IBVDEV_TEST_NODE * 2 + 1)); do
		step 1000 java -Dibvdev.library=$BUILD/native/libibvdev.so \\
			-cp $BUILD/java/ibvdev.jar:$classpath:$MPJ:/usr/share/java/log4j-1.2.jar $main $r /tmp/job.conf ibvdev "$@" &
		ranks="$ranks $!"
	done
	for pid in $ranks; do wait $pid || exit; done
}
junit() { # junit CLASS
	tests=$BUILD/tests/java
	step 1000 java -Dibvdev.test.jar=$BUILD/java/ibvdev.jar -Dibvdev.test.native=$BUILD/native/libibvdev.so \\
		-Dibvdev.test.mpj_jar=$MPJ -Dibvdev.test.ibvrun=$SOURCE/scripts/ibvrun -Dibvdev.test.build=$BUILD \\
		-cp $tests/device/java-device-tests.jar:$MPI_TESTS:/usr/share/java/junit-platform-console-standalone.jar \\
		org.junit.platform.console.ConsoleLauncher --disable-banner --details=tree --disable-ansi-colors \\
		--fail-if-no-tests --select-class $1
}
"""


def run(rig, name, build):
    case = verbs_cases.CASES[name]
    source = os.path.dirname(os.path.dirname(os.path.realpath(rig)))
    mpj = os.environ.get("IBVDEV_TEST_MPJ", "/usr/share/java/mpj.jar")
    places = "".join("%s=%s\n" % (k, shlex.quote(v)) for k, v in (("BUILD", build), ("SOURCE", source), ("MPJ", mpj)))
    status = subprocess.run([rig, "--verbose", "--boot-limit", "240", "--limit", "1100", *case.options, "--", "sh", "-ec",
                             places + PRELUDE + case.script], stdin=subprocess.DEVNULL, check=False).returncode
    if status == case.status:
        return 0
    print("the rig ended with %d, not %d" % (status, case.status))
    return status or 1


def main(argv):
    if argv[1:] == ["--list"]:
        for name, case in verbs_cases.CASES.items():
            print(case.suite, name, "java" if case.java else "c")
        return 0
    if len(argv) != 4 or argv[2] not in verbs_cases.CASES:
        sys.exit(__doc__)
    prepared = subprocess.run([argv[1], "--prepare"], stdin=subprocess.DEVNULL, check=False).returncode
    return prepared or run(argv[1], argv[2], os.path.abspath(argv[3]))


if __name__ == "__main__":
    sys.exit(main(sys.argv))
