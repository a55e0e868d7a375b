# SPDX-License-Identifier: MIT
"""Programs for MPJ Express as Debian ships them: on our package mpi they report what they report on MPJ Express."""
import os
import re
import shutil
import tempfile

from support import MPJ_JAR, LauncherTest, main, read

NP = 3
JMODELTEST = "/usr/share/jmodeltest"
PROTTEST = "/usr/share/prottest/prottest.jar"
PHYML = "/usr/lib/phyml/bin/phyml"

# Debian's phyml is a script that starts mpirun; the program behind it fails an assertion when it is to optimize the
# frequencies of nucleotides (-f m), and takes its seed from the clock.
WRAPPER = """#!/bin/sh
[ "$1" = --version ] && exec %(phyml)s --version
last=
for word do
	shift
	[ "$last $word" = "-f m" ] && word=e
	last=$word
	set -- "$@" "$word"
done
exec %(phyml)s "$@" --r_seed 1
""" % {"phyml": PHYML}


class Programs(LauncherTest):
    def setUp(self):
        super().setUp()
        for needed in (JMODELTEST, PROTTEST, PHYML):
            if not os.path.exists(needed):
                self.skipTest("no %s (Debian packages jmodeltest, prottest)" % needed)
        self.home = tempfile.mkdtemp(prefix="ibvrun-programs-")  # the programs split command lines at blanks
        self.addCleanup(shutil.rmtree, self.home, ignore_errors=True)
        for name in ("bin", "conf", "log", "tmp"):
            os.mkdir(self.at(name))
        with open(self.at("bin", "phyml"), "w", encoding="ascii") as f:
            f.write(WRAPPER)
        os.chmod(self.at("bin", "phyml"), 0o755)

    def at(self, *names):
        return os.path.join(self.home, *names)

    def outputs(self, *words):
        """Runs the program on MPJ Express and on our package mpi; yields both outputs."""
        for options, jar in (("-mpi", "mpjexpress", "-dev", "niodev"), MPJ_JAR), ((), "ibvdev-mpi.jar"):
            out, err = self.succeed(
                "-np", NP, "--timeout", 100, *options, "--no-class-archive", "-wdir", self.home,
                "-Djava.io.tmpdir=" + self.at("tmp"), "-Xlog:class+load:file=%s.{rank}" % self.at("classes"), *words,
                env={"PATH": self.at("bin") + ":" + os.environ["PATH"]})
            # The programs' manifests name Debian's mpj.jar: whose class mpi.MPI was it?
            found = []
            for rank in range(NP):
                name = self.at("classes.%d" % rank)
                found += re.findall(r" mpi\.MPI source: .*/(.*)", read(name))
                os.remove(name)
            self.assertEqual(found, [os.path.basename(os.path.realpath(jar))] * NP)
            self.assert_nothing_left()
            yield out, err

    def test_jmodeltest(self):
        """Models of DNA evolution: objects by Irecv from any source, Bcast of objects, a thread of messages at rank 0."""
        # The program reads conf/ beside its jar, and the jar is sought where links to it lead.
        jar = shutil.copy(os.path.join(JMODELTEST, "jModelTest.jar"), self.home)
        conf = read(os.path.join(JMODELTEST, "conf", "jmodeltest.conf"))
        conf = re.sub(r"(?m)^exe-dir .*", "exe-dir = " + self.at("bin"), conf)
        conf = re.sub(r"(?m)^(checkpointing|html-logging|phyml-logging) .*", r"\1 = disabled", conf)
        with open(self.at("conf", "jmodeltest.conf"), "w", encoding="ascii") as f:
            f.write(conf)
        tables = []
        for out, err in self.outputs("-cp", jar, "es.uvigo.darwin.jmodeltest.ModelTest", "-S", "NNI", "-t", "fixed", "-s", 3, "-f", "-g", 4,
                                     "-AIC", "-BIC", "-d", os.path.join(JMODELTEST, "example-data", "aP6.fas")):
            self.assertEqual(err.count("[MPI] ... OK!"), NP)
            # Of a model that another rank computed, the program takes over some of the parameters: they depend on the
            # rank that computed it.  Likelihood and criteria do not.
            tables.append(re.findall(r"(?m)^(\w+(?:\+G)?) +(\d+\.\d+) +(\d+) +(\d+\.\d+) +\d+\.\d+ +\S+ +\S+", out))
            self.assertEqual(len(tables[-1]), 2 * 12, out)  # AIC and BIC of 6 models, with and without +G
            self.assertEqual(out.count("Tree for the best"), 2)
        self.assertEqual(*tables)

    def test_prottest(self):
        """Models of protein evolution: each of its ways of giving the models to the ranks."""
        jar = shutil.copy(PROTTEST, self.home)
        properties = read(os.path.join(os.path.dirname(PROTTEST), "prottest.properties"))
        data = os.path.join(os.path.dirname(PROTTEST), "examples", "COX2_PF0016", "alignment")
        for strategy in ("static", "dynamic", "dynamic_improved", "hybrid"):
            with self.subTest(strategy=strategy):
                with open(self.at("prottest.properties"), "w", encoding="ascii") as f:
                    f.write(re.sub(r"(?m)^parallel_strategy=.*", "parallel_strategy=" + strategy, properties))
                tables = []
                for out, _ in self.outputs("-cp", jar, "es.uvigo.darwin.prottest.ProtTest", "-S", 0, "-JTT", "-WAG", "-F", "-AIC",
                                           "-i", data):
                    shutil.rmtree(self.at("snapshot"), ignore_errors=True)  # it would go on from there
                    tables.append(out[out.index("Best model according to"):])
                    self.assertEqual(len(re.findall(r"(?m)^(?:JTT|WAG)\S* +\d", tables[-1])), 4, out)
                    self.assertEqual(len(re.findall(r"(?m)^Runtime processor \d", out)), NP, out)
                self.assertEqual(*tables)


if __name__ == "__main__":
    main()
