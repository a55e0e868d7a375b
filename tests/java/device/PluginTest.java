// SPDX-License-Identifier: MIT
package device;

import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import harness.EveryMode;
import harness.Job;
import harness.Mode;
import harness.Result;
import java.io.File;
import org.junit.jupiter.api.Test;

/** How the device gets into an unmodified MPJ Express. */
final class PluginTest {
	private static final String OURS = "carried by xdev.ibvdev.IBVDevice";

	/** mpj.jar stands first; ibvdev.jar is not on the class path at all. */
	private static String mpjFirst() {
		return String.join(File.pathSeparator, Job.mpjJar(), Job.log4jJar(), System.getProperty("java.class.path"));
	}

	private static String smpdevJar() {
		return "/usr/share/mpj/lib/smpdev.jar";
	}

	private static void carried(Result result, String by) {
		result.assertSuccess();
		for (Result.Rank rank : result.ranks) {
			assertTrue(rank.stdout.contains(by), result.toString());
			assertTrue(rank.stdout.contains("device after finalize: null"), result.toString());
		}
	}

	@EveryMode
	void aheadOnTheClassPath(Mode mode) {
		carried(Job.run(mode, 2, MpiProgram.class), OURS);
	}

	@EveryMode
	void fourRanks(Mode mode) {
		carried(Job.run(mode, 4, MpiProgram.class), OURS);
	}

	@EveryMode
	void agent(Mode mode) {
		carried(Job.of(mode, 2, MpiProgram.class).classPath(mpjFirst()).option("-javaagent:" + Job.ibvdevJar()).run(), OURS);
	}

	@Test
	void withoutAgentOrOrderItIsUnknown() {
		Result result = Job.of(Mode.PLAIN, 1, MpiProgram.class).classPath(mpjFirst()).run().assertClean();
		assertTrue(result.stderr(0).contains("No matching device found"), result.toString());
	}

	/** What mpjrun does: a name that it knows, redirected, and the ";" string with a starter. */
	@EveryMode
	void redirectedNiodevWithStarter(Mode mode) throws Exception {
		try (Starter starter = new Starter(2)) {
			carried(Job.of(mode, 2, MpiProgram.class)
							.device("niodev")
							.conf(starter.conf())
							.option("-Dmpj.device.niodev=xdev.ibvdev.IBVDevice")
							.classPath(mpjFirst())
							.option("-javaagent:" + Job.ibvdevJar())
							.run(),
					OURS);
		}
	}

	@Test
	void niodevStillWorks() throws Exception {
		try (Starter starter = new Starter(2)) {
			carried(Job.of(Mode.PLAIN, 2, MpiProgram.class).device("niodev").conf(starter.conf()).run(), "carried by xdev.niodev.NIODevice");
		}
	}

	@Test
	void mxdevIsTheClassItAlwaysWas() {
		/* Its own native library is nowhere: the error must come from MXDevice. */
		Result result = Job.of(Mode.PLAIN, 1, MpiProgram.class).device("mxdev").run().assertClean();
		assertNotEquals(0, result.exitCode(0), result.toString());
		assertTrue(result.stderr(0).contains("xdev.mxdev.MXDevice"), result.toString());
	}

	@Test
	void nativeDoesNotComeHere() {
		Result result = Job.of(Mode.PLAIN, 1, MpiProgram.class).device("native").run().assertClean();
		assertTrue(result.stderr(0).contains("natmpjdev") && !result.stderr(0).contains("DeviceNames"), result.toString());
	}

	@Test
	void names() {
		Result result =
				Job.of(Mode.PLAIN, 1, MpiProgram.class, "names").classPath(Job.defaultClassPath() + File.pathSeparator + smpdevJar()).run().assertSuccess();
		for (String line : new String[] {"ibvdev is xdev.ibvdev.IBVDevice", "niodev is xdev.niodev.NIODevice", "smpdev is xdev.smpdev.SMPDevice",
					 "hybdev is xdev.hybdev.HYBDevice"})
			assertTrue(result.stdout(0).contains(line), result.toString());
	}

	@Test
	void missingJarIsNamed() {
		Result result = Job.of(Mode.PLAIN, 1, MpiProgram.class).device("smpdev").run().assertClean();
		assertTrue(result.stderr(0).contains("add smpdev.jar to the class path"), result.toString());
	}

	@Test
	void unknownNameGetsTheNearMiss() {
		Result result = Job.of(Mode.PLAIN, 1, MpiProgram.class).device("ibvdve").run().assertClean();
		assertNotEquals(0, result.exitCode(0));
		for (String word : new String[] {"\"ibvdve\"", "did you mean \"ibvdev\"", "niodev", "-Dmpj.device.ibvdve="})
			assertTrue(result.stderr(0).contains(word), result.toString());
	}

	@Test
	void classThatIsNoDevice() {
		Result result = Job.of(Mode.PLAIN, 1, MpiProgram.class).device("strange").option("-Dmpj.device.strange=java.lang.String").run().assertClean();
		assertTrue(result.stderr(0).contains("java.lang.String, which cannot be used"), result.toString());
	}

	@EveryMode
	void presetDevice(Mode mode) {
		carried(Job.of(mode, 2, MpiProgram.class, "preset").device("whatever").run(), OURS);
	}

	@Test
	void finalizeTwice() {
		Result result = Job.of(Mode.PLAIN, 1, MpiProgram.class, "twice").run().assertClean();
		assertTrue(result.stderr(0).contains("no device is open: call MPI.Init first"), result.toString());
	}
}
