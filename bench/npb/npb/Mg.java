// SPDX-License-Identifier: MIT
package npb;

import java.util.Arrays;

/**
 * MG: V-cycles of a multigrid method for a Poisson problem on a periodic cube, charged +1 at ten points and -1 at ten.
 *
 * <p>The ranks form a box of blocks.  Each rank exchanges the faces of its block with its neighbours along one axis after
 * the other, after each stencil, on each level on which every rank has a point.  With more than 2 x 2 x 2 ranks there are
 * levels below that: they are gathered and made by every rank, which costs less than their messages would.
 */
final class Mg implements Kernel {
	private static final int[] SIDE = {32, 128, 256, 256, 512};
	private static final int[] ITERATIONS = {4, 4, 4, 20, 20};
	private static final double[] NORM = {0.5307707005734e-4, 0.6467329375339e-5, 0.2433365309069e-5,
		0.1800564401355e-5, 0.5706732285740e-6};
	private static final double TOLERANCE = 1e-8;
	private static final double[] OPERATOR = {-8.0 / 3, 0, 1.0 / 6, 1.0 / 12};
	private static final double[] SMOOTHER_SMALL = {-3.0 / 8, 1.0 / 32, -1.0 / 64, 0};
	private static final double[] SMOOTHER_LARGE = {-3.0 / 17, 1.0 / 33, -1.0 / 61, 0};
	private static final int AXES = 3;
	private static final int CHARGES = 10;
	private static final int TAG = 300;

	private final CommTimer comm;
	private final int side;
	private final int iterations;
	private final double expected;
	private final double[] smoother;

	private final int[] ranks = new int[AXES];
	private final int[] here = new int[AXES];
	private final int[] below = new int[AXES];
	private final int[] above = new int[AXES];

	private final int top; // level k has 2 << k points a side
	private final int lowestSplit; // below, each rank has the whole level
	private MgBlock[] block;
	private double[][] u;
	private double[][] r;
	private double[] v;
	private MgWhole whole; // of the lowest split level, if there are levels below
	private double[] down;
	private double[] up;
	private double[] fromBelow;
	private double[] fromAbove;
	private double norm;

	Mg(ProblemClass problem, CommTimer comm) throws UsageException {
		this.comm = comm;
		int k = problem.ordinal();
		side = SIDE[k];
		iterations = ITERATIONS[k];
		expected = NORM[k];
		smoother = problem.compareTo(ProblemClass.A) <= 0 ? SMOOTHER_SMALL : SMOOTHER_LARGE;
		top = Integer.numberOfTrailingZeros(side) - 1;

		int log2 = UsageException.log2OfRanks("MG", comm.size);
		int log2First = log2 / 3;
		int log2Second = (log2 - log2First) / 2;
		ranks[0] = 1 << log2First;
		ranks[1] = 1 << log2Second;
		ranks[2] = comm.size >> log2First + log2Second;
		int stride = 1;
		for (int axis = 0; axis < AXES; axis++) {
			here[axis] = comm.rank / stride % ranks[axis];
			int first = comm.rank - here[axis] * stride;
			below[axis] = first + (here[axis] + ranks[axis] - 1) % ranks[axis] * stride;
			above[axis] = first + (here[axis] + 1) % ranks[axis] * stride;
			stride *= ranks[axis];
		}
		int most = Math.max(ranks[0], Math.max(ranks[1], ranks[2])); // at least two points of the finest level each
		if (2 * most > side)
			throw new UsageException("MG of class " + problem + " runs on up to " + side / 2 * (side / 2) * (side / 2)
				+ " ranks, not on " + comm.size);
		lowestSplit = Math.max(0, Integer.numberOfTrailingZeros(most) - 1);
	}

	@Override
	public String name() {
		return "MG";
	}

	@Override
	public String size() {
		return side + "x" + side + "x" + side;
	}

	@Override
	public int iterations() {
		return iterations;
	}

	@Override
	public void prepare() {
		block = new MgBlock[top + 1];
		u = new double[top + 1][];
		r = new double[top + 1][];
		for (int k = 0; k <= top; k++) {
			int n = 2 << k;
			block[k] = k < lowestSplit ? new MgBlock(n, n, n) : new MgBlock(n / ranks[0], n / ranks[1], n / ranks[2]);
			u[k] = new double[block[k].length];
			r[k] = new double[block[k].length];
		}
		v = new double[block[top].length];
		if (lowestSplit > 0)
			whole = new MgWhole(comm, 2 << lowestSplit, ranks, here);
		int face = 0;
		for (int axis = 0; axis < AXES; axis++) {
			face = Math.max(face, block[top].face(axis));
			if (lowestSplit > 0)
				face = Math.max(face, block[lowestSplit - 1].face(axis));
		}
		down = new double[face];
		up = new double[face];
		fromBelow = new double[face];
		fromAbove = new double[face];

		charge();
		residual(top, v);
		cycle();
		residual(top, v);
		reset();
	}

	@Override
	public void reset() {
		Arrays.fill(u[top], 0);
	}

	@Override
	public void run() {
		residual(top, v);
		norm();
		for (int i = 0; i < iterations; i++) {
			cycle();
			residual(top, v);
		}
		norm = norm();
	}

	private double norm() {
		return Math.sqrt(comm.sum(block[top].squares(r[top])) / ((double) side * side * side));
	}

	private void cycle() {
		for (int k = top; k > 0; k--) {
			if (k == lowestSplit)
				whole.restrict(block[k], r[k], block[k - 1], r[k - 1]);
			else
				block[k].restrict(r[k], block[k - 1], r[k - 1]);
			faces(k - 1, r[k - 1]);
		}
		Arrays.fill(u[0], 0);
		smooth(0);
		for (int k = 1; k <= top; k++) {
			if (k < top)
				Arrays.fill(u[k], 0);
			if (k == lowestSplit)
				whole.interpolate(block[k - 1], u[k - 1], block[k], u[k]);
			else
				block[k].interpolate(block[k - 1], u[k - 1], u[k]);
			residual(k, k < top ? r[k] : v);
			smooth(k);
		}
	}

	private void residual(int k, double[] right) {
		block[k].residual(u[k], right, r[k], OPERATOR);
		faces(k, r[k]);
	}

	private void smooth(int k) {
		block[k].smooth(r[k], u[k], smoother);
		faces(k, u[k]);
	}

	/** Fills the layer around a grid from the neighbours, one axis after the other, so that edges come along. */
	private void faces(int k, double[] grid) {
		MgBlock b = block[k];
		for (int axis = 0; axis < AXES; axis++) {
			int last = b.extent(axis) - 1;
			if (ranks[axis] == 1 || k < lowestSplit) {
				b.wrap(grid, axis, down);
				continue;
			}
			b.get(grid, axis, 1, down);
			b.get(grid, axis, last - 1, up);
			comm.shift(down, up, fromBelow, fromAbove, b.face(axis), below[axis], above[axis], TAG + 2 * axis);
			b.put(grid, axis, 0, fromBelow);
			b.put(grid, axis, last, fromAbove);
		}
	}

	/** v: +1 at the ten largest of side^3 random numbers, -1 at the ten smallest, 0 elsewhere. */
	private void charge() {
		MgBlock b = block[top];
		double[] largest = new double[CHARGES];
		long[] largestAt = new long[CHARGES];
		double[] smallest = new double[CHARGES];
		long[] smallestAt = new long[CHARGES];
		Arrays.fill(smallest, -1);
		double[] row = new double[b.m1 - 2];
		for (int k = 0; k < b.m3 - 2; k++) {
			for (int j = 0; j < b.m2 - 2; j++) {
				long at = here[0] * (long) row.length
					+ side * (here[1] * (b.m2 - 2L) + j + side * (here[2] * (b.m3 - 2L) + k));
				NpbRandom.after(NpbRandom.SEED, at).fill(row, 0, row.length);
				for (int i = 0; i < row.length; i++) {
					insert(largest, largestAt, row[i], at + i);
					insert(smallest, smallestAt, -row[i], at + i);
				}
			}
		}
		Arrays.fill(v, 0);
		mark(largest, largestAt, 1);
		mark(smallest, smallestAt, -1);
		faces(top, v);
	}

	/** Keeps the largest values, in rising order, and where they are. */
	private static void insert(double[] values, long[] places, double value, long place) {
		if (value <= values[0])
			return;
		int i = 0;
		for (; i + 1 < values.length && values[i + 1] < value; i++) {
			values[i] = values[i + 1];
			places[i] = places[i + 1];
		}
		values[i] = value;
		places[i] = place;
	}

	/** Puts a charge at the places of the largest values of all ranks, as far as they are here. */
	private void mark(double[] values, long[] places, double charge) {
		double[] mine = new double[2 * CHARGES];
		double[] all = new double[2 * CHARGES * comm.size];
		for (int i = 0; i < CHARGES; i++) {
			mine[2 * i] = values[i];
			mine[2 * i + 1] = places[i]; // below 2^53
		}
		comm.allgather(mine, all, mine.length);
		double[] best = new double[CHARGES];
		long[] bestAt = new long[CHARGES];
		Arrays.fill(best, -1);
		for (int i = 0; i < all.length; i += 2)
			insert(best, bestAt, all[i], (long) all[i + 1]);
		MgBlock b = block[top];
		for (long at : bestAt) {
			long i = at % side - here[0] * (b.m1 - 2L);
			long j = at / side % side - here[1] * (b.m2 - 2L);
			long k = at / side / side - here[2] * (b.m3 - 2L);
			if (i >= 0 && i < b.m1 - 2 && j >= 0 && j < b.m2 - 2 && k >= 0 && k < b.m3 - 2)
				v[(int) (i + 1 + (j + 1) * b.m1 + (k + 1) * b.plane)] = charge;
		}
	}

	@Override
	public double megaOperations() {
		return 58e-6 * iterations * side * side * side;
	}

	@Override
	public boolean verify(Report report) {
		return report.near("L2 norm", norm, expected, TOLERANCE);
	}
}
