# SPDX-License-Identifier: MIT
"""Standard streams, the command line and its error texts."""
import os
import re
import selectors
import socket
import struct
import subprocess
import sys
import time

from support import IBVRUN, LauncherTest, main, read

from ibvrun import options as command_line
from ibvrun.portserver import PortServer as Server

# Writes lines in many small pieces, so that streams would mix if they could.
CHATTER = '''
import os, sys
rank = int(sys.argv[1])
for i in range(300):
    text = b"%d:%d:%s\\n" % (rank, i, bytes([97 + rank]) * (i * 37 % 900))
    for at in range(0, len(text), 97):
        os.write(1, text[at:at + 97])
os.write(2, b"end of %d" % rank)
'''


class Streams(LauncherTest):
    def chatter(self, *words):
        return self.succeed("-np", 4, *words, "--exec", sys.executable, "-c", CHATTER, "{rank}")

    @staticmethod
    def expected(rank):
        return ["%d:%d:%s" % (rank, i, chr(97 + rank) * (i * 37 % 900)) for i in range(300)]

    def test_prefix_keeps_lines_whole_and_in_order(self):
        out, err = self.chatter("-l")
        for rank in range(4):
            mark = "[%d] " % rank
            self.assertEqual([x[len(mark):] for x in out.splitlines() if x.startswith(mark)], self.expected(rank))
        self.assertEqual(len(out.splitlines()), 1200)
        self.assertEqual(sorted(err.splitlines()), ["[%d] end of %d" % (r, r) for r in range(4)])

    def test_prefix_is_aligned(self):
        out, _ = self.succeed(*self.sh_words(11, "echo x", "--prefix"))
        self.assertEqual(sorted(out.splitlines()), sorted("[%2d] x" % r for r in range(11)))

    def test_a_line_without_end_and_a_very_long_one(self):
        script = "import sys; sys.stdout.write('y' * 3000000 + '\\nlast')"
        out, _ = self.succeed("-np", 1, "-l", "--exec", sys.executable, "-c", script)
        self.assertTrue(out.endswith("[0] last\n"))
        self.assertEqual(out.count("y"), 3000000)
        self.assertTrue(all(line.startswith("[0] ") for line in out.splitlines()))

    def test_output_folder(self):
        out, err = self.chatter("--output", self.path("new", "out put"))
        self.assertEqual((out, err), ("", ""))
        for rank in range(4):
            self.assertEqual(read(self.path("new", "out put", "rank.%d.out" % rank)).splitlines(),
                             self.expected(rank))
            self.assertEqual(read(self.path("new", "out put", "rank.%d.err" % rank)), "end of %d" % rank)

    def test_output_folder_and_prefix(self):
        out, _ = self.chatter("--output", self.path("o"), "-l")
        self.assertEqual(len(out.splitlines()), 1200)
        self.assertEqual(read(self.path("o", "rank.3.out")).splitlines(), self.expected(3))

    def test_a_failure_names_where_the_output_is(self):
        status, _, err = self.sh(2, "[ $1 = 1 ] && exit 3; exit 0", "--output", self.path("o"))
        self.assertEqual(status, 3)
        self.assertIn("its standard error is in " + self.path("o", "rank.1.err"), err)

    def test_stdin_goes_to_rank_0(self):
        out, _ = self.succeed(*self.sh_words(3, 'echo "$1 $(cat)"', "-l"), data="hello\nthere\n")
        self.assertEqual(sorted(out.splitlines()), ["[0] 0 hello", "[0] there", "[1] 1 ", "[2] 2 "])

    def test_closed_stdin(self):
        done = subprocess.run(["/bin/sh", "-c", '"$0" "$@" <&-', sys.executable, IBVRUN]
                              + [str(w) for w in self.sh_words(1, "cat; echo done")], env=self.environ(),
                              capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual((done.returncode, done.stdout), (0, "done\n"), done.stderr)

    def test_a_reader_that_goes_away_ends_the_job(self):
        job = self.start(*self.sh_words(6, "exec yes", "-l"))
        job.stdout.readline()
        job.stdout.close()
        self.assertEqual(job.wait(60), 141)
        self.assertIn("nobody reads the output", job.stderr.read())
        self.assert_nothing_left()


class CommandLine(LauncherTest):
    def test_errors_name_the_value_and_the_remedy(self):
        for words, text in (
                (["-np", "0", "X"], "-np 0: must be a whole number from 1"),
                (["-np", "two", "X"], "-np two: must be a whole number"),
                (["-np"], "-np needs a value"),
                (["-n", "4", "X"], "4 is not the name of a class; the number of ranks is given by -np 4"),
                (["-np", "2"], "nothing to run"),
                (["-dev", "xyz", "X"], "-dev xyz: no such device; there are ibvdev, xxdev, niodev"),
                (["-dev", "hybdev", "X"], "use -dev smpdev"),
                (["-dev", "native", "X"], "mpirun -np"),
                (["-jar", "no.jar"], "-jar no.jar: no such file"),
                (["-wdir", "no folder", "X"], "-wdir no folder: no such folder"),
                (["-machinesfile", "m", "X"], "--hostfile m: No such file"),
                (["--hosts", "a", "--hostfile", "b", "X"], "name the hosts by one of them"),
                (["--hosts", "a:0", "X"], "--hosts a:0: 0 slots: must be a whole number from 1"),
                (["--hosts", ",", "X"], "names no host"),
                (["--hosts", "a;b", "X"], "\"a;b\" is not the name or address of a host"),
                (["--hosts", "a:2,b:2", "-np", "5", "X"], "-np 5: the hosts have 4 slots (a:2, b:2)"),
                (["--hosts", "a", "-dev", "niodev", "X"], "-dev niodev: runs on one machine here"),
                (["--map-by", "rack", "X"], "--map-by rack: must be slot or node"),
                (["--tag", "colour", "X"], "--tag colour: must be made of rank, host, time"),
                (["--agent", "", "--hosts", "a", "X"], "must be a command"),
                (["-x", "1a", "X"], "-x 1a: must be NAME or NAME=value"),
                (["-x", "NO_SUCH_NAME", "--exec", "true"], "-x NO_SUCH_NAME: there is no such variable here"),
                (["-yarn", "X"], "YARN is not supported"),
                (["-bind", "socket", "X"], "--bind socket: must be none, core or numa"),
                (["--timeout", "-1", "X"], "--timeout -1: must be a number of seconds"),
                (["--grace", "nan", "X"], "--grace nan: must be a number of seconds"),
                (["-mpjhome", "nowhere", "X"], "-mpjhome nowhere: no such folder"),
                (["--java", "no/java", "X"], "no java command found by -java no/java"),
                (["-Xmx1g", "--exec", "true"], "-Xmx1g: --exec runs a program without a JVM"),
                (["-debug", "65535", "-np", "2", "X"], "ports end at 65535"),
                (["--threads", "-dev", "niodev", "X"], "leave --threads or -dev niodev out"),
                (["--threads", "--exec", "true"], "leave --threads or --exec out"),
                (["--threads", "-l", "X"], "leave --threads or -l out"),
                (["--threads", "--hosts", "a", "X"], "leave --threads or --hosts out"),
                (["--threads", "-mpi", "mpjexpress", "X"], "leave --threads or -mpi mpjexpress out")):
            with self.subTest(words):
                status, out, err = self.run_job(*words)
                self.assertEqual((status, out), (2, ""), err)
                self.assertTrue(err.startswith("ibvrun: "), err)
                self.assertIn(text, err)
                self.assertEqual(err.count("\n"), 1, err)
        self.assert_nothing_left()

    def test_a_build_folder_without_a_build(self):
        status, _, err = self.run_job("-np", 1, "X", env={"IBVDEV_BUILD": self.path("empty")})
        self.assertEqual(status, 2)
        self.assertIn("no java/ibvdev.jar in the build folder", err)
        self.assertIn("meson setup", err)

    def test_an_mpj_express_without_jars(self):
        os.makedirs(self.path("mpj", "conf"))
        status, _, err = self.run_job("-mpi", "mpjexpress", "-mpjhome", self.path("mpj"), "X")
        self.assertEqual(status, 2)
        self.assertRegex(err, r"mpj\.jar is in none of .*libmpj-java")

    def test_help_and_version(self):
        for word in ("-h", "-help", "--help"):
            out, err = self.succeed(word)
            self.assertTrue(out.startswith("usage: ibvrun [options]"))
            self.assertEqual(err, "")
            self.assertLessEqual(max(len(x) for x in out.splitlines()), 110)
        for name in list(command_line.VALUED) + list(command_line.FLAGS):
            if name not in ("class-path", "mpj-home", "-prefix", "-help", "-?"):  # second spellings
                self.assertRegex(out, r"(^|[\s(,])-{0,2}%s\b" % re.escape(name), "missing in --help")
        out, _ = self.succeed("--version")
        self.assertRegex(out, r"^ibvrun \(ibvdev\) \d+\.\d+\.\d+\n$")

    def test_parsing(self):
        o = command_line.parse(["-Xmx1g", "--np=3", "--add-opens", "a/b=ALL-UNNAMED", "-cp", "x:y", "-Da=b c", "Main",
                                "-np", "7", "-Dx", "--", "-"])
        self.assertEqual((o.np, o.class_path, o.main_class), (3, "x:y", "Main"))
        self.assertEqual(o.jvm_options, ["-Xmx1g", "--add-opens", "a/b=ALL-UNNAMED", "-Da=b c"])
        self.assertEqual(o.arguments, ["-np", "7", "-Dx", "--", "-"])
        o = command_line.parse(["-np", "2", "-class", "Main", "-dev", "x"])  # fmpjrun's spelling
        self.assertEqual((o.main_class, o.arguments), ("Main", ["-dev", "x"]))
        self.assertEqual(command_line.parse(["-dev", "multicore", "M"]).device, "smpdev")


class PortServer(LauncherTest):
    """The server for niodev, spoken to by hand."""

    def setUp(self):
        super().setUp()
        self.selector = selectors.DefaultSelector()
        self.addCleanup(self.selector.close)
        self.server = Server(2)
        self.server.attach(self.selector)
        self.addCleanup(self.server.close)

    def serve_until(self, condition):
        limit = time.monotonic() + 30
        while not condition() and time.monotonic() < limit:
            for key, _ in self.selector.select(0.05):
                key.data()
        self.assertTrue(condition())

    def report_bytes(self, data):
        s = socket.create_connection(("127.0.0.1", self.server.port), 30)
        self.addCleanup(s.close)
        s.sendall(data)
        return s

    @staticmethod
    def report(rank, write_port, read_port):
        return struct.pack(">H", 12) + b"Sending Info" + struct.pack(">iii", write_port, read_port, rank)

    def answer(self, s):
        s.settimeout(30)
        data = b""
        while True:
            piece = s.recv(4096)
            if not piece:
                break
            data += piece
        self.assertEqual(struct.unpack(">H", data[:2])[0], len(data) - 2)
        return data[2:].decode()

    def test_rounds_and_strangers(self):
        for round_number in range(2):
            base = 100 * round_number
            self.report_bytes(b"GET / HTTP/1.0\r\n\r\n plus enough to be a report")  # not a rank
            self.report_bytes(self.report(2, 1, 1))   # no such rank
            self.report_bytes(self.report(0, 1, 1)[:5]).close()  # gave up
            one = self.report_bytes(self.report(1, base + 3, base + 4))
            self.serve_until(lambda: self.server.missing() == [0])
            zero = self.report_bytes(self.report(0, base + 1, base + 2))
            self.serve_until(lambda: self.server.missing() == [0, 1])
            expected = "#Peer Information;127.0.0.1@%d@%d@0@0;127.0.0.1@%d@%d@1@0" % (
                base + 2, base + 1, base + 4, base + 3)
            self.assertEqual([self.answer(zero), self.answer(one)], [expected, expected])


if __name__ == "__main__":
    main()
