// SPDX-License-Identifier: MIT
package ibvbench;

import com.sun.management.OperatingSystemMXBean;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;

/** What a benchmark does beside messages: compute for a while, look at what it has used. */
final class Work {
	private static final int CALIBRATION_TURNS = 200_000;
	private static final int CALIBRATIONS = 50; // the first ones are interpreted
	private static double turnsPerNs;
	private static double sink;

	private Work() {}

	private static double turn(long turns, double start) {
		double x = start;
		for (long i = 0; i < turns; i++)
			x = x * 0.999999 + 1e-6; // each turn waits for the last
		return x;
	}

	/** Computes as long as that many nanoseconds of an undisturbed processor; calibrate() comes first. */
	static void compute(long ns) {
		if (ns > 0)
			sink = turn((long) (ns * turnsPerNs), sink);
	}

	static synchronized void calibrate() {
		long best = Long.MAX_VALUE;
		for (int i = 0; i < CALIBRATIONS; i++) {
			long start = System.nanoTime();
			sink = turn(CALIBRATION_TURNS, sink);
			best = Math.min(best, System.nanoTime() - start);
		}
		turnsPerNs = CALIBRATION_TURNS / (double) Math.max(1, best);
	}

	/** Processor time of the JVM. */
	static long processorNs() {
		return ((OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean()).getProcessCpuTime();
	}

	/** Proportional set size of the JVM in KB, -1 if the kernel does not report it. */
	static long memoryKb() {
		try {
			for (String line : Files.readAllLines(Path.of("/proc/self/smaps_rollup"))) {
				if (line.startsWith("Pss:"))
					return Long.parseLong(line.replaceAll("[^0-9]", ""));
			}
		} catch (IOException e) {
			return -1;
		}
		return -1;
	}
}
