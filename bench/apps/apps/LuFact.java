// SPDX-License-Identifier: MIT
package apps;

import java.util.Arrays;
import java.util.Random;
import mpi.Intracomm;
import mpi.MPI;

/**
 * LUFact of the Java Grande benchmarks (section 2), which is Linpack: A x = b by LU factorisation with partial pivoting.
 *
 * <p>The columns are dealt to the ranks in turn. In each step the owner of the column finds the pivot and the multipliers
 * and broadcasts them, and each rank updates its columns. In the end rank 0 gathers the factors and solves.
 */
final class LuFact extends App {
	private static final double LIMIT = 16; // as the High Performance Linpack has it

	private final int n;
	private final int columns; // of this rank

	private double[] a; // column by column; multipliers below the diagonal, with the sign they are used with
	private double[] step; // multipliers and pivot row, as they are broadcast
	private int[] pivot;
	private double[] factors; // on rank 0: by rank, then as in a
	private int[] counts;
	private int[] places;
	private double[] x;

	LuFact(int n, Intracomm world) throws UsageException {
		super(world);
		this.n = n;
		if (n < ranks || n > 1 << 14)
			throw new UsageException("lufact wants an order of " + ranks + " (the number of ranks) to 16384, not " + n);
		columns = columnsOf(rank);
	}

	private int columnsOf(int owner) {
		return (n - owner + ranks - 1) / ranks;
	}

	@Override
	String size() {
		return "order " + n;
	}

	@Override
	void prepare() {
		a = new double[columns * n];
		for (int c = 0; c < columns; c++)
			fill(a, c * n, c * ranks + rank);
		step = new double[n + 1];
		pivot = new int[n];
		counts = new int[ranks];
		places = new int[ranks];
		for (int k = 0; k < ranks; k++) {
			counts[k] = columnsOf(k) * n;
			places[k] = k == 0 ? 0 : places[k - 1] + counts[k - 1];
		}
		factors = new double[rank == 0 ? n * n : 0];
		x = rightSide();
	}

	/** A column of the matrix: uniform in -0.5 ... 0.5. */
	private void fill(double[] to, int offset, int column) {
		Random random = new Random(1325 + column);
		for (int i = 0; i < n; i++)
			to[offset + i] = random.nextDouble() - 0.5;
	}

	/** The sums of the rows, so that the solution is 1, 1, 1 ...; on rank 0. */
	private double[] rightSide() {
		double[] sum = new double[n];
		double[] column = new double[n];
		for (int c = 0; rank == 0 && c < n; c++) {
			fill(column, 0, c);
			for (int i = 0; i < n; i++)
				sum[i] += column[i];
		}
		return sum;
	}

	@Override
	void run() {
		for (int k = 0; k < n - 1; k++) {
			int owner = k % ranks;
			if (owner == rank)
				findMultipliers(k);
			enter();
			world.Bcast(step, 0, n - k, MPI.DOUBLE, owner);
			leave();
			pivot[k] = (int) step[0];
			int first = k / ranks + (owner < rank ? 0 : 1);
			for (int c = first; c < columns; c++)
				update(c * n, k);
		}
		enter();
		world.Gatherv(a, 0, a.length, MPI.DOUBLE, factors, 0, counts, places, MPI.DOUBLE, 0);
		leave();
		if (rank == 0)
			solve();
	}

	/** step: the row of the pivot of column k, then the multipliers of the rows below k. */
	private void findMultipliers(int k) {
		int o = k / ranks * n;
		int row = k;
		for (int i = k + 1; i < n; i++) {
			if (Math.abs(a[o + i]) > Math.abs(a[o + row]))
				row = i;
		}
		double value = a[o + row];
		a[o + row] = a[o + k];
		a[o + k] = value;
		double scale = -1 / value;
		for (int i = k + 1; i < n; i++)
			a[o + i] *= scale;
		step[0] = row;
		System.arraycopy(a, o + k + 1, step, 1, n - k - 1);
	}

	private void update(int o, int k) {
		int row = pivot[k];
		double value = a[o + row];
		a[o + row] = a[o + k];
		a[o + k] = value;
		addTo(a, o + k + 1, step, 1, value, n - k - 1);
	}

	private static void addTo(double[] to, int at, double[] from, int offset, double factor, int count) {
		for (int i = 0; i < count; i++)
			to[at + i] += factor * from[offset + i];
	}

	/** Where column c is in the gathered factors. */
	private int column(int c) {
		return places[c % ranks] + c / ranks * n;
	}

	private void solve() {
		for (int k = 0; k < n - 1; k++) {
			double value = x[pivot[k]];
			x[pivot[k]] = x[k];
			x[k] = value;
			addTo(x, k + 1, factors, column(k) + k + 1, value, n - k - 1);
		}
		for (int k = n - 1; k >= 0; k--) {
			x[k] /= factors[column(k) + k];
			addTo(x, 0, factors, column(k), -x[k], k);
		}
	}

	@Override
	double work() {
		return 1e-6 * (2.0 / 3 * n * n * n + 2.0 * n * n);
	}

	@Override
	String unit() {
		return "floating point operations";
	}

	/** The scaled residual of the High Performance Linpack: |Ax - b| / (eps (|A| |x| + |b|) n), largest values. */
	@Override
	boolean verify(Report report) {
		if (rank > 0)
			return true;
		double[] b = rightSide();
		double[] residual = Arrays.copyOf(b, n);
		double[] rowSum = new double[n];
		double[] column = new double[n];
		for (int c = 0; c < n; c++) {
			fill(column, 0, c);
			addTo(residual, 0, column, 0, -x[c], n);
			for (int i = 0; i < n; i++)
				rowSum[i] += Math.abs(column[i]);
		}
		double scale = Math.ulp(1.0) * (largest(rowSum) * largest(x) + largest(b)) * n;
		boolean good = report.below("scaled residual", largest(residual) / scale, LIMIT);
		for (int i = 0; i < n; i++)
			x[i] -= 1;
		return good & report.below("largest error of the solution", largest(x), 1e-6);
	}

	private static double largest(double[] values) {
		double most = 0;
		for (double v : values)
			most = Math.max(most, Math.abs(v)); // NaN stays
		return most;
	}
}
