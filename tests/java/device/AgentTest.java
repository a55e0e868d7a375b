// SPDX-License-Identifier: MIT
package device;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import harness.EveryMode;
import harness.Job;
import harness.Mode;
import harness.Result;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.zip.ZipFile;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * What the agent does to MPI.Init, and what it leaves alone, in processes that look as if srun had started them. Jobs of
 * real engines are in tests/cluster.
 */
final class AgentTest {
	@TempDir Path folder;

	private static Job underSrun(Job job) {
		return job.option("-javaagent:" + Job.ibvdevJar()).env("SLURM_STEP_ID", "0").env("SLURM_PROCID", "7");
	}

	private static String mpjOnly(String programs) {
		return String.join(File.pathSeparator, programs, Job.mpjJar(), Job.log4jJar());
	}

	private String compiled(String... sources) throws IOException {
		for (int i = 0; i < sources.length; i += 2) {
			Path file = folder.resolve(sources[i]);
			Files.createDirectories(file.getParent());
			Files.writeString(file, sources[i + 1]);
			assertEquals(0,
					ToolProvider.getSystemJavaCompiler().run(null, null, null, "-cp", String.join(File.pathSeparator, folder.toString(), Job.mpjJar()), "-d",
							folder.toString(), file.toString()));
		}
		return folder.toString();
	}

	/** ibvrun inside an allocation: its words are there, the engine's do not count. */
	@EveryMode
	void argumentsThatAreThereStay(Mode mode) {
		Result result = underSrun(Job.of(mode, 2, MpiProgram.class)).run().assertSuccess();
		for (Result.Rank rank : result.ranks)
			assertTrue(rank.stdout.contains("carried by xdev.ibvdev.IBVDevice"), result.toString());
	}

	@Test
	void otherDevicesStay() throws Exception {
		try (Starter starter = new Starter(2)) {
			Result result = underSrun(Job.of(Mode.PLAIN, 2, MpiProgram.class)).device("niodev").conf(starter.conf()).run();
			assertTrue(result.assertSuccess().stdout(0).contains("carried by xdev.niodev.NIODevice"), result.toString());
		}
	}

	/** Alone it is a job of one rank, as MPI has it. */
	@EveryMode
	void alone(Mode mode) {
		Result result = Job.of(mode, 1, MpiProgram.class).bare().option("-javaagent:" + Job.ibvdevJar()).run();
		assertTrue(result.assertSuccess().stdout(0).contains("carried by xdev.ibvdev.IBVDevice"), result.toString());
	}

	@Test
	void argumentsMayBeNull() throws Exception {
		String programs = compiled("Null.java",
				"public class Null { public static void main(String[] a) throws Exception {"
						+ "System.out.println(mpi.MPI.Init(null).length + \" of \" + mpi.MPI.COMM_WORLD.Size()); mpi.MPI.Finalize(); } }");
		Result result = Job.ofClass(Mode.PLAIN, 1, "Null").bare().classPath(mpjOnly(programs)).option("-javaagent:" + Job.ibvdevJar()).run().assertSuccess();
		assertEquals("0 of 1", result.stdout(0).trim(), result.toString());
	}

	/** Marks of an engine that does not answer are a clear error, and not a job of one rank. */
	@Test
	void engineThatDoesNotAnswer() {
		Result result = Job.of(Mode.PLAIN, 1, MpiProgram.class)
								.bare()
								.option("-javaagent:" + Job.ibvdevJar())
								.env("PMI_FD", "77")
								.env("PMI_RANK", "0")
								.env("PMI_SIZE", "2")
								.run();
		assertNotEquals(0, result.exitCode(0));
		assertTrue(result.stderr(0).contains("PMI_FD"), result.toString());
	}

	/** Three words of the program's own are not rank, conf and device. */
	@Test
	void wordsOfTheProgramAreNotTakenForADevice() throws Exception {
		String programs = compiled("Words.java",
				"public class Words { public static void main(String[] a) throws Exception {"
						+ "String[] own = mpi.MPI.Init(new String[] {\"3\", \"file\", \"ibvdevice\"});"
						+ "System.out.println(String.join(\" \", own) + \" of \" + mpi.MPI.COMM_WORLD.Size()); mpi.MPI.Finalize(); } }");
		Result result = Job.ofClass(Mode.PLAIN, 1, "Words").bare().classPath(mpjOnly(programs)).option("-javaagent:" + Job.ibvdevJar()).run().assertSuccess();
		assertEquals("3 file ibvdevice of 1", result.stdout(0).trim(), result.toString());
	}

	/** Open MPI's mpi.MPI has the same Init. */
	@EveryMode
	void anotherMpiStays(Mode mode) throws Exception {
		String programs = compiled("mpi/MPI.java",
				"package mpi; public class MPI { public static String[] Init(String[] a) {"
						+ "System.out.println(\"Init got \" + a.length); return a; } }",
				"Other.java", "public class Other { public static void main(String[] a) { mpi.MPI.Init(a); } }");
		Result result = underSrun(Job.ofClass(mode, 1, "Other")).bare().classPath(programs).run().assertSuccess();
		assertEquals("Init got 0", result.stdout(0).trim(), result.toString());
	}

	@Test
	void programsWithoutMpiStay() throws Exception {
		String programs = compiled("Plain.java",
				"public class Plain { public static void main(String[] a) {"
						+ "System.out.println(a.length + \" words\"); } }");
		Result result = underSrun(Job.ofClass(Mode.PLAIN, 1, "Plain")).bare().classPath(programs).run().assertSuccess();
		assertEquals("0 words", result.stdout(0).trim(), result.toString());
	}

	/** A class file that ends too soon is the JVM's to refuse. */
	@Test
	void truncatedClassFile() throws Exception {
		String programs = compiled("Init.java",
				"public class Init { public static void main(String[] a) throws Exception {"
						+ "mpi.MPI.Init(a); } }");
		byte[] whole;
		try (ZipFile jar = new ZipFile(Job.mpjJar())) {
			whole = jar.getInputStream(jar.getEntry("mpi/MPI.class")).readAllBytes();
		}
		Files.createDirectory(folder.resolve("mpi"));
		for (int length : new int[] {0, 9, 100, whole.length / 2, whole.length - 1}) {
			Files.write(folder.resolve("mpi/MPI.class"), Arrays.copyOf(whole, length));
			Result result = underSrun(Job.ofClass(Mode.PLAIN, 1, "Init")).bare().classPath(mpjOnly(programs)).run();
			assertTrue(result.stderr(0).contains("ClassFormatError"), length + " bytes: " + result);
		}
	}
}
