# SPDX-License-Identifier: MIT
"""ibvdev-info, from a checkout and from a prefix made of links to the checkout."""
import os

import support
from support import INFO, LauncherTest, main


class Info(LauncherTest):
    def info(self, *words, **options):
        return self.run_job(*words, program=INFO, **options)

    def test_settings_and_where_they_were_set(self):
        conf = self.path("job conf")
        with open(conf, "w", encoding="ascii") as f:
            f.write("1\n4096\n#ibvdev shm_slots=512\nlocalhost@20000@20001@0@0\n")
        status, out, err = self.info("-Dibvdev.spin_us=7", conf, env={"IBVDEV_YIELD_US": "9"})
        self.assertEqual((status, err), (0, ""))
        for name, value, origin in (("spin_us", "7", "system property"), ("yield_us", "9", "IBVDEV_YIELD_US"),
                                    ("shm_slots", "512", "line 3"), ("psl", "4", "conf"), ("cma", "auto", "default")):
            self.assertRegex(out, r"(?m)^ +%s += %s.* set by: .*%s" % (name, value, origin))
        self.assertRegex(out, r"(?m)^  ucx +(available\n +library: UCX 1\.\d+|unavailable: UCX is not installed \(Debian, Ubuntu: libucx0;)")
        self.assertRegex(out, r"(?m)^  ofi +(available\n +library: libfabric \d\.\d+\n +provider: .*first one here"
                              r"|unavailable: libfabric is not installed \(Debian, Ubuntu: libfabric1;)")
        for text in ("transports:", "kernel:", "java.vm.version", "native library: "):
            self.assertIn(text, out)

    def test_wrong_settings(self):
        for words, env, text in ((["-Dibvdev.psll=1"], {}, "did you mean psl"),
                                 (["-Dibvdev.psl=lots"], {}, "psl"),
                                 ([], {"IBVDEV_SPIN_US": "-4"}, "IBVDEV_SPIN_US"),
                                 (["-Dibvdev.transports=self,shmm"], {}, "there is no transport \"shmm\""),
                                 ([], {"IBVDEV_SPINUS": "4"}, "did you mean")):
            with self.subTest(words=words, env=env):
                status, out, err = self.info(*words, env=env)
                self.assertEqual((status, out), (1, ""))
                self.assertTrue(err.startswith("ibvdev-info: "), err)
                self.assertIn(text, err)

    def test_launcher(self):
        status, out, err = self.info("--launcher")
        self.assertEqual((status, err), (0, ""))
        for text in ("pmix     not found: PMIX_RANK is not set", "pmi      not found", "slurm    not found: SLURM",
                     "chosen:      single (launcher=auto, default)", "addresses:", "1 rank met in", "rank 0 (pid "):
            self.assertIn(text, out)
        status, out, err = self.info("--launcher", env={"IBVDEV_LAUNCHER": "pmi"})
        self.assertEqual((status, err), (1, ""))
        self.assertIn("chosen:      none: launcher=pmi (environment IBVDEV_LAUNCHER)", out)
        self.assertIn("rendezvous:  failed: launcher=pmi", out)

    def test_bad_command_lines(self):
        status, _, err = self.info("a", "b")
        self.assertEqual(status, 2)
        self.assertIn("one conf file at most", err)
        self.assertNotEqual(self.info(self.path("no such conf"))[0], 0)
        self.assertEqual(self.info("--java")[0], 2)
        self.assertEqual(self.info(env={"IBVDEV_BUILD": self.folder})[0], 2)

    def test_help_and_version(self):
        self.assertRegex(self.info("--help")[1], r"^usage: ibvdev-info")
        self.assertRegex(self.info("--version")[1], r"^ibvdev-info \(ibvdev\) \d+\.\d+\.\d+\n$")

    def test_a_newer_jdk_does_not_warn(self):
        home = next((h for h in support.NEWER_JDKS if os.path.isdir(h)), None)
        if not home:
            self.skipTest("no newer JDK")
        status, out, err = self.info("--java", home)
        self.assertEqual((status, err), (0, ""))
        self.assertIn("settings", out)

    def test_an_installed_prefix_with_a_blank(self):
        build = os.environ.get("IBVDEV_BUILD") or os.path.join(os.path.dirname(support.SCRIPTS), "build")
        prefix = self.path("usr local")
        for folder in ("bin", "share/ibvdev/lib", "share/java"):
            os.makedirs(os.path.join(prefix, folder))
        for name in ("ibvrun", "ibvdev-info"):
            with open(os.path.join(support.SCRIPTS, name), encoding="utf-8") as f:
                text = f.read()
            with open(os.path.join(prefix, "bin", name), "w", encoding="utf-8") as f:
                f.write(text)
        os.symlink(os.path.join(support.SCRIPTS, "lib", "ibvrun"), os.path.join(prefix, "share/ibvdev/lib/ibvrun"))
        for jar in ("ibvdev.jar", "ibvdev-mpi.jar", "xxdev-api.jar"):
            os.symlink(os.path.join(build, "java", jar), os.path.join(prefix, "share/java", jar))
        env = {"IBVDEV_BUILD": ""}
        status, out, err = self.run_job(program=os.path.join(prefix, "bin", "ibvdev-info"), env=env)
        self.assertEqual((status, err), (0, ""))
        self.assertIn("native library: ibvdev.jar!/META-INF/native/", out)
        os.symlink(os.path.join(prefix, "bin", "ibvrun"), self.path("linked"))  # found through a link
        out, _ = self.succeed("-n", "-np", 1, "X", program=self.path("linked"), env=env)
        self.assertIn(os.path.join(prefix, "share/java/ibvdev.jar"), out)
        self.assertNotIn("-Dibvdev.library", out)
        status, out, _ = self.run_job("--version", program=os.path.join(prefix, "bin", "ibvrun"), env=env)
        self.assertRegex(out, r"\d+\.\d+\.\d+")


if __name__ == "__main__":
    main()
