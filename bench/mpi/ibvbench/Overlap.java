// SPDX-License-Identifier: MIT
package ibvbench;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import mpi.Intracomm;
import mpi.MPI;
import mpi.Request;

/**
 * How much of the time of an Iallreduce is hidden behind a computation of about the same length that begins after it and ends before
 * Wait. Each sample times the operation and Wait, the computation, and both overlapped, one after the other; what is hidden is
 * (operation + computation - both) / operation. The computation calls Request.Test some times, or not at all: then the operation
 * goes on by the library's progress thread only. Package mpi of this project; {@code bench/mpi/overlap} starts it.
 */
public final class Overlap {
	private static final int WARM_UPS = 200;
	private static final long WARM_UP_NS = 1_000_000_000L;
	private static final long SAMPLE_NS = 100_000_000L;

	/** What one sample times. */
	private enum Part { OPERATION, COMPUTATION, BOTH }

	private final Intracomm world = MPI.COMM_WORLD;
	private final int rank = world.Rank();
	private final double[] in;
	private final double[] out;
	private final int tests;
	private final boolean computes;
	private long workNs;

	private Overlap(int bytes, int tests, boolean computes) {
		in = new double[bytes / Double.BYTES];
		out = new double[bytes / Double.BYTES];
		Arrays.fill(in, rank + 1);
		this.tests = tests;
		this.computes = computes;
	}

	/**
	 * Runs one rank.
	 *
	 * @param args those of the launcher, then: bytes, separated by commas; how often the computation calls Test, separated by commas;
	 *             samples; which ranks compute: all or 0
	 */
	public static void main(String[] args) {
		String[] own = MPI.Init(args);
		Work.calibrate();
		boolean first = MPI.COMM_WORLD.Rank() == 0;
		if (first) {
			System.out.printf(Locale.ROOT, "Iallreduce of double, SUM: %d ranks, %d processors; %s; medians of %s samples, us%n", MPI.COMM_WORLD.Size(),
					Runtime.getRuntime().availableProcessors(), own[3].equals("all") ? "all ranks compute" : "rank 0 computes", own[2]);
			System.out.printf("%9s %6s %10s %12s %10s %8s  %s%n", "bytes", "Tests", "operation", "computation", "both", "hidden", "of each sample");
		}
		for (int bytes : Options.numbers(own[0], ",")) {
			for (int tests : Options.numbers(own[1], ",")) {
				String line = new Overlap(bytes, tests, first || own[3].equals("all")).measure(Integer.parseInt(own[2]), bytes);
				if (first)
					System.out.println(line);
			}
		}
		MPI.Finalize();
	}

	/**
	 * The hidden share.
	 *
	 * @param operation   time of the operation alone
	 * @param computation time of the computation alone
	 * @param both        time of both overlapped
	 * @return 0: nothing is hidden; 1: all of it; below 0: they hinder each other
	 */
	static double hidden(double operation, double computation, double both) {
		return (operation + computation - both) / operation;
	}

	private static double median(List<Double> values) {
		double[] sorted = values.stream().mapToDouble(value -> value).sorted().toArray();
		return (sorted[(sorted.length - 1) / 2] + sorted[sorted.length / 2]) / 2;
	}

	private String measure(int samples, int bytes) {
		int turns = warmUp();
		List<List<Double>> times = List.of(new ArrayList<>(), new ArrayList<>(), new ArrayList<>());
		List<Double> shares = new ArrayList<>();
		StringBuilder each = new StringBuilder();
		for (int s = 0; s < samples; s++) {
			double operation = timed(Part.OPERATION, turns);
			workNs = (long) (operation * 1e3);
			double[] now = {operation, timed(Part.COMPUTATION, turns), timed(Part.BOTH, turns)};
			for (Part part : Part.values())
				times.get(part.ordinal()).add(now[part.ordinal()]);
			shares.add(hidden(now[0], now[1], now[2]));
			each.append(String.format(Locale.ROOT, " %.2f", shares.get(s)));
		}
		for (double value : out) {
			if (value != world.Size() * (world.Size() + 1) / 2.0)
				throw new IllegalStateException("a sum is " + value);
		}
		return String.format(Locale.ROOT, "%9d %6d %10.0f %12.0f %10.0f %7.0f%% %s", bytes, tests, median(times.get(0)), median(times.get(1)),
				median(times.get(2)), 100 * median(shares), each);
	}

	/** Until the JIT compiler is done with it; how often a sample repeats what it times, the same number at all ranks. */
	private int warmUp() {
		long start = System.nanoTime();
		double us = timed(Part.OPERATION, WARM_UPS / 10);
		workNs = (long) (us * 1e3);
		double[] go = {1};
		while (go[0] != 0) {
			timed(Part.BOTH, WARM_UPS / 10);
			us = timed(Part.OPERATION, WARM_UPS / 10);
			go[0] = System.nanoTime() - start < WARM_UP_NS ? 1 : 0;
			world.Bcast(go, 0, 1, MPI.DOUBLE, 0);
		}
		return (int) Math.max(5, Math.min(1000, SAMPLE_NS / 1e3 / us));
	}

	/** Microseconds of one, at the rank that took longest. */
	private double timed(Part part, int turns) {
		world.Barrier();
		long took = 0;
		for (int i = 0; i < turns; i++) {
			world.Barrier();
			long start = System.nanoTime();
			if (part == Part.COMPUTATION) {
				compute(null);
			} else {
				Request request = world.Iallreduce(in, 0, out, 0, in.length, MPI.DOUBLE, MPI.SUM);
				if (part == Part.BOTH)
					compute(request);
				request.Wait();
			}
			took += System.nanoTime() - start;
		}
		double[] us = {computes ? took / 1e3 / turns : 0};
		double[] longest = new double[1];
		world.Allreduce(us, 0, longest, 0, 1, MPI.DOUBLE, MPI.MAX);
		return longest[0];
	}

	/** In one more piece than there are calls of Test. */
	private void compute(Request request) {
		if (!computes)
			return;
		boolean done = request == null;
		for (int piece = 0; piece <= tests; piece++) {
			Work.compute(workNs / (tests + 1));
			if (!done && piece < tests)
				done = request.Test() != null;
		}
	}
}
