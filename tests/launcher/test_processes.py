# SPDX-License-Identifier: MIT
"""How a job ends: exit statuses, failures, signals, time limits, and what is left (nothing)."""
import os
import pty
import re
import signal
import socket
import subprocess
import sys
import time

from support import IBVRUN, LIMIT_S, LauncherTest, alive, left_with, main, read, wait_for

from ibvrun.conf import Ports

# Writes its pid where the test finds it, then sleeps; $3 is the folder.
SLEEPER = 'echo $$ > "$3/pid.$1"; exec sleep 1000'


# Prints its rank, its process group and session, and how many of both are its own.
SESSION = 'set -- $1 $(cut -d" " -f5,6 /proc/$$/stat); echo $1 group $(($2 == $$)) session $3 own $(($3 == $$))'


class Sessions(LauncherTest):
    def test_ranks_lead_groups_of_one_session(self):
        status, out, err = self.sh(3, SESSION)
        self.assertEqual(status, 0, err)
        session = os.getsid(0)
        self.assertEqual(sorted(out.splitlines()), ["%d group 1 session %d own 0" % (r, session) for r in range(3)])

    def test_a_rank_that_reads_a_terminal_leads_a_session(self):
        terminal, ours = pty.openpty()
        self.addCleanup(os.close, terminal)
        self.addCleanup(os.close, ours)
        os.write(terminal, b"typed\n")
        status, out, err = self.sh(2, SESSION + "; [ $1 = 1 ] || head -1", stdin=ours)
        self.assertEqual(status, 0, err)
        self.assertRegex(out, r"(?m)^0 group 1 session \d+ own 1$")
        self.assertRegex(out, r"(?m)^1 group 1 session %d own 0$" % os.getsid(0))
        self.assertIn("typed", out)


class Statuses(LauncherTest):
    def test_all_succeed(self):
        self.assertEqual(self.sh(4, "exit 0"), (0, "", ""))
        self.assert_nothing_left()

    def test_the_failing_rank_is_named(self):
        status, _, err = self.sh(3, '[ $1 = 1 ] && exit 3; exit 0')
        self.assertEqual(status, 3)
        self.assertRegex(err, r"^ibvrun: rank 1 \(pid \d+\) exited with status 3")

    def test_a_killed_rank_is_named(self):
        status, _, err = self.sh(2, '[ $1 = 0 ] && kill -SEGV $$; exit 0')
        self.assertEqual(status, 128 + signal.SIGSEGV)
        self.assertRegex(err, r"rank 0 \(pid \d+\) was killed by signal 11 \(SIGSEGV\)")

    def test_the_first_failure_counts(self):
        script = 'if [ $1 = 2 ]; then exit 5; fi; trap "exit 9" TERM; sleep 1000 & wait'
        status, _, err = self.sh(3, script, "--grace", "0")
        self.assertEqual(status, 5, err)
        self.assertRegex(err, r"rank 2 \(pid \d+\) exited with status 5; ending the job")

    def test_others_may_end_by_themselves_in_the_grace_time(self):
        script = 'if [ $1 = 1 ]; then exit 4; fi; trap "echo terminated" TERM; sleep 0.5; echo by myself; exit 1'
        status, out, err = self.sh(2, script, "--grace", "60", "-v")
        self.assertEqual((status, out), (4, "by myself\n"), err)
        self.assertNotIn("SIGTERM", err)
        self.assertRegex(err, r"rank 0 \(pid \d+\) exited with status 1")

    def test_terminated_then_killed(self):
        script = ('if [ $1 = 1 ]; then while ! [ -e "$2.ready" ]; do sleep 0.05; done; exit 6; fi; '
                  'trap "echo asked" TERM; : > "$2.ready"; while :; do sleep 0.1; done')
        status, out, err = self.sh(2, script, "--grace", "0.1", "--kill-after", "1")
        self.assertEqual((status, out), (6, "asked\n"), err)
        self.assertIn("rank 0 did not end within 0.1 s: sending SIGTERM", err)
        self.assertIn("rank 0 did not end within 1 s: sending SIGKILL", err)
        self.assert_nothing_left()

    def test_a_program_that_cannot_be_started(self):
        status, _, err = self.run_job("-np", 2, "--exec", self.path("no such program"))
        self.assertEqual(status, 126)
        self.assertRegex(err, r"rank 0: starting .*no such program: No such file or directory")
        self.assert_nothing_left()

    def test_more_ranks_than_processors(self):
        ranks = 12 * (os.cpu_count() or 1)
        status, out, _ = self.sh(ranks, "echo $1")
        self.assertEqual(status, 0)
        self.assertEqual(sorted(int(x) for x in out.split()), list(range(ranks)))

    def test_time_limit(self):
        status, _, err = self.sh(2, '[ $1 = 0 ] && exit 0; exec sleep 1000', "--timeout", "1")
        self.assertEqual(status, 124)
        self.assertIn("the time limit of 1 s is over and rank 1 is still running", err)
        self.assert_nothing_left()

    def test_no_time_limit_reached(self):
        self.assertEqual(self.sh(2, "exit 0", "--timeout", "80")[0], 0)


class Leftovers(LauncherTest):
    def sleeping_job(self, np, *words, script=SLEEPER):
        job = self.start(*(self.sh_words(np, script, *words) + (self.folder,)))
        files = [self.path("pid.%d" % r) for r in range(np)]
        wait_for(lambda: all(read(f).endswith("\n") for f in files), "all ranks run")
        return job, [int(read(f)) for f in files]

    def test_children_of_a_rank_end_with_it(self):
        status, out, _ = self.sh(1, "sleep 1000 > /dev/null & echo $!; exit 0")
        self.assertEqual(status, 0)
        self.wait_until_gone(int(out))

    def test_killed_launcher_leaves_nothing(self):
        script = 'sleep 1000 & echo $! > "$3/child.$1"; ' + SLEEPER
        job, pids = self.sleeping_job(3, script=script)
        pids += [int(read(self.path("child.%d" % r))) for r in range(3)]
        self.assertTrue(os.listdir(self.tmpdir))
        self.assertLess(set(pids), set(left_with(self.tmpdir)))  # what finds them there finds what is left
        job.kill()
        self.assert_nothing_left(LIMIT_S)
        self.wait_until_gone(*pids)
        self.finish(job)  # its output ends: nobody else holds it

    def test_a_guardian_that_was_killed_is_not_missed(self):
        job, pids = self.sleeping_job(2)
        with open("/proc/%d/task/%d/children" % (job.pid, job.pid), encoding="ascii") as f:
            guardian = [int(p) for p in f.read().split() if int(p) not in pids]
        self.assertEqual(len(guardian), 1)
        os.kill(guardian[0], signal.SIGKILL)
        job.terminate()
        self.assertEqual(self.finish(job)[0], 143)
        self.assert_nothing_left()

    def test_ending_signals_reach_the_ranks_and_end_the_job(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            with self.subTest(number.name):
                for r in range(2):
                    open(self.path("pid.%d" % r), "w", encoding="ascii").close()
                job, pids = self.sleeping_job(2)
                job.send_signal(number)
                status, _, err = self.finish(job)
                self.assertEqual(status, 128 + number)
                self.assertIn("%s received" % number.name, err)
                self.assert_nothing_left()

    def test_a_second_signal_kills(self):
        script = 'trap "" TERM INT; echo $$ > "$3/pid.$1"; while :; do sleep 0.1; done'
        job, pids = self.sleeping_job(2, "--grace", "1000", script=script)
        job.send_signal(signal.SIGINT)
        time.sleep(0.3)
        self.assertTrue(all(alive(p) for p in pids))
        job.send_signal(signal.SIGINT)
        self.assertEqual(self.finish(job)[0], 130)
        self.assert_nothing_left()

    def test_other_signals_are_passed_on_once(self):
        script = ('for s in QUIT USR1 USR2; do trap "echo $s >> \\"$3/got.$1\\"" $s; done; '
                  'trap "exit 0" TERM; echo $$ > "$3/pid.$1"; while :; do sleep 0.05; done')
        job, _ = self.sleeping_job(2, script=script)
        seen = ""
        for name in ("QUIT", "USR1", "USR2"):
            job.send_signal(getattr(signal, "SIG" + name))
            seen += name + "\n"
            for r in range(2):
                wait_for(lambda: read(self.path("got.%d" % r)) == seen, "rank %d got %s once" % (r, name))
        self.assertIsNone(job.poll())
        job.terminate()
        self.assertEqual(self.finish(job)[0], 143)

    def hasty_launcher(self, *numbers):
        """An ibvrun that gets these signals while it starts each rank, when that rank already runs."""
        text = (
            "import os, signal, sys, time\n"
            "sys.dont_write_bytecode = True\n"
            "sys.path.insert(0, %r)\n"
            "from ibvrun import cli, spawner\n"
            "start = spawner.Spawner.start\n"
            "def hasty_start(self, command, *more):\n"
            "    process = start(self, command, *more)\n"
            "    while not os.path.exists(os.path.join(%r, 'pid.%%d' %% command.rank)):\n"
            "        time.sleep(0.01)\n"
            "    for number in %r:\n"
            "        os.kill(os.getpid(), number)\n"
            "    return process\n"
            "spawner.Spawner.start = hasty_start\n"
            "sys.exit(cli.main(%r, sys.argv[1:]))\n"
        ) % (os.path.join(os.path.dirname(IBVRUN), "lib"), self.folder, [int(n) for n in numbers], IBVRUN)
        with open(self.path("hasty.py"), "w", encoding="utf-8") as f:
            f.write(text)
        return self.path("hasty.py")

    def test_a_signal_during_the_start_reaches_the_rank_being_started(self):
        script = 'trap "exit 0" USR1; echo $$ > "$3/pid.$1"; while :; do sleep 0.05; done'
        words = self.sh_words(2, script, "--timeout", "20") + (self.folder,)
        self.succeed(*words, program=self.hasty_launcher(signal.SIGUSR1))

    def test_two_ending_signals_during_the_start_kill_the_rank_being_started(self):
        words = self.sh_words(2, 'trap "" INT TERM; ' + SLEEPER, "--grace", "1000", "--timeout", "20") + (self.folder,)
        status, _, err = self.run_job(*words, program=self.hasty_launcher(signal.SIGINT, signal.SIGTERM))
        self.assertEqual(status, 130, err)
        self.assert_nothing_left()
        self.assertFalse(os.path.exists(self.path("pid.1")), "a rank was started after the signals")

    def test_stop_and_continue(self):
        job, pids = self.sleeping_job(2)

        def states():
            return {read("/proc/%d/stat" % p).rpartition(")")[2].split()[0] for p in pids}
        job.send_signal(signal.SIGTSTP)
        wait_for(lambda: states() == {"T"}, "the ranks are stopped")
        job.send_signal(signal.SIGCONT)
        wait_for(lambda: states() == {"S"}, "the ranks go on")
        job.terminate()
        self.assertEqual(self.finish(job)[0], 143)

    def test_ignored_signals_stay_ignored(self):
        script = "trap '' HUP; exec \"$0\" \"$@\""  # what nohup does
        words = [sys.executable, IBVRUN] + [str(w) for w in self.sh_words(1, SLEEPER)] + [self.folder]
        job = subprocess.Popen(["/bin/sh", "-c", script] + words, env=self.environ(), stderr=subprocess.PIPE, text=True)
        self.jobs.append(job)
        wait_for(lambda: read(self.path("pid.0")).endswith("\n"), "the rank runs")
        job.send_signal(signal.SIGHUP)
        time.sleep(0.3)
        self.assertTrue(alive(int(read(self.path("pid.0")))))
        job.terminate()
        self.assertEqual(self.finish(job)[0], 143)


class Jobs(LauncherTest):
    def test_conf_file(self):
        status, out, err = self.sh(3, '[ $1 = 0 ] && cat "$2"; exit 0', "-psl", 4096)
        self.assertEqual(status, 0, err)
        lines = [x for x in out.splitlines() if x and not x.startswith("#")]
        self.assertEqual(lines[:2], ["3", "4096"])
        fields = [line.split("@") for line in lines[2:]]
        self.assertEqual([f[3] for f in fields], ["0", "1", "2"])
        ports = [p for f in fields for p in f[1:3]]
        self.assertEqual(len(set(ports)), 6)

    def test_a_reserved_port_can_be_listened_on_and_is_given_to_nobody_else(self):
        ports = Ports(8)
        self.addCleanup(ports.close)
        for number in ports.numbers:
            with socket.socket() as s:
                s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                s.bind(("", number))
                s.listen()
        others = Ports(200)
        self.addCleanup(others.close)
        self.assertFalse(set(others.numbers) & set(ports.numbers))

    def test_two_jobs_at_once_share_nothing(self):
        script = 'if [ $1 = 0 ]; then echo $IBVDEV_JOB_ID $IBVDEV_JOB_SECRET; grep @ "$2"; fi; ' \
            ': > "$3/$IBVDEV_JOB_ID.$1"; while [ $(ls "$3" | grep -c "[.][01]$") -lt 4 ]; do sleep 0.05; done'
        jobs = [self.start(*(self.sh_words(2, script) + (self.folder,))) for _ in range(2)]
        results = [self.finish(job) for job in jobs]
        self.assertEqual([r[0] for r in results], [0, 0], results)
        words = [set(re.findall(r"[0-9a-f]{32}|\b\d{4,5}\b", r[1])) for r in results]
        self.assertEqual([len(w) for w in words], [6, 6], results)  # id, secret, 4 ports
        self.assertFalse(words[0] & words[1])

    def test_the_users_id_and_secret(self):
        script = 'echo "<$IBVDEV_JOB_ID|$IBVDEV_JOB_SECRET>"'
        for ident, shown in (("0123456789abcdefABCDEF0123456789", "0123456789abcdefABCDEF0123456789"),
                             ("../x", r"\.\./x"), ("", "[0-9a-f]{32}")):
            for secret in ("it's mine", ""):
                out, _ = self.succeed(*self.sh_words(2, script),
                                      env={"IBVDEV_JOB_ID": ident, "IBVDEV_JOB_SECRET": secret})
                lines = sorted(set(out.splitlines()))
                self.assertEqual(len(lines), 1, out)
                self.assertRegex(lines[0], r"^<%s\|%s>$" % (shown, secret or "[0-9a-f]{32}"))

    def test_bind(self):
        allowed = sorted(os.sched_getaffinity(0))
        script = "grep Cpus_allowed_list /proc/self/status; exit 0"
        out, _ = self.succeed(*self.sh_words(3, script, "--bind", "core", "-l"))
        for r in range(3):
            self.assertRegex(out, r"(?m)^\[%d\] Cpus_allowed_list:\s+%d$" % (r, allowed[r % len(allowed)]))

    def test_working_folder_and_paths_with_blanks(self):
        os.mkdir(self.path("a b"))
        program = self.path("my program")
        with open(program, "w", encoding="ascii") as f:
            f.write('#!/bin/sh\npwd; echo "$1|$2"\n')
        os.chmod(program, 0o755)
        out, _ = self.succeed("-np", 1, "-wdir", "a b", "--exec", "./my program", "x y{rank}", "{size}",
                              cwd=self.folder)
        self.assertEqual(out, "%s\nx y0|1\n" % os.path.realpath(self.path("a b")))


if __name__ == "__main__":
    main()
