#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tests of scripts/ibvdev-vm.

usage: rig.py RIG CASE

Exits 77 (skipped) only where ibvdev-vm --prepare reports that this machine cannot run a guest.
"""
import getpass
import os
import subprocess
import sys
import tempfile

SKIPPED = 77
RIG_SECONDS = 500  # ours, for a rig that does not keep its own limits

# Servers take a while to listen on a busy machine: clients try again.
TRY = """
pair() { # pair SERVER CLIENT: a program that serves once, and the one that it is to serve; a server that fails is followed by another
	for m in 1 2 3; do
		$1 >/dev/null & server=$!
		for n in $(seq 20); do
			timeout 30 $2 && { wait $server; return; }
			kill -0 $server 2>/dev/null || break
			sleep 1
		done
		kill $server 2>/dev/null; wait $server
	done
	return 1
}
sent() { cat /sys/class/infiniband/rxe0/ports/1/hw_counters/sent_pkts; }
"""


class Failed(Exception):
    pass


def run(rig, *argv):
    done = subprocess.run([rig, "--verbose", "--boot-limit", "240", *argv], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, errors="replace", timeout=RIG_SECONDS, check=False)
    sys.stdout.write(done.stdout)
    sys.stdout.write(done.stderr)
    return done


def expect(done, status, *lines):
    if done.returncode != status:
        raise Failed("exit status %d, not %d" % (done.returncode, status))
    for line in lines:
        if line not in done.stdout.splitlines():
            raise Failed("no line \"%s\" in the output" % line)


def guests_of(marker):
    """Processes with this text among their arguments, the rig's own temporary folder for example."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/cmdline" % pid, "rb") as f:
                if marker.encode() in f.read():
                    found.append(pid)
        except OSError:
            pass
    return found


def prepare(rig):
    """Nothing: main() has done it."""


def status(rig):
    done = run(rig, "--", "sh", "-c", "echo to stdout; echo to stderr >&2; echo again >/dev/stderr; exit 7")
    expect(done, 7, "to stdout")
    for line in ("to stderr", "again"):
        if line not in done.stderr.splitlines() or line in done.stdout.splitlines():
            raise Failed("\"%s\" did not come back through standard error" % line)
    # Every byte, in order, in spite of a background process that holds the pipe.
    done = run(rig, "--no-siw", "--", "sh", "-c", "sleep 1000 & seq 1 20000")
    expect(done, 0)
    if done.stdout.split() != [str(n) for n in range(1, 20001)]:
        raise Failed("20,000 lines did not come back as they were written")


def limit(rig):
    with tempfile.TemporaryDirectory(prefix="ibvdev-limit.") as results:
        done = run(rig, "--no-siw", "--limit", "3", "--results", results, "--", "sh", "-c", "echo before; sleep 1000")
        expect(done, 124, "before")
        if "--limit" not in done.stderr:
            raise Failed("nothing reports that it was the limit")
        if guests_of(results):
            raise Failed("the guest still runs")


def crash(rig):
    done = run(rig, "--no-siw", "--", "sh", "-c", "echo 1 >/proc/sys/kernel/sysrq; echo c >/proc/sysrq-trigger")
    expect(done, 125)
    for text in ("without an exit status", "sysrq triggered crash"):
        if text not in done.stderr:
            raise Failed("\"%s\" is not in what the rig reports of a kernel that crashed" % text)
    expect(run(rig, "--no-siw", "--", "/no/such/command"), 127)
    done = run(rig, "--no-siw", "--netem", "nonsense 1%", "--", "true")
    expect(done, 125)
    if "--netem" not in done.stderr or "nonsense" not in done.stderr.split("--netem", 1)[1].replace("nonsense 1%", "", 1):
        raise Failed("nothing reports, in tc's words, what is wrong with --netem")


def devices(rig):
    done = run(rig, "--", "bash", "-c", TRY + """
ibv_devices
rdma link
pair "ib_send_lat -d rxe0 -n 50" "ib_send_lat -d rxe0 -n 50 ibvdev0" && echo rxe passed
before=$(sent)
pair "rping -s -C 5 -a ibvdev0-siw" "rping -c -C 5 -a ibvdev0-siw" && echo siw passed
[ "$(sent)" = "$before" ] && echo siw without rxe
pair "rping -s -C 5 -a ibvdev0" "rping -c -C 5 -a ibvdev0" && echo CM on rxe passed
[ "$(sent)" -gt "$before" ] && echo rxe was used
pair "rping -s -C 5 -a fd00:77:1::1" "rping -c -C 5 -a fd00:77:1::1" && echo siw on IPv6 passed
pair "ib_send_lat -d siw0 -R -n 50" "ib_send_lat -d siw0 -R -n 50 10.77.1.1" && echo siw latency passed
""")
    expect(done, 0, "rxe passed", "siw passed", "siw without rxe", "CM on rxe passed", "rxe was used", "siw on IPv6 passed",
           "siw latency passed")
    for text in ("link rxe0/1 state ACTIVE", "link siw0/1 state ACTIVE"):
        if text not in done.stdout:
            raise Failed("\"%s\" is not there" % text)


def surroundings(rig):
    with tempfile.TemporaryDirectory(prefix="ibvdev-results.") as folder:
        os.chmod(folder, 0o755)
        user = "nobody" if os.geteuid() == 0 else getpass.getuser()
        results = os.path.join(folder, "new")
        with open(os.path.join(folder, "here"), "w", encoding="utf-8") as f:
            f.write("the host's file\n")
        # A user without privileges can open the devices, and nothing but the results reaches the host.
        done = run(rig, "--no-siw", "--user", user, "--memlock", "64", "--env", "MESSAGE_TEXT=it's \"me\" $HOME",
                   "--netem", "delay 1ms loss 1%", "--directory", "/usr/share", "--results", results, "--smp", "1", "--mem", "1024",
                   "--", "bash", "-c", """
id -un; pwd; ulimit -l; nproc; echo "$MESSAGE_TEXT"; cat """ + os.path.join(folder, "here") + """
getent hosts ibvdev0 | grep -q . && getent ahostsv4 "$(hostname)" | head -n 1 | cut -d ' ' -f 1
ibv_devinfo -d rxe0 >/dev/null && echo device open
touch /tmp/written && echo writable
tc qdisc show dev eth0 | grep -o netem
echo result >"$IBVDEV_VM_RESULTS/file" && mkdir "$IBVDEV_VM_RESULTS/sub" && seq 100000 >"$IBVDEV_VM_RESULTS/sub/big"
""")
        expect(done, 0, user, "/usr/share", "64", "1", "it's \"me\" $HOME", "the host's file", "10.77.0.1", "device open",
               "writable", "netem")
        with open(os.path.join(results, "file"), encoding="utf-8") as f:
            if f.read() != "result\n":
                raise Failed("the result is not what was written")
        with open(os.path.join(results, "sub", "big"), encoding="utf-8") as f:
            if f.read().split() != [str(n) for n in range(1, 100001)]:
                raise Failed("the big result is not what was written")
        if os.path.exists("/tmp/written"):
            raise Failed("the guest wrote to the host's /tmp")
    done = run(rig, "--no-siw", "--memlock", "64", "--", "sh", "-c", "id -un; ibv_rc_pingpong -d rxe0 -g 1 -s 1000000 ibvdev0")
    expect(done, 1, "root")
    if "register MR" not in done.stderr:
        raise Failed("root registered more memory than --memlock allows")


def nodes(rig):
    done = run(rig, "--nodes", "2", "--", "bash", "-c", TRY + """
on-node 1 sh -c 'hostname; pwd; echo "node $IBVDEV_TEST_NODE" >&2; exit 9'; echo "status $?"
pair "on-node 1 ib_send_lat -d rxe0 -n 10" "ib_send_lat -d rxe0 -n 10 ibvdev1" && echo rxe passed
pair "on-node 1 rping -s -C 3 -a ibvdev1" "rping -c -C 3 -a ibvdev1" && echo CM on rxe passed
before=$(sent)
pair "on-node 1 rping -s -C 3 -a ibvdev1-siw" "rping -c -C 3 -a ibvdev1-siw" && echo siw passed
[ "$(sent)" = "$before" ] && echo siw without rxe
on-node 1 sleep 1000 & lost=$!
on-node 1 true && kill-node 1
wait $lost; echo "lost $?"
exit 3
""")
    expect(done, 3, "ibvdev1", os.getcwd(), "status 9", "rxe passed", "CM on rxe passed", "siw passed", "siw without rxe", "lost 125")


def both(rig):
    done = run(rig, "--no-siw", "--nodes", "2", "--both", "--", "sh", "-c",
               "echo \"$(hostname) of $IBVDEV_TEST_NODES\"; exit $((IBVDEV_TEST_NODE * 5))")
    expect(done, 5, "[node 0] ibvdev0 of 2", "[node 1] ibvdev1 of 2")
    if "node 0: exit status 0, node 1: exit status 5" not in done.stderr:
        raise Failed("the two exit statuses are not there")
    done = run(rig, "--no-siw", "--nodes", "2", "--", "sh", "-c", "on-node 1 sh -c 'echo b >/proc/sysrq-trigger'; sleep 1000")
    expect(done, 125)
    if "node 1 ended without an exit status" not in done.stderr:
        raise Failed("nothing reports that node 1 was lost")


CASES = {f.__name__: f for f in (prepare, status, limit, crash, devices, surroundings, nodes, both)}


def main(argv):
    if len(argv) != 3 or argv[2] not in CASES:
        sys.exit(__doc__)
    rig, case = argv[1:]
    prepared = subprocess.run([rig, "--prepare"], stdin=subprocess.DEVNULL, check=False).returncode
    if prepared == SKIPPED:
        print("skipped: this machine cannot run a guest, see above")
        return SKIPPED
    try:
        if prepared:
            raise Failed("ibvdev-vm --prepare ended with status %d" % prepared)
        CASES[case](rig)
    except (Failed, subprocess.TimeoutExpired) as e:
        print("FAILED: %s: %s" % (case, e))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
