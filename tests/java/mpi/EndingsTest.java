// SPDX-License-Identifier: MIT
package mpitest;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import harness.EveryMode;
import harness.Job;
import harness.Mode;
import harness.Result;
import harness.Running;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Jobs that do not end with MPI.Finalize: nobody hangs, everybody learns which rank is gone, nothing stays behind.
 * How long the others took is printed and held against a bound that a loaded machine keeps too.
 */
class EndingsTest {
	private static final int RANKS = 4;
	private static final int BOUND_MS = 15_000;
	private static final int SIGKILLED = 128 + 9;

	@EveryMode
	void aProgramThatForgetsFinalizeEnds(Mode mode) {
		Job.of(mode, 2, Endings.class, "forget").seconds(60).run().assertSuccess();
	}

	@EveryMode
	void anExceptionInARankEndsTheOthers(Mode mode) {
		Result result = Job.of(mode, 3, Endings.class, "throw").seconds(60).run().assertClean();
		assertEquals(1, result.exitCode(1), "status of the rank that threw\n" + result);
		assertTrue(result.stderr(1).contains("thrown on purpose by rank 1"), result.toString());
		othersNameRankOne(result);
	}

	@EveryMode
	void systemExitInARankEndsTheOthers(Mode mode) {
		Result result = Job.of(mode, 3, Endings.class, "exit").seconds(60).run().assertClean();
		assertEquals(Endings.EXIT, result.exitCode(1), "status of the rank that called System.exit\n" + result);
		othersNameRankOne(result);
	}

	private static void othersNameRankOne(Result result) {
		for (int rank : new int[] {0, 2}) {
			assertEquals(Endings.SURVIVOR, result.exitCode(rank), "status of rank " + rank + "\n" + result);
			assertTrue(
					result.stdout(rank).matches("(?s).*rank " + rank + ": .*rank 1\\b.*"), "rank " + rank + " does not report that rank 1 is gone\n" + result);
		}
	}

	/** Which states the three survivors are in, so that each state occurs, and which rank is killed. */
	static List<Arguments> kills() {
		List<Arguments> kills = new ArrayList<>();
		String[] s = {"recv-from-dead", "recv-from-other", "barrier", "waitany", "any-source", "probe", "ssend-to-dead", "large-send-to-dead"};
		int victim = 0;
		for (int i = 0; i < s.length; i += RANKS - 1) {
			kills.add(Arguments.of(Mode.PLAIN, victim++ % RANKS, List.of(s[i % s.length], s[(i + 1) % s.length], s[(i + 2) % s.length])));
		}
		for (int i = 0; i < 2; i++) {
			kills.add(Arguments.of(Mode.PLAIN, victim++ % RANKS, List.of("traffic")));
		}
		for (Mode mode : Mode.all()) {
			if (mode != Mode.PLAIN) {
				kills.add(Arguments.of(mode, 1, List.of("recv-from-dead", "barrier", "waitany")));
				kills.add(Arguments.of(mode, 2, List.of("traffic")));
			}
		}
		return kills;
	}

	@ParameterizedTest(name = "{0}, kill -9 of rank {1}, others in {2}")
	@MethodSource("kills")
	void killed(Mode mode, int victim, List<String> states) throws InterruptedException {
		List<String> args = new ArrayList<>(List.of(Integer.toString(victim)));
		args.addAll(states);
		Running job = Job.of(mode, RANKS, Victims.class, args.toArray(new String[0])).seconds(90).start();
		for (int rank = 0; rank < RANKS; rank++) {
			job.awaitText(rank, "rank " + rank + " is in ");
		}
		int delay = new Random().nextInt(400);
		Thread.sleep(delay);
		long killed = System.nanoTime();
		job.process(victim).destroyForcibly();
		Result result = job.await().assertClean();
		assertEquals(SIGKILLED, result.exitCode(victim), result.toString());
		long slowest = 0;
		for (int rank = 0; rank < RANKS; rank++) {
			if (rank != victim) {
				assertEquals(Victims.SURVIVOR, result.exitCode(rank), "status of rank " + rank + "\n" + result);
				assertTrue(result.stdout(rank).matches("(?s).*rank " + rank + " dies in .*rank " + victim + "\\b.*"),
						"rank " + rank + " does not report that rank " + victim + " is gone\n" + result);
				slowest = Math.max(slowest, (result.ranks.get(rank).endedNanos - killed) / 1_000_000);
			}
		}
		System.out.printf("kill -9 of rank %d after %d ms, others in %s, %s: the last other ended %d ms later%n", victim, delay, states, mode, slowest);
		assertTrue(slowest < BOUND_MS, "a survivor took " + slowest + " ms to end\n" + result);
	}
}
