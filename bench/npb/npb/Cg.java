// SPDX-License-Identifier: MIT
package npb;

import java.util.Arrays;

/**
 * CG: the smallest eigenvalue of a sparse matrix by inverse iteration, each step 25 iterations of conjugate gradients.
 *
 * <p>The ranks form a grid of R rows and C columns, C = R or 2R, each with a block of the matrix.  Vectors lie in the
 * layout of the columns, the same on all ranks of a grid column.  A product with the matrix is added up along the grid
 * row and then goes to the transposed rank, where it is in the layout of the columns again.
 */
final class Cg implements Kernel {
	private static final int[] SIZE = {1400, 7000, 14000, 75000, 150000};
	private static final int[] NONZER = {7, 8, 11, 13, 15};
	private static final int[] ITERATIONS = {15, 15, 15, 75, 75};
	private static final double[] SHIFT = {10, 12, 20, 60, 110};
	private static final double[] ZETA = {8.5971775078648, 10.362595087124, 17.130235054029, 22.712745482631,
		28.973605592845};
	private static final double TOLERANCE = 1e-10;
	private static final int INNER = 25;
	private static final int TAG = 100;

	private final CommTimer comm;
	private final int n;
	private final int nonzer;
	private final int iterations;
	private final double shift;
	private final double expected;

	private final int gridColumns;
	private final int gridRow;
	private final int gridColumn;
	private final int rowStart;
	private final int rows;
	private final int columnStart;
	private final int columns;
	private final int transposed;
	private final boolean halves; // C = 2R: the columns of a rank are half of a block of rows

	private CgMatrix matrix;
	private double[] x;
	private double[] z;
	private double[] p;
	private double[] q;
	private double[] r;
	private double[] w; // in the layout of rows
	private double[] other;
	private final double[] pair = new double[2];
	private final double[] otherPair = new double[2];
	private double residual;
	private double zeta;

	Cg(ProblemClass problem, CommTimer comm) throws UsageException {
		this.comm = comm;
		int k = problem.ordinal();
		n = SIZE[k];
		nonzer = NONZER[k];
		iterations = ITERATIONS[k];
		shift = SHIFT[k];
		expected = ZETA[k];

		int log2 = UsageException.log2OfRanks("CG", comm.size);
		int gridRows = 1 << log2 / 2;
		gridColumns = comm.size / gridRows;
		halves = gridColumns != gridRows;
		gridRow = comm.rank / gridColumns;
		gridColumn = comm.rank % gridColumns;
		rowStart = border(gridRow, gridRows);
		rows = border(gridRow + 1, gridRows) - rowStart;
		if (halves) {
			int from = border(gridColumn / 2, gridRows);
			int to = border(gridColumn / 2 + 1, gridRows);
			int middle = (from + to) / 2;
			columnStart = gridColumn % 2 == 0 ? from : middle;
			columns = (gridColumn % 2 == 0 ? middle : to) - columnStart;
			transposed = gridColumn / 2 * gridColumns + 2 * gridRow + gridColumn % 2;
		} else {
			columnStart = border(gridColumn, gridRows);
			columns = border(gridColumn + 1, gridRows) - columnStart;
			transposed = gridColumn * gridColumns + gridRow;
		}
	}

	private int border(int block, int blocks) {
		return (int) ((long) n * block / blocks);
	}

	@Override
	public String name() {
		return "CG";
	}

	@Override
	public String size() {
		return Integer.toString(n);
	}

	@Override
	public int iterations() {
		return iterations;
	}

	@Override
	public void prepare() {
		matrix = new CgMatrix(n, nonzer, shift, rowStart, rows, columnStart, columns);
		x = new double[columns];
		z = new double[columns];
		p = new double[columns];
		q = new double[columns];
		r = new double[columns];
		w = new double[rows];
		other = new double[rows];
		reset();
		iterate();
		reset();
	}

	@Override
	public void reset() {
		Arrays.fill(x, 1);
	}

	@Override
	public void run() {
		for (int i = 0; i < iterations; i++)
			iterate();
	}

	private void iterate() {
		conjugateGradient();
		pair[0] = dot(x, z);
		pair[1] = dot(z, z);
		sumAlongRow(pair, otherPair, 0, 2, 1);
		zeta = shift + 1 / pair[0];
		double scale = 1 / Math.sqrt(pair[1]);
		for (int i = 0; i < columns; i++)
			x[i] = scale * z[i];
	}

	/** z = A^-1 x, nearly. */
	private void conjugateGradient() {
		Arrays.fill(z, 0);
		System.arraycopy(x, 0, r, 0, columns);
		System.arraycopy(x, 0, p, 0, columns);
		double rho = sum(dot(r, r));
		for (int i = 0; i < INNER; i++) {
			multiply(p, q);
			double alpha = rho / sum(dot(p, q));
			step(alpha);
			double old = rho;
			rho = sum(dot(r, r));
			direction(rho / old);
		}
		multiply(z, q);
		double distance = 0;
		for (int i = 0; i < columns; i++)
			distance += (x[i] - q[i]) * (x[i] - q[i]);
		residual = Math.sqrt(sum(distance));
	}

	private void step(double alpha) {
		double[] pp = p;
		double[] qq = q;
		double[] rr = r;
		double[] zz = z;
		for (int i = 0; i < pp.length; i++)
			zz[i] += alpha * pp[i];
		for (int i = 0; i < qq.length; i++)
			rr[i] -= alpha * qq[i];
	}

	private void direction(double beta) {
		double[] pp = p;
		double[] rr = r;
		for (int i = 0; i < pp.length; i++)
			pp[i] = rr[i] + beta * pp[i];
	}

	/** Four sums: additions in one chain would wait for each other, and the JIT may not reorder them. */
	private static double dot(double[] a, double[] b) {
		double s0 = 0;
		double s1 = 0;
		double s2 = 0;
		double s3 = 0;
		int i = 0;
		for (; i < a.length - 3; i += 4) {
			s0 += a[i] * b[i];
			s1 += a[i + 1] * b[i + 1];
			s2 += a[i + 2] * b[i + 2];
			s3 += a[i + 3] * b[i + 3];
		}
		for (; i < a.length; i++)
			s0 += a[i] * b[i];
		return s0 + s1 + (s2 + s3);
	}

	/** The sum over the grid row, where each rank has other columns. */
	private double sum(double value) {
		pair[0] = value;
		sumAlongRow(pair, otherPair, 0, 1, 1);
		return pair[0];
	}

	/** Adds up by recursive doubling among the ranks of the grid row whose columns agree modulo {@code stride}. */
	private void sumAlongRow(double[] values, double[] scratch, int offset, int count, int stride) {
		for (int bit = stride; bit < gridColumns; bit *= 2) {
			int partner = gridRow * gridColumns + (gridColumn ^ bit);
			comm.exchange(values, offset, count, scratch, offset, count, partner, TAG);
			add(values, scratch, offset, offset + count);
		}
	}

	private static void add(double[] values, double[] more, int from, int to) {
		for (int i = from; i < to; i++)
			values[i] += more[i];
	}

	/** result = A vector, both in the layout of columns. */
	private void multiply(double[] vector, double[] result) {
		matrix.multiply(vector, w);
		int from = 0;
		int count = rows;
		int stride = 1;
		if (halves) {
			// Only one half of the rows has to be here in the end, the other at the neighbour.
			int middle = (rowStart + rowStart + rows) / 2 - rowStart;
			boolean low = gridColumn % 2 == 0;
			from = low ? 0 : middle;
			count = low ? middle : rows - middle;
			comm.exchange(w, low ? middle : 0, rows - count, other, from, count, comm.rank ^ 1, TAG);
			add(w, other, from, from + count);
			stride = 2;
		}
		sumAlongRow(w, other, from, count, stride);
		if (transposed == comm.rank)
			System.arraycopy(w, from, result, 0, columns);
		else
			comm.exchange(w, from, count, result, 0, columns, transposed, TAG);
	}

	@Override
	public double megaOperations() {
		double each = nonzer * (nonzer + 1.0);
		return 2e-6 * iterations * n * (3 + each + INNER * (5 + each) + 3);
	}

	@Override
	public boolean verify(Report report) {
		report.line(" ||r|| of the last solution: %.4e", residual);
		return report.near("zeta", zeta, expected, TOLERANCE);
	}
}
