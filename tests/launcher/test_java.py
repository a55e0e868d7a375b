# SPDX-License-Identifier: MIT
"""Java ranks that need no device: class paths, jars, JVM options, statuses, dry runs."""
import os
import re
import shlex
import signal
import subprocess
import zipfile

import support
from support import LauncherTest, main, read, wait_for


def setUpModule():
    global CLASSES
    CLASSES = support.compile_java("Probe.java")


class Java(LauncherTest):
    def probe(self, *words, np=1, options=(), **more):
        return self.succeed("-np", np, *options, "-cp", CLASSES, "Probe", *words, **more)

    def jar(self, manifest, name="probe app.jar"):
        path = self.path(name)
        with zipfile.ZipFile(path, "w") as z:
            z.writestr("META-INF/MANIFEST.MF", manifest)
            z.write(os.path.join(CLASSES, "Probe.class"), "Probe.class")
        return path

    def test_arguments_come_through_unchanged(self):
        words = ["arguments", "a b", "", "*", "$HOME", "'\"", "-np", "9", "{rank}", "-Xmx1g"]
        out, err = self.probe(*words, np=2, options=["-l"])
        lines = sorted(out.splitlines())
        for rank in range(2):
            self.assertRegex(lines[rank], r"^\[%d\] %d\|.*job\.conf\|ibvdev\|%s$"
                             % (rank, rank, re.escape("|".join(words))))
        self.assertEqual(err, "")
        self.assert_nothing_left()

    def test_jvm_options(self):
        out, _ = self.probe("properties", "a", "file", np=2, options=["-l", "-Da=b c", "-Dfile=f.{rank}.{size}"])
        self.assertEqual(sorted(out.splitlines()),
                         ["[0] a=b c", "[0] file=f.0.2", "[1] a=b c", "[1] file=f.1.2"])

    def test_the_limits_of_a_jvm(self):
        script = "-XX:+PrintFlagsFinal"
        for np, options, percentage, shown in ((2, [], "25.0", False), (5, [], "16.0", True), (5, ["-Xmx64m"], "25.0", False),
                                               (5, ["-XX:MaxRAMPercentage=7"], "7.0", True)):
            with self.subTest(np=np, options=options):
                out, err = self.probe("properties", np=np, options=["-l", "-v", script] + options)
                self.assertEqual(len(re.findall(r"(?m) MaxRAMPercentage +=? %s0* " % re.escape(percentage), out)), np)
                self.assertEqual("-XX:MaxRAMPercentage=" in err, shown, err)

    def test_class_path_means_the_calling_folder(self):
        os.mkdir(self.path("elsewhere"))
        os.symlink(CLASSES, self.path("cl"))
        for options in (["-cp", "cl"], ["-cp", "none:cl", "-wdir", "elsewhere"], ["-classpath", "cl"]):
            out, _ = self.succeed("-np", 1, *options, "Probe", "properties", "user.dir", cwd=self.folder)
            expected = "elsewhere" if "-wdir" in options else ""
            self.assertEqual(os.path.join(os.path.realpath(self.folder), expected).rstrip("/"),
                             out.strip().partition("=")[2])
        out, _ = self.succeed("-np", 1, "Probe", "properties", "a", cwd=CLASSES)  # default: .
        self.succeed("-np", 1, "Probe", "properties", "a", cwd=self.folder, env={"CLASSPATH": CLASSES})

    def test_our_jars_are_ahead(self):
        out, _ = self.probe("properties", "java.class.path", options=["-mpi", "mpjexpress"])
        entries = out.strip().partition("=")[2].split(":")
        self.assertEqual([os.path.basename(e) for e in entries[:3]], ["ibvdev.jar", "mpj.jar", "log4j-1.2.jar"])
        self.assertEqual(entries[3:4], [CLASSES])
        self.assertEqual([os.path.basename(e) for e in entries[4:]], ["xxdev-api.jar"])  # the user's own xxdev comes first
        out, _ = self.probe("properties", "java.class.path", options=["-dev", "xxdev", "-mpjhome", self.folder])
        self.assertEqual([os.path.basename(e) for e in out.strip().partition("=")[2].split(":")],
                         ["ibvdev.jar", os.path.basename(CLASSES), "xxdev-api.jar"])
        out, _ = self.probe("properties", "java.class.path", options=["-mpjhome", self.folder])
        self.assertEqual([os.path.basename(e) for e in out.strip().partition("=")[2].split(":")],
                         ["ibvdev-mpi.jar", "ibvdev.jar", os.path.basename(CLASSES), "xxdev-api.jar"])
        out, _ = self.succeed("-np", 1, "-dev", "xxdev", "-cp", CLASSES, "Probe", "arguments")
        self.assertRegex(out, r"ibvdev\|arguments")

    def test_jar(self):
        long = "X-" + "y" * 60 + ": " + "z" * 6 + "\r\n z\r\n"  # a continued line
        path = self.jar("Manifest-Version: 1.0\r\n" + long + "Main-Class: Pro\r\n be\r\nAdd-Opens: java.base/java.lang\r\n"
                        "\r\nName: other/\r\nMain-Class: Wrong\r\n")
        out, _ = self.succeed("-np", 2, "-jar", path, "arguments", "-jar")
        self.assertEqual(out.count("|arguments|-jar\n"), 2)
        out, _ = self.succeed("-np", 1, "-n", "-jar", path)
        self.assertIn("--add-opens=java.base/java.lang=ALL-UNNAMED", out)

    def test_bad_jars(self):
        path = self.jar("Manifest-Version: 1.0\n")
        self.assertRegex(self.run_job("-jar", path)[2], "its manifest has no Main-Class")
        with open(path, "w", encoding="ascii") as f:
            f.write("not a jar")
        status, _, err = self.run_job("-jar", path)
        self.assertEqual(status, 2)
        self.assertIn("not a readable jar", err)

    def test_an_exception_ends_the_job(self):
        status, _, err = self.run_job("-np", 2, "-cp", CLASSES, "Probe", "throw", 1)
        self.assertEqual(status, 1)
        self.assertIn("java.lang.IllegalStateException: thrown by rank 1", err)
        self.assertRegex(err, r"ibvrun: rank 1 \(pid \d+\) exited with status 1")

    def test_exit_status(self):
        status, _, err = self.run_job("-np", 2, "-cp", CLASSES, "Probe", "exit", 0, 77)
        self.assertEqual(status, 77)
        self.assertRegex(err, r"rank 0 \(pid \d+\) exited with status 77")

    def sleeping(self, *options):
        job = self.start("-np", 2, *options, "-cp", CLASSES, "Probe", "sleep", self.path("pid."))
        wait_for(lambda: all(read(self.path("pid.%d" % r)).endswith("\n") for r in range(2)), "both ranks run")
        return job, [int(read(self.path("pid.%d" % r))) for r in range(2)]

    def test_thread_dump_and_termination(self):
        job, _ = self.sleeping("--output", self.path("o"))
        job.send_signal(signal.SIGQUIT)
        for r in range(2):
            wait_for(lambda: "Full thread dump" in read(self.path("o", "rank.%d.out" % r)), "a thread dump")
        job.terminate()
        self.assertEqual(self.finish(job)[0], 143)
        self.assert_nothing_left()

    def test_time_limit_with_dump(self):
        status, out, err = self.run_job("-np", 2, "--timeout", "4", "--dump", "-l", "-cp", CLASSES, "Probe", "sleep",
                                        self.path("pid."))
        self.assertEqual(status, 124, err)
        for r in range(2):
            self.assertIn("[%d] Full thread dump" % r, out)

    def test_killed_launcher_leaves_no_jvm(self):
        job, pids = self.sleeping()
        job.kill()
        self.wait_until_gone(*pids)
        wait_for(lambda: not os.listdir(self.tmpdir), "the conf file is gone")

    def test_debugger(self):
        out, _ = self.succeed("-n", "-np", 2, "-debug", 9000, "X")
        self.assertEqual(re.findall(r"suspend=y,address=(\d+)", out), ["9000", "9001"])


class DryRun(LauncherTest):
    def test_lines_can_be_run_by_a_shell(self):
        out, err = self.succeed("-n", "-np", 2, "-mpi", "mpjexpress", "-wdir", self.folder, "-Da=b c", "-cp", CLASSES, "Probe",
                                "arguments", "it's", "a  b")
        self.assertEqual(err, "")
        self.assertEqual(os.listdir(self.tmpdir), [])
        lines = [x for x in out.splitlines() if x.startswith("cd ")]
        self.assertEqual(len(lines), 2)
        env = {"PATH": os.environ["PATH"]}  # a terminal that knows nothing of ours
        for rank, line in enumerate(lines):
            done = subprocess.run(["/bin/sh", "-c", line], env=env, capture_output=True, text=True, timeout=60,
                                  check=False)
            self.assertRegex(done.stdout, r"^%d\|%s/ibvrun-\w+\.conf\|ibvdev\|arguments\|it's\|a  b\n$"
                             % (rank, re.escape(self.tmpdir)), done.stderr)
        words = shlex.split(lines[0])
        for name in ("IBVDEV_JOB_ID", "IBVDEV_JOB_SECRET", "MPJ_HOME"):
            self.assertEqual(sum(w.startswith(name + "=") for w in words), 1)

    def test_the_conf_file_is_written_by_the_shown_command(self):
        out, _ = self.succeed("-n", "-np", 2, "Prog")
        command = out[out.index("cat >"):out.index("# rank 0:")]
        subprocess.run(["/bin/sh", "-c", command], check=True, timeout=60)
        (name,) = os.listdir(self.tmpdir)
        text = read(os.path.join(self.tmpdir, name))
        self.assertEqual([x.split("@")[3] for x in text.splitlines() if "@" in x], ["0", "1"])

    def test_every_device(self):
        for device in ("niodev", "mxdev", "smpdev"):
            out, _ = self.succeed("-n", "-np", 3, "-dev", device, "Prog", "x")
            self.assertEqual(out.count("\ncd ") + out.startswith("cd "), 1 if device == "smpdev" else 3, out)
        self.assertEqual(os.listdir(self.tmpdir), [])

    def test_native_access_is_enabled_where_the_jvm_asks_for_it(self):
        for text, enabled in (("25", True), ("22.0.1", True), ("21.0.2", False), ("17.0.15", False),
                              ("1.8.0_292", False)):
            home = self.path("jdk " + text)
            os.makedirs(os.path.join(home, "bin"))
            os.symlink("/bin/true", os.path.join(home, "bin", "java"))
            with self.subTest(text):
                java = os.path.join(home, "bin", "java")
                os.remove(java)
                with open(java, "w", encoding="ascii") as f:
                    f.write('#!/bin/sh\necho \'openjdk version "%s" 2025-01-01\' >&2\n' % text)
                os.chmod(java, 0o755)
                for with_release in (False, True):  # asked for, or read
                    if with_release:
                        with open(os.path.join(home, "release"), "w", encoding="ascii") as f:
                            f.write('IMPLEMENTOR="x"\nJAVA_VERSION="%s"\n' % text)
                    out, _ = self.succeed("-n", "-np", 1, "X", env={"JAVA_HOME": home})
                    self.assertEqual("--enable-native-access=ALL-UNNAMED" in out, enabled)
                    self.assertIn(shlex.quote(java), out)
        out, _ = self.succeed("-n", "-np", 1, "--enable-native-access=my.module", "X", env={"JAVA_HOME": home})
        self.assertNotIn("ALL-UNNAMED", out)


if __name__ == "__main__":
    main()
