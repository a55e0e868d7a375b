// SPDX-License-Identifier: MIT
package npb;

import java.util.Arrays;

/**
 * A block of CG's random sparse symmetric matrix, in compressed rows.
 *
 * <p>The matrix is the sum over i of w(i) x(i) x(i)^T, where x(i) has {@code nonzer} random entries besides 0.5 at i,
 * and w(i) falls geometrically from 1 to 0.1, plus (0.1 - shift) times the identity.
 */
final class CgMatrix {
	private static final double RCOND = 0.1;

	/** {@code value[k]} for {@code start[row] <= k < start[row + 1]} is in column {@code column[k]}, both local. */
	final double[] value;
	final int[] column;
	final int[] start;

	private final int n;
	private final int firstRow;
	private final int rows;
	private final int firstColumn;
	private final int columns;

	private final int[][] place; // of the entries of x(i)
	private final double[][] entry;

	CgMatrix(int n, int nonzer, double shift, int firstRow, int rows, int firstColumn, int columns) {
		this.n = n;
		this.firstRow = firstRow;
		this.rows = rows;
		this.firstColumn = firstColumn;
		this.columns = columns;
		place = new int[n][];
		entry = new double[n][];
		vectors(nonzer);

		// All contributions, those to the same place side by side in no order; then each row is added up.
		int[] rowStart = countContributions();
		int[] contributionColumn = new int[rowStart[rows]];
		double[] contribution = new double[rowStart[rows]];
		contribute(shift, rowStart, contributionColumn, contribution);
		start = new int[rows + 1];
		int count = addUp(rowStart, contributionColumn, contribution);
		value = Arrays.copyOf(contribution, count);
		column = Arrays.copyOf(contributionColumn, count);
		Arrays.fill(place, null);
		Arrays.fill(entry, null);
	}

	private void vectors(int nonzer) {
		NpbRandom random = new NpbRandom(NpbRandom.SEED);
		random.next();
		int power = 1;
		while (power < n)
			power *= 2;
		int[] places = new int[nonzer + 1];
		double[] entries = new double[nonzer + 1];
		for (int i = 0; i < n; i++) {
			int count = 0;
			while (count < nonzer) {
				double v = random.next();
				int at = (int) (power * random.next());
				if (at >= n || find(places, count, at) >= 0)
					continue;
				places[count] = at;
				entries[count++] = v;
			}
			int diagonal = find(places, count, i);
			if (diagonal < 0) {
				diagonal = count++;
				places[diagonal] = i;
			}
			entries[diagonal] = 0.5;
			place[i] = Arrays.copyOf(places, count);
			entry[i] = Arrays.copyOf(entries, count);
		}
	}

	private static int find(int[] list, int count, int wanted) {
		for (int k = 0; k < count; k++) {
			if (list[k] == wanted)
				return k;
		}
		return -1;
	}

	private boolean hasColumn(int global) {
		return global >= firstColumn && global < firstColumn + columns;
	}

	private boolean hasRow(int global) {
		return global >= firstRow && global < firstRow + rows;
	}

	private int[] countContributions() {
		int[] rowStart = new int[rows + 1];
		for (int[] places : place) {
			int here = 0;
			for (int at : places)
				here += hasColumn(at) ? 1 : 0;
			for (int at : places) {
				if (hasRow(at))
					rowStart[at - firstRow + 1] += here;
			}
		}
		for (int row = 0; row < rows; row++)
			rowStart[row + 1] += rowStart[row];
		return rowStart;
	}

	private void contribute(double shift, int[] rowStart, int[] contributionColumn, double[] contribution) {
		int[] next = Arrays.copyOf(rowStart, rows);
		double weight = 1;
		double ratio = Math.pow(RCOND, 1.0 / n);
		for (int i = 0; i < n; i++) {
			int[] places = place[i];
			double[] entries = entry[i];
			for (int a = 0; a < places.length; a++) {
				if (!hasRow(places[a]))
					continue;
				int row = places[a] - firstRow;
				double scale = weight * entries[a];
				for (int b = 0; b < places.length; b++) {
					if (!hasColumn(places[b]))
						continue;
					double v = scale * entries[b];
					if (a == b && places[a] == i)
						v += RCOND - shift;
					contributionColumn[next[row]] = places[b] - firstColumn;
					contribution[next[row]++] = v;
				}
			}
			weight *= ratio;
		}
	}

	/** Leaves one value for each place, in the order of columns, at the front of both arrays; how many there are. */
	private int addUp(int[] rowStart, int[] contributionColumn, double[] contribution) {
		double[] sum = new double[columns];
		boolean[] seen = new boolean[columns];
		int[] list = new int[columns];
		int out = 0;
		for (int row = 0; row < rows; row++) {
			int count = 0;
			for (int k = rowStart[row]; k < rowStart[row + 1]; k++) {
				int c = contributionColumn[k];
				if (!seen[c]) {
					seen[c] = true;
					sum[c] = 0;
					list[count++] = c;
				}
				sum[c] += contribution[k];
			}
			Arrays.sort(list, 0, count);
			start[row] = out;
			for (int k = 0; k < count; k++, out++) {
				contributionColumn[out] = list[k];
				contribution[out] = sum[list[k]];
				seen[list[k]] = false;
			}
		}
		start[rows] = out;
		return out;
	}

	/** w = A p, for the rows and columns of this block. */
	void multiply(double[] p, double[] w) {
		double[] v = value;
		int[] c = column;
		int from = start[0];
		for (int row = 0; row < rows; row++) {
			int to = start[row + 1];
			double sum0 = 0;
			double sum1 = 0;
			int k = from;
			for (; k < to - 1; k += 2) {
				sum0 += v[k] * p[c[k]];
				sum1 += v[k + 1] * p[c[k + 1]];
			}
			if (k < to)
				sum0 += v[k] * p[c[k]];
			w[row] = sum0 + sum1;
			from = to;
		}
	}
}
