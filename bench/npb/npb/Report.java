// SPDX-License-Identifier: MIT
package npb;

import java.io.PrintStream;
import java.util.Locale;

/** What NPB prints, on rank 0; the other ranks are silent. */
final class Report {
	private final PrintStream out;

	Report(boolean talks) {
		out = talks ? System.out : null;
	}

	void line(String format, Object... values) {
		if (out != null)
			out.println(String.format(Locale.ROOT, format, values));
	}

	void head(Kernel kernel, ProblemClass problem, int ranks) {
		line("%n NAS Parallel Benchmarks in Java (after NPB 3.3) -- %s Benchmark%n", kernel.name());
		line(" Class %s, size %s, %d iterations, %d processes%n", problem, kernel.size(), kernel.iterations(), ranks);
	}

	/** Says how far a value is from the official one; true if that is near enough. */
	boolean near(String what, double value, double expected, double tolerance) {
		double error = Math.abs((value - expected) / expected);
		boolean good = error <= tolerance; // false for NaN
		line(" %-12s %22.14e  expected %22.14e  error %8.1e %s", what, value, expected, error, good ? "" : "TOO FAR");
		return good;
	}

	/**
	 * The table at the end.
	 *
	 * @param warmUp seconds for which untimed runs were made before
	 * @param seconds of the slowest rank
	 * @param meanShare part of the time spent in communication, mean of the ranks, and {@code maxShare} the largest
	 */
	void end(Kernel kernel, ProblemClass problem, int ranks, double warmUp, double seconds, double meanShare,
		double maxShare, boolean verified) {
		double rate = kernel.megaOperations() / seconds;
		line("%n%n %s Benchmark Completed.", kernel.name());
		row("Class", problem.toString());
		row("Size", kernel.size());
		row("Iterations", Integer.toString(kernel.iterations()));
		row("Time in seconds", number(seconds, 4));
		row("Warm-up in seconds", number(warmUp, 1));
		row("Total processes", Integer.toString(ranks));
		row("Mop/s total", number(rate, 2));
		row("Mop/s/process", number(rate / ranks, 2));
		row("Communication, mean %", number(100 * meanShare, 1));
		row("Communication, max %", number(100 * maxShare, 1));
		row("Operation type", kernel.operation());
		row("Verification", verified ? "SUCCESSFUL" : "UNSUCCESSFUL");
		line("%n VERIFICATION %s", verified ? "SUCCESSFUL" : "UNSUCCESSFUL");
	}

	private void row(String name, String value) {
		line(" %-22s = %24s", name, value);
	}

	private static String number(double value, int digits) {
		return String.format(Locale.ROOT, "%." + digits + "f", value);
	}
}
