# SPDX-License-Identifier: MIT
"""ibvrun on several hosts: agents, their tree, PMI, streams, and that nothing is left behind, whatever dies.

All hosts are this machine; fake_ssh.py stands for ssh and for the network.
"""
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time

import support
from support import HERE, LauncherTest, main, read, wait_for


def setUpModule():
    global CLASSES
    CLASSES = support.compile_java("Ring.java")


FAKE_SSH = os.path.join(HERE, "fake_ssh.py")
PMI_CLIENT = os.path.join(HERE, "pmi_client.py")
# Writes its pid and that of a child which has left the session, then sleeps; $2 is the folder.
SLEEPER = ('setsid sleep 1000 >/dev/null 2>&1 & echo $! > "$2/child.$1"; echo $$ > "$2/tmp.$1"; '
           'mv "$2/tmp.$1" "$2/pid.$1"; exec sleep 1000')


class Cluster(LauncherTest):
    def setUp(self):
        super().setUp()
        os.mkdir(self.path("hosts"))

    def environ(self, **more):
        return super().environ(**dict({"FAKE_SSH_FOLDER": self.path("hosts"),
                                       "IBVRUN_AGENT": shlex.join([sys.executable, FAKE_SSH])}, **more))

    def on(self, hosts, script, *words, more=()):
        """Words of a job of shells; {rank} is $1, self.folder is $2."""
        return ("--hosts", hosts) + words + ("--exec", "/bin/sh", "-c", script, "sh", "{rank}", self.folder) + tuple(more)

    def pids(self, host):
        """Of the stand-in for ssh, the keeper and the agent."""
        ssh, keeper = (int(p) for p in read(self.path("hosts", "host." + host)).split())
        children = read("/proc/%d/task/%d/children" % (keeper, keeper)).split()
        return ssh, keeper, int(children[0])

    def sleeping(self, hosts, np, *words, script=SLEEPER, **options):
        job = self.start(*self.on(hosts, script, *words), **options)
        wait_for(lambda: job.poll() is not None or all(read(self.path("pid.%d" % r)) for r in range(np)), "all ranks run")
        if job.poll() is not None:
            self.fail("the job ended: " + job.stderr.read())
        return job, [int(read(self.path("%s.%d" % (what, r)))) for r in range(np) for what in ("pid", "child")]

    def agents(self):
        """Everything that runs on the hosts and is no rank."""
        found = []
        for name in os.listdir(self.path("hosts")):
            if not name.endswith("~"):
                found += [int(p) for p in read(self.path("hosts", name)).split()]
        return found

    def assert_gone(self, pids, limit_s=support.LIMIT_S):
        self.wait_until_gone(*pids, limit_s=limit_s)
        self.assert_nothing_left(limit_s)

    def end(self, job):
        job.terminate()
        return self.finish(job)


class Jobs(Cluster):
    def test_ranks_places_and_output(self):
        script = 'echo "$1 $PMI_RANK $PMI_SIZE $MPI_LOCALRANKID $MPI_LOCALNRANKS $FAKE_HOST $PWD"; echo err >&2'
        out, err = self.succeed(*self.on("a:2,b:1", script, "-l"), cwd=self.folder)
        folder = os.path.realpath(self.folder)
        self.assertEqual(sorted(out.splitlines()), ["[0] 0 0 3 0 2 a " + folder, "[1] 1 1 3 1 2 a " + folder,
                                                    "[2] 2 2 3 0 1 b " + folder])
        self.assertEqual(sorted(err.splitlines()), ["[%d] err" % r for r in range(3)])
        self.assert_gone(self.agents())
        out, _ = self.succeed(*self.on("a:2,b:2", "echo $1 $FAKE_HOST", "--map-by", "node", "-np", 3))
        self.assertEqual(sorted(out.splitlines()), ["0 a", "1 b", "2 a"])
        out, _ = self.succeed(*self.on("a,b", "echo x", "--tag", "time,host,rank"))
        self.assertRegex(out, r"(?m)^\[\d\d:\d\d:\d\d\.\d{3} b 1\] x$")

    def test_this_host_needs_no_command(self):
        out, _ = self.succeed(*self.on("localhost:2", "echo $1", "-l"), env={"IBVRUN_AGENT": ""})
        self.assertEqual(sorted(out.splitlines()), ["[0] 0", "[1] 1"])

    def test_host_file(self):
        with open(self.path("my hosts"), "w", encoding="ascii") as f:
            f.write("a slots=2\nb\n")
        words = self.on("x", "echo $1 $FAKE_HOST")[2:]
        out, _ = self.succeed("--hostfile", self.path("my hosts"), *words)
        self.assertEqual(sorted(out.splitlines()), ["0 a", "1 a", "2 b"])
        out, _ = self.succeed(*words, env={"PBS_NODEFILE": self.path("my hosts")})  # the allocation is found
        self.assertEqual(sorted(out.splitlines()), ["0 a", "1 a", "2 b"])

    def test_pmi(self):
        for np, hosts, more in ((1, "a", ()), (5, "a:2,b:2,c:1", ()), (6, "a:3,b:3", ("--map-by", "node")),
                                (6, "h[1-6]", ("--fan-out", 1))):
            with self.subTest(hosts=hosts, more=more):
                out, err = self.succeed("--hosts", hosts, *more, "--timeout", 50, "--exec", sys.executable, PMI_CLIENT, 3)
                self.assertEqual(sorted(out.splitlines()), ["rank %d of %d met" % (r, np) for r in range(np)])
                self.assertEqual(err, "")

    def test_a_tree_of_64_nodes(self):
        out, _ = self.succeed("--hosts", "h[01-64]", "--fan-out", 8, "--timeout", 100, "--heartbeat", 0, "--exec",
                              sys.executable, "-S", PMI_CLIENT)
        self.assertEqual(sorted(out.splitlines()), sorted("rank %d of 64 met" % r for r in range(64)))
        self.assert_gone(self.agents())

    def test_pmi_abort(self):
        status, _, err = self.run_job("--hosts", "a,b", "--grace", 0.1, "--exec", sys.executable, PMI_CLIENT, "abort", 7)
        self.assertEqual(status, 7, err)
        self.assertRegex(err, r"ibvrun: rank 1 \(pid \d+ on node b\) aborted the job: no_reason")

    def test_environment(self):
        env = {"IBVDEV_SPIN_US": "7", "SECRET_WORD": "mum", "UNSENT": "1", "SLURM_JOB_NAME": "x", "PMIX_RANK": "3",
               "PMI_ID": "4", "OMPI_COMM_WORLD_RANK": "5", "LC_ALL": "C.UTF-8"}
        script = 'env | sort; tr "\\0" " " < /proc/$PPID/cmdline'
        out, _ = self.succeed(*self.on("a", script, "-x", "SECRET_WORD", "-x", "NEW=a b=c"), env=env)
        for line in ("IBVDEV_SPIN_US=7", "SECRET_WORD=mum", "NEW=a b=c", "PMI_RANK=0"):
            self.assertIn(line + "\n", out)
        # fake_ssh hands our environment on, so this shows what an agent removes
        for name in ("SLURM_JOB_NAME", "PMIX_RANK", "PMI_ID", "OMPI_COMM_WORLD_RANK"):
            self.assertNotIn(name, out)
        self.assertRegex(out, r"(?m)^IBVDEV_JOB_ID=[0-9a-f]{32}$")
        self.assertNotIn("IBVDEV_JOB_SECRET", out)
        self.assertEqual(out.count("mum"), 1)  # in no argument of the agent

    def test_binding_is_reported(self):
        _, err = self.succeed(*self.on("a,b", "exit 0", "--bind", "core", "--report-bindings"))
        for rank, host in enumerate("ab"):
            self.assertRegex(err, r"(?m)^ibvrun: rank %d on node %s: processors [0-9,-]+$" % (rank, host))

    def test_verbose(self):
        _, err = self.succeed(*self.on("a,b", "exit 0", "-v"))
        self.assertRegex(err, r"(?m)^ibvrun: node b: agent pid \d+ on \S+, \d+ processors, python 3")
        self.assertRegex(err, r"(?m)^ibvrun: rank 1 \(pid \d+ on node b\) exited with status 0$")

    def test_dry_run(self):
        out, _ = self.succeed("-n", *self.on("a:2,b", "exit 0"))
        self.assertIn("# rank 2, on b:", out)
        self.assertEqual([x.split("@")[0] for x in out.splitlines() if "@" in x], ["a", "a", "b"])
        self.assertEqual(os.listdir(self.path("hosts")), [])


class Streams(Cluster):
    FLOOD = "import sys\nfor i in range(40000): print('%s:%d:%s' % (sys.argv[1], i, 'y' * (i % 90)))"

    def expected(self, rank):
        return ["%d:%d:%s" % (rank, i, "y" * (i % 90)) for i in range(40000)]

    def test_a_flood_with_a_slow_reader(self):
        job = self.start("--hosts", "a:2,b:1", "--heartbeat", 5, "-l", "--exec", sys.executable, "-c", self.FLOOD, "{rank}")
        time.sleep(7)  # longer than the heartbeat allows: a reader that sleeps is no reason to lose a node
        status, out, err = self.finish(job)
        self.assertEqual((status, err), (0, ""))
        for rank in range(3):
            mark = "[%d] " % rank
            self.assertEqual([x[4:] for x in out.splitlines() if x.startswith(mark)], self.expected(rank))

    def test_output_folder(self):
        out, _ = self.succeed("--hosts", "a,b", "--output", self.path("o"), "--exec", sys.executable, "-c", self.FLOOD,
                              "{rank}")
        self.assertEqual(out, "")
        for rank in range(2):
            self.assertEqual(read(self.path("o", "rank.%d.out" % rank)).splitlines(), self.expected(rank))

    def test_an_unfinished_line(self):
        out, _ = self.succeed(*self.on("a", "printf 'x\\ny'"))
        self.assertEqual(out, "x\ny")

    def test_stdin_goes_to_rank_0(self):
        data = "".join("line %d\n" % i for i in range(60000))
        script = 'if [ $1 = 0 ]; then sleep 1; fi; cat | wc'
        out, _ = self.succeed(*self.on("a:2,b", script, "-l"), data=data)
        counts = {x.split("]")[0]: x.split("]")[1].split() for x in out.splitlines()}
        self.assertEqual(counts, {"[0": ["60000", "120000", str(len(data))], "[1": ["0"] * 3, "[2": ["0"] * 3})

    def test_a_question_without_a_newline(self):
        job = self.start(*self.on("a", "printf 'name? '; read x; echo \"hello $x\""), stdin=subprocess.PIPE)
        self.assertEqual(job.stdout.read(6), "name? ")
        self.assertEqual(self.finish(job, "you\n")[:2], (0, "hello you\n"))

    def test_stdin_that_nobody_reads(self):
        out, _ = self.succeed(*self.on("a", "exec <&-; sleep 0.5; echo done"), data="x" * 300000)
        self.assertEqual(out, "done\n")
        job = self.start(*self.on("a", "echo done"), stdin=subprocess.PIPE)  # and one that never ends
        self.assertEqual(job.wait(60), 0)

    def test_stdin_from_a_file_and_none(self):
        with open(self.path("in"), "w", encoding="ascii") as f:
            f.write("hello")
        with open(self.path("in"), encoding="ascii") as f:
            out, _ = self.succeed(*self.on("a", "cat"), stdin=f)
        self.assertEqual(out, "hello")
        words = [sys.executable, support.IBVRUN] + [str(w) for w in self.on("a", "cat; echo done")]
        done = subprocess.run(["/bin/sh", "-c", '"$0" "$@" <&-'] + words, env=self.environ(), capture_output=True, text=True,
                              timeout=60, check=False)
        self.assertEqual((done.returncode, done.stdout), (0, "done\n"), done.stderr)

    def test_a_reader_that_goes_away_ends_the_job(self):
        job = self.start(*self.on("a:2,b:2", "exec yes", "-l"))
        job.stdout.readline()
        job.stdout.close()
        self.assertEqual(job.wait(60), 141)
        self.assertIn("nobody reads the output", job.stderr.read())
        self.assert_gone(self.agents())

    def test_noise_before_the_agent(self):
        out, _ = self.succeed(*self.on("noisy1,b", "echo $1"))
        self.assertEqual(sorted(out.splitlines()), ["0", "1"])


class Ends(Cluster):
    def test_statuses(self):
        status, _, err = self.run_job(*self.on("a,b", "[ $1 = 1 ] && exit 3; exit 0"))
        self.assertEqual(status, 3)
        self.assertRegex(err, r"ibvrun: rank 1 \(pid \d+ on node b\) exited with status 3")
        status, _, err = self.run_job(*self.on("a,b", "[ $1 = 1 ] && kill -SEGV $$; sleep 1000", "--grace", 0.1))
        self.assertEqual(status, 139)
        self.assertRegex(err, r"rank 1 \(pid \d+ on node b\) was killed by signal 11 \(SIGSEGV\); ending the job")
        self.assert_gone(self.agents())

    def test_what_cannot_be_started(self):
        for words, status, text in (
                (("--hosts", "a,b", "--exec", "/no/such"), 126, r"node [ab]: rank [01]: starting /no/such: No such file"),
                (("--hosts", "a,b", "-wdir", "/no/such", "--exec", "true"), 126,
                 r"node [ab]: rank [01]: starting the working folder /no/such: No such file or directory; name one by -wdir"),
                (("--hosts", "a,down1", "--exec", "true"), 126,
                 r"node down1: its agent did not answer \(\S+ exited with status 255\); try: .*fake_ssh.py down1 python3 -V"),
                (("--hosts", "bare1,b", "--exec", "true"), 126,
                 r"node bare1: .*exited with status 127\) but printed: python3: command not found"),
                (("--hosts", "a,b", "--agent", "/no/ssh", "--exec", "true"), 126,
                 r"--agent /no/ssh: starting it for a: No such file or directory"),
                (("--hosts", "a,b,c,down2", "--fan-out", "1", "--exec", "true"), 126, r"node down2: its agent did not"),
                (("--hosts", "a", "--python", "no-python", "--exec", "true"), 126, r"node a: its agent did not answer")):
            with self.subTest(words):
                got, out, err = self.run_job(*words)
                self.assertEqual((got, out), (status, ""), err)
                self.assertRegex(err, text)
                self.assert_gone(self.agents())

    def test_a_node_that_is_lost_while_others_start(self):
        slow = "sh -c '[ $0 = slow ] && sleep 1000; exec \"$@\"' {host} %s" % shlex.join([sys.executable, FAKE_SSH])
        job = self.start(*self.on("b,slow", "exit 0", "--agent", slow + " {host}"))
        wait_for(lambda: len(read(self.path("hosts", "host.b")).split()) == 2, "b has its agent")
        time.sleep(1)
        os.kill(self.pids("b")[0], signal.SIGKILL)
        status, _, err = self.finish(job)
        self.assertEqual(status, 126, err)
        self.assertRegex(err, r"ibvrun: node b: its (connection was closed|agent did not answer) .*; try: ")
        self.assert_gone(self.agents())

    def test_time_limit(self):
        status, _, err = self.run_job(*self.on("a,b", "[ $1 = 0 ] && exit 0; exec sleep 1000", "--timeout", 2))
        self.assertEqual(status, 124)
        self.assertIn("the time limit of 2 s is over and rank 1 is still running", err)
        self.assert_gone(self.agents())

    def test_signals(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            with self.subTest(number.name):
                for r in range(3):
                    if os.path.exists(self.path("pid.%d" % r)):
                        os.unlink(self.path("pid.%d" % r))
                job, pids = self.sleeping("a:2,b", 3)
                job.send_signal(number)
                status, _, err = self.finish(job)
                self.assertEqual(status, 128 + number)
                self.assertIn("%s received" % number.name, err)
                self.assert_gone(pids + self.agents())

    def test_a_signal_while_agents_start(self):
        agent = shlex.join(["sh", "-c", ': > "$0"; sleep 1000', self.path("started")]) + " {host} {command}"
        job = self.start(*self.on("a,b", "exit 0", "--agent", agent))
        wait_for(lambda: os.path.exists(self.path("started")), "an agent is being started")
        job.terminate()
        self.assertEqual(self.finish(job)[0], 143)

    def test_other_signals_are_passed_on(self):
        script = ('trap "echo got USR1; exit 0" USR1; : > "$2/child.$1"; echo $$ > "$2/pid.$1"; '
                  'while :; do sleep 0.05; done')
        job = self.start(*self.on("a,b", script, "-l"))
        wait_for(lambda: all(read(self.path("pid.%d" % r)) for r in range(2)), "all run")
        job.send_signal(signal.SIGUSR1)
        status, out, _ = self.finish(job)
        self.assertEqual((status, sorted(out.splitlines())), (0, ["[0] got USR1", "[1] got USR1"]))

    def test_stop_and_continue(self):
        job, pids = self.sleeping("a,b", 2, "--heartbeat", 5)
        ranks = pids[::2]

        def states():
            return {read("/proc/%d/stat" % p).rpartition(")")[2].split()[0] for p in ranks}
        job.send_signal(signal.SIGTSTP)
        wait_for(lambda: states() == {"T"}, "the ranks are stopped")
        time.sleep(7)  # longer than a silent host may be
        job.send_signal(signal.SIGCONT)
        wait_for(lambda: states() == {"S"}, "the ranks go on")
        time.sleep(1)
        self.assertIsNone(job.poll())
        self.assertEqual(self.end(job)[0], 143)
        self.assert_gone(pids + self.agents())

    def test_children_end_with_the_job(self):
        out, _ = self.succeed(*self.on("a", "setsid sleep 1000 >/dev/null 2>&1 & echo $!; exit 0"))
        self.wait_until_gone(int(out))


class Staged(Cluster):
    def test_files_are_copied_and_removed(self):
        os.mkdir(self.path("my programs"))
        program = self.path("my programs", "prog ram")
        with open(program, "w", encoding="ascii") as f:
            f.write('#!/bin/sh\nmv "$2" "$2.moved" 2>/dev/null; sleep 0.2; echo "$0 $1"; ls -l "$0"\n')
        os.chmod(program, 0o751)
        out, _ = self.succeed("--hosts", "a,b,c", "--fan-out", 1, "--stage", "-wdir", "/no/such", "--exec", program, "{rank}",
                              program)
        self.assertEqual(sorted(re.findall(r"(?m)/0/prog ram (\d)$", out)), ["0", "1", "2"])
        folders = set(re.findall(r"(?m)^(/.*)/0/prog ram \d$", out))
        self.assertEqual(len(folders), 3)
        self.assertEqual(out.count("-rwxr-x--x"), 3)
        self.assertFalse(any(os.path.exists(f) for f in folders))
        self.assert_gone(self.agents())

    def test_much_is_copied(self):
        """More than the credit for pieces that may be under way."""
        with open(self.path("data.jar"), "wb") as f:
            f.write(os.urandom(1 << 20) * 12)
        with open(self.path("prog"), "w", encoding="ascii") as f:
            f.write("#!/bin/sh\nexit 0\n")
        os.chmod(self.path("prog"), 0o755)
        os.mkdir(self.path("bin"))
        java = self.path("bin", "java")
        with open(java, "w", encoding="ascii") as f:
            f.write('#!/bin/sh\nfor w in "$@"; do case $w in *data.jar*) echo "$w" | tr : "\\n" | grep data.jar | '
                    'xargs -d "\\n" cksum;; esac; done\n')
        os.chmod(java, 0o755)
        with open(self.path("release"), "w", encoding="ascii") as f:
            f.write('JAVA_VERSION="17"\n')
        out, _ = self.succeed("--hosts", "a,b", "--stage", "--java", java, "-cp", self.path("data.jar"), "X")
        sums = {line.split()[0] for line in out.splitlines()}
        expected = subprocess.run(["cksum", self.path("data.jar")], capture_output=True, text=True, check=True).stdout
        self.assertEqual((len(out.splitlines()), sums), (2, {expected.split()[0]}))
        self.assertNotIn(self.path("data.jar"), out)
        self.assert_gone(self.agents())

    def test_killed_launcher_leaves_no_file(self):
        program = self.path("prog")
        with open(program, "w", encoding="ascii") as f:
            f.write("#!/bin/sh\n" + SLEEPER.replace('"$2/pid.$1"', '"$2/pid.$1"') + "\n")
        os.chmod(program, 0o755)
        job = self.start("--hosts", "a,b", "--stage", "--exec", program, "{rank}", self.folder)
        wait_for(lambda: all(read(self.path("pid.%d" % r)) for r in range(2)), "all ranks run")
        self.assertTrue(os.listdir(self.tmpdir))
        pids = [int(read(self.path("%s.%d" % (what, r)))) for r in range(2) for what in ("pid", "child")]
        job.kill()
        self.assert_gone(pids + self.agents())


class Programs(Cluster):
    """Java and C over PMI: the conf "auto"."""

    def ring(self, *words, rounds=1):
        out, err = self.succeed("--hosts", "a:2,b:2", "--timeout", 80, *words, "-cp", CLASSES, "Ring", "rounds", rounds)
        self.assertEqual(err, "")
        self.assertEqual(sorted(out.splitlines()), sorted(["rank %d of 4 sum 10" % r for r in range(4)] * rounds))
        self.assert_gone(self.agents())

    def test_mpj(self):
        self.ring(rounds=3)
        self.ring("--stage", "--bind", "core")

    def test_a_dead_rank_is_named_by_the_others(self):
        job = self.start("--hosts", "a:2,b:2", "-l", "--grace", 30, "-cp", CLASSES, "Ring", "hang", self.path("pid."))
        wait_for(lambda: all(read(self.path("pid.%d" % r)).endswith("\n") for r in range(4)), "all ranks wait")
        os.kill(int(read(self.path("pid.2"))), signal.SIGKILL)
        status, _, err = self.finish(job)
        self.assertEqual(status, 137, err)
        for survivor in (0, 1, 3):
            text = "\n".join(x for x in err.splitlines() if x.startswith("[%d] " % survivor))
            self.assertRegex(text, r"Exception.*rank 2\b", err)

    def test_threads_are_dumped(self):
        status, out, err = self.run_job("--hosts", "a,b", "--timeout", 6, "--dump", "-l", "-cp", CLASSES, "Ring", "hang",
                                        self.path("pid."))
        self.assertEqual(status, 124, err)
        for r in range(2):
            self.assertIn("[%d] Full thread dump" % r, out)

    def test_an_mpi_program_in_c(self):
        mpicc = shutil.which("mpicc.mpich")
        if not mpicc or subprocess.run([mpicc, "-E", "-x", "c", "-"], input="#include <mpi.h>\n", text=True, check=False,
                                       capture_output=True).returncode:
            self.skipTest("no mpicc.mpich with mpi.h (Debian package libmpich-dev)")
        with open(self.path("hello.c"), "w", encoding="ascii") as f:
            f.write("""
#include <mpi.h>
#include <stdio.h>
int main(void)
{
	int rank, size, sum;
	MPI_Init(0, 0);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	printf("rank %d of %d sum %d\\n", rank, size, sum);
	MPI_Finalize();
}
""")
        subprocess.run([mpicc, self.path("hello.c"), "-o", self.path("hello")], check=True)
        for more in ((), ("--map-by", "node")):
            out, _ = self.succeed("--hosts", "localhost:2,127.0.0.1:2", "--timeout", 60, *more, "--exec", self.path("hello"),
                                  env={"IBVRUN_AGENT": ""})
            self.assertEqual(sorted(out.splitlines()), ["rank %d of 4 sum 6" % r for r in range(4)])


class Deaths(Cluster):
    """Every process of a job is killed in turn, and the network cut."""

    def test_killed_launcher(self):
        job, pids = self.sleeping("a:2,b,c", 4, "--fan-out", 1)
        job.kill()
        self.assert_gone(pids + self.agents())

    def lose(self, which, host="b", hosts="a,b", np=2, *words):
        job, pids = self.sleeping(hosts, np, "--grace", 0.2, *words)
        pids += self.agents()
        os.kill(self.pids(host)[which], signal.SIGKILL)
        status, _, err = self.finish(job)
        self.assertEqual(status, 255, err)
        self.assertRegex(err, r"ibvrun: node b.* is lost, with ranks? 1")
        self.assert_gone(pids)
        return err

    def test_killed_agent(self):
        self.lose(2)

    def test_killed_keeper(self):
        self.lose(1)

    def test_killed_connection(self):
        self.assertIn("was killed by signal 9", self.lose(0))

    def test_killed_agent_with_others_below(self):
        err = self.lose(2, "b", "a,b,c,d", 4, "--fan-out", 1)
        self.assertIn("node b and with it c, d is lost, with ranks 1, 2, 3", err)

    def test_cut_network(self):
        """Both sides notice, while neither connection ends."""
        job, pids = self.sleeping("a,b", 2, "--heartbeat", 5, "--grace", 0.2)
        ssh = self.pids("b")[0]
        os.kill(ssh, signal.SIGSTOP)
        try:
            self.wait_until_gone(*pids[2:])
            status, _, err = self.finish(job)
            self.assertEqual(status, 255, err)
            self.assertRegex(err, r"node b is lost, with rank 1: it has been silent for 5 s")
            agents = [p for p in self.agents() if p != ssh]
            self.assert_gone(pids + agents)
        finally:
            try:
                os.kill(ssh, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def test_killed_rank(self):
        job, pids = self.sleeping("a,b", 2, "--grace", 0.2)
        os.kill(pids[2], signal.SIGKILL)
        status, _, err = self.finish(job)
        self.assertEqual(status, 137)
        self.assertRegex(err, r"rank 1 \(pid %d on node b\) was killed by signal 9" % pids[2])
        self.assert_gone(pids + self.agents())

    def test_everything_of_a_node_at_once(self):
        job, pids = self.sleeping("a,b", 2, "--grace", 0.2)
        _, keeper, agent = self.pids("b")
        os.kill(agent, signal.SIGSTOP)  # so that it cannot act
        os.kill(keeper, signal.SIGKILL)
        os.kill(agent, signal.SIGKILL)
        self.assertEqual(self.finish(job)[0], 255)
        self.wait_until_gone(pids[2])  # by the kernel; what has left its session stays
        os.kill(pids[3], signal.SIGKILL)
        self.assert_gone(pids + self.agents())


if __name__ == "__main__":
    main()
