// SPDX-License-Identifier: MIT
package xxdevtest;

import harness.Job;
import harness.Mode;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/** Every collector of every JDK. */
final class CollectorTest {
	private static final String[] COLLECTORS = {"Serial", "Parallel", "G1", "Shenandoah", "Z"};

	static List<Arguments> collectors() throws Exception {
		List<Arguments> found = new ArrayList<>();
		for (Mode mode : Mode.all())
			for (String collector : COLLECTORS)
				if (mode != Mode.CHECK_JNI && exists(mode, option(collector)))
					found.add(Arguments.of(mode, collector));
		return found;
	}

	private static String option(String collector) {
		return "-XX:+Use" + collector + "GC";
	}

	private static boolean exists(Mode mode, String option) throws IOException, InterruptedException {
		return new ProcessBuilder(mode.java(), option, "-version").redirectErrorStream(true).redirectOutput(ProcessBuilder.Redirect.DISCARD).start().waitFor()
				== 0;
	}

	private static Job job(Mode mode, String collector, String what) {
		return XxdevTest.job(mode, 2, Collected.class, what).collector(option(collector)).heap("1500m").seconds(300);
	}

	private static void run(Mode mode, String collector, String what) {
		XxdevTest.finishes(job(mode, collector, what));
	}

	@ParameterizedTest
	@MethodSource("collectors")
	void contentsSurvive(Mode mode, String collector) {
		run(mode, collector, "torture");
	}

	@ParameterizedTest
	@MethodSource("collectors")
	void nobodyWaitsForACollectionThatWaits(Mode mode, String collector) {
		run(mode, collector, "deadlock");
	}

	@ParameterizedTest
	@MethodSource("collectors")
	void pinsDoNotWaitForThePeer(Mode mode, String collector) {
		run(mode, collector, "bound");
	}

	/** Long messages go from array to array with one copy, both pinned at once, where both sides wait for them. */
	@ParameterizedTest
	@MethodSource("collectors")
	void fromArrayToArray(Mode mode, String collector) {
		for (String what : new String[] {"torture", "deadlock", "bound", "stopped"})
			XxdevTest.finishes(job(mode, collector, what).option("-Dibvdev.cma=always").option("-Dxxdevtest.rounds=10"));
	}
}
