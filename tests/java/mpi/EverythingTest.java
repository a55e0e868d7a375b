// SPDX-License-Identifier: MIT
package mpitest;

import harness.Job;
import harness.Mode;
import harness.Result;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/** All MPI-level sections at 1, 2, 4 and 8 ranks, by one thread per rank and by four at once, in every mode. */
class EverythingTest {
	/** Seconds for one section before its rank prints all stacks and gives up. */
	private static final int SECTION_LIMIT = 100;
	private static final int JOB_LIMIT = 400;

	private static boolean quick() {
		return System.getenv("IBVDEV_TEST_QUICK") != null;
	}

	static List<Arguments> jobs() {
		List<Arguments> jobs = new ArrayList<>();
		for (Mode mode : Mode.all()) {
			for (int np : quick() ? new int[] {1, 4} : new int[] {1, 2, 4, 8}) {
				jobs.add(Arguments.of(mode, np));
			}
		}
		return jobs;
	}

	@ParameterizedTest(name = "{0}, {1} ranks")
	@MethodSource("jobs")
	void everySection(Mode mode, int np) {
		long start = System.nanoTime();
		// The optimising compilers of eight JVMs would take most of the time of two cores: those get the quick one.
		Result result = Job.of(mode, np, Everything.class, "limit=" + SECTION_LIMIT)
								.option("-Xmx512m")
								.option(np > 4 ? "-XX:TieredStopAtLevel=1" : "-XX:+TieredCompilation")
								.seconds(JOB_LIMIT)
								.run()
								.assertSuccess();
		for (int rank = 0; rank < np; rank++) {
			if (!result.stdout(rank).contains("rank " + rank + ": everything passed")) {
				throw new AssertionError("rank " + rank + " ended with 0 but not at the end of its program\n" + result);
			}
		}
		System.out.printf("everything, %s, %d ranks: %.1f s%n", mode, np, (System.nanoTime() - start) / 1e9);
	}

	/** The other paths through the device: nearly everything by rendezvous, by eager, small credit windows and rings, waiting asleep. */
	static List<Arguments> settings() {
		return List.of(Arguments.of(0, List.of("-Dibvdev.psl=0")),
				Arguments.of(2048, List.of("-Dibvdev.psl=2k", "-Dibvdev.eager_window=64k", "-Dibvdev.spin_us=0", "-Dibvdev.yield_us=0")),
				Arguments.of(1 << 20,
						List.of("-Dibvdev.psl=1m", "-Dibvdev.eager_window=8m", "-Dibvdev.shm_slots=16", "-Dibvdev.shm_ring=16k", "-Dibvdev.shm_chunk=1k")),
				Arguments.of(131072, List.of("-Dibvdev.progress_thread=1", "-Dibvdev.cma=never")));
	}

	@ParameterizedTest(name = "{1}")
	@MethodSource("settings")
	void everySectionWithOtherSettings(int psl, List<String> options) {
		long start = System.nanoTime();
		Job job = Job.of(Mode.PLAIN, 3, Everything.class, "limit=" + SECTION_LIMIT, "threads=3", "psl=" + psl);
		job.option("-Xmx512m").seconds(JOB_LIMIT);
		options.forEach(job::option);
		job.run().assertSuccess();
		System.out.printf("everything, %s, 3 ranks: %.1f s%n", options, (System.nanoTime() - start) / 1e9);
	}

	static List<Arguments> rounds() {
		List<Arguments> jobs = new ArrayList<>();
		for (Mode mode : Mode.all()) {
			jobs.add(Arguments.of(mode, 2));
			jobs.add(Arguments.of(mode, 4));
		}
		return jobs;
	}

	@ParameterizedTest(name = "{0}, {1} ranks")
	@MethodSource("rounds")
	void initAndFinalizeAgain(Mode mode, int np) {
		int rounds = quick() ? 20 : 130;
		Result result = Job.of(mode, np, Rounds.class, Integer.toString(rounds)).seconds(200).run().assertSuccess();
		for (int rank = 0; rank < np; rank++) {
			if (!result.stdout(rank).contains(rounds + " rounds passed")) {
				throw new AssertionError("rank " + rank + " ended too early\n" + result);
			}
		}
	}
}
