// SPDX-License-Identifier: MIT
package mpitest;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import harness.Job;
import harness.Mode;
import harness.Result;
import java.io.File;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/** The programs of this folder, from the same class files, on our package mpi, and what only that one does. */
class OursTest {
	private static String classPath() {
		return String.join(File.pathSeparator, System.getProperty("ibvdev.test.mpi"), Job.ibvdevJar(), System.getProperty("java.class.path"), Job.xxdevJar(),
				Job.mpjJar(), Job.log4jJar());
	}

	private static Job job(Mode mode, int np, Class<?> main, String... args) {
		return Job.of(mode, np, main, args)
				.classPath(classPath())
				.option("-Xmx512m")
				.option(np > 2 ? "-XX:TieredStopAtLevel=1" : "-XX:+TieredCompilation")
				.seconds(200);
	}

	private static void everyRank(Result result, int np, String text) {
		for (int rank = 0; rank < np; rank++) {
			assertTrue(result.stdout(rank).contains("rank " + rank + ": " + text), () -> "ended early\n" + result);
		}
	}

	static List<Arguments> everything() {
		List<Arguments> jobs = new ArrayList<>();
		for (int np : new int[] {1, 2, 4, 5}) {
			jobs.add(Arguments.of(Mode.PLAIN, np));
		}
		for (Mode mode : Mode.all()) {
			jobs.add(Arguments.of(mode, 3));
		}
		return jobs;
	}

	@ParameterizedTest(name = "{0}, {1} ranks")
	@MethodSource("everything")
	void everySection(Mode mode, int np) {
		everyRank(job(mode, np, Everything.class, "limit=100", "threads=" + (np == 2 ? 3 : 0)).run().assertSuccess(), np, "everything passed");
	}

	@Test
	void reductionsTooLongForTheLibrary() {
		everyRank(job(Mode.PLAIN, 2, LongReductions.class).run().assertSuccess(), 2, "long reductions are as short ones");
	}

	static List<Arguments> standard() {
		List<Arguments> jobs = new ArrayList<>();
		for (int np : new int[] {1, 2, 4, 5, 8}) {
			jobs.add(Arguments.of(Mode.PLAIN, np));
		}
		for (Mode mode : Mode.all()) {
			jobs.add(Arguments.of(mode, 3));
		}
		return jobs;
	}

	@ParameterizedTest(name = "{0}, {1} ranks")
	@MethodSource("standard")
	void programsOfOursInOneProcessEach(Mode mode, int np) {
		String seed = Long.toString(System.nanoTime());
		Result result = job(mode, np, Programs.class, seed, "300").run().assertSuccess();
		everyRank(result, np, "as the standard has it");
		everyRank(result, np, "matched messages are received once");
		everyRank(result, np, "all that was started is complete");
		everyRank(result, np, "bad input is refused");
		everyRank(result, np, "300 operations of seed " + seed + " passed");
	}

	@Test
	void aCollectiveOperationGoesOnWhileItsProcessComputes(@TempDir Path folder) {
		everyRank(job(Mode.PLAIN, 3, Started.class, "overlap", folder.toString()).run().assertSuccess(), 3, "all that was started is complete");
	}

	@Test
	void initAndFinalizeAgain() {
		everyRank(job(Mode.PLAIN, 2, Rounds.class, "30").run().assertSuccess(), 2, "30 rounds passed");
	}

	@Test
	void aProgramThatNobodyStartsIsAloneAndNeedsNoMpjExpress() {
		Result result = Job.of(Mode.PLAIN, 1, Alone.class, "a", "b")
								.bare()
								.classPath(String.join(File.pathSeparator, System.getProperty("ibvdev.test.mpi"), System.getProperty("ibvdev.test.programs")))
								.run()
								.assertSuccess();
		assertEquals("0 of 1: a b", result.stdout(0).trim());
	}

	@Test
	void abortEndsTheProcessWithItsStatus() {
		Result result = job(Mode.PLAIN, 1, Alone.class, "abort").run();
		assertEquals(7, result.exitCode(0), result.toString());
		assertTrue(result.stderr(0).contains("Abort(7)"), result.toString());
	}

	@Test
	void aFatalErrorEndsTheProcess() {
		Result result = job(Mode.PLAIN, 1, Alone.class, "fatal").run();
		assertEquals(1, result.exitCode(0), result.toString());
		assertTrue(result.stderr(0).contains("the count is -1"), result.toString());
	}
}
