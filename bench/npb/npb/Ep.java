// SPDX-License-Identifier: MIT
package npb;

import java.util.Arrays;

/**
 * EP: pairs of normal deviates by the polar method, counted in ten square annuli.  The only communication is the sum
 * of the results.
 *
 * <p>The pairs come in batches of 2^16, each from its own place in the one sequence of random numbers; batches are
 * dealt to the ranks in blocks, and any number of ranks will do.
 */
final class Ep implements Kernel {
	private static final int[] LOG2_PAIRS = {24, 25, 28, 30, 32};
	private static final double[] SX = {-3.247834652034740e3, -2.863319731645753e3, -4.295875165629892e3,
		4.033815542441498e4, 4.764367927995374e4};
	private static final double[] SY = {-6.958407078382297e3, -6.320053679109499e3, -1.580732573678431e4,
		-2.660669192809235e4, -8.084072988043731e4};
	private static final double TOLERANCE = 1e-8;
	private static final long SEED = 271828183L;
	private static final int LOG2_BATCH = 16;
	private static final int BATCH = 1 << LOG2_BATCH;
	private static final int ANNULI = 10;

	private final CommTimer comm;
	private final int log2Pairs;
	private final int batches;
	private final double expectedX;
	private final double expectedY;

	private final double[] numbers = new double[2 * BATCH];
	/** The counts of the annuli, then the two sums. */
	private final double[] mine = new double[ANNULI + 2];
	private final double[] all = new double[ANNULI + 2];

	Ep(ProblemClass problem, CommTimer comm) throws UsageException {
		this.comm = comm;
		int k = problem.ordinal();
		log2Pairs = LOG2_PAIRS[k];
		batches = 1 << log2Pairs - LOG2_BATCH;
		expectedX = SX[k];
		expectedY = SY[k];
		if (comm.size > batches)
			throw new UsageException("EP of class " + problem + " runs on 1 to " + batches + " ranks, not on " + comm.size);
	}

	@Override
	public String name() {
		return "EP";
	}

	@Override
	public String size() {
		return Long.toString(1L << log2Pairs + 1);
	}

	@Override
	public int iterations() {
		return 0;
	}

	@Override
	public String operation() {
		return "random numbers";
	}

	@Override
	public void prepare() {
		batch(0);
		reset();
	}

	@Override
	public void reset() {
		Arrays.fill(mine, 0);
	}

	@Override
	public void run() {
		int first = (int) ((long) batches * comm.rank / comm.size);
		int end = (int) ((long) batches * (comm.rank + 1) / comm.size);
		for (int k = first; k < end; k++)
			batch(k);
		comm.sum(mine, all, mine.length);
	}

	private void batch(int k) {
		double[] u = numbers;
		NpbRandom.after(SEED, 2L * BATCH * k).fill(u, 0, u.length);
		double sx = 0;
		double sy = 0;
		for (int i = 0; i < u.length; i += 2) {
			double x = 2 * u[i] - 1;
			double y = 2 * u[i + 1] - 1;
			double t = x * x + y * y;
			if (t > 1)
				continue;
			double factor = Math.sqrt(-2 * Math.log(t) / t);
			x *= factor;
			y *= factor;
			mine[(int) Math.max(Math.abs(x), Math.abs(y))]++;
			sx += x;
			sy += y;
		}
		mine[ANNULI] += sx;
		mine[ANNULI + 1] += sy;
	}

	@Override
	public double megaOperations() {
		return 1e-6 * (1L << log2Pairs + 1);
	}

	@Override
	public boolean verify(Report report) {
		double count = 0;
		for (int l = 0; l < ANNULI; l++) {
			report.line(" annulus %d %14.0f", l, all[l]);
			count += all[l];
		}
		report.line(" deviates  %14.0f", count);
		return report.near("sum of x", all[ANNULI], expectedX, TOLERANCE)
			& report.near("sum of y", all[ANNULI + 1], expectedY, TOLERANCE);
	}
}
