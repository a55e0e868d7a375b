// SPDX-License-Identifier: MIT
package apps;

import java.util.Arrays;
import mpi.Intracomm;
import mpi.MPI;

/**
 * All-pairs shortest paths (MPJ/Ibis's ASP): Floyd and Warshall's algorithm; each rank has a block of rows of the matrix
 * of distances, and row k is broadcast before step k.
 *
 * <p>The graph: a ring, so that every node can be reached, and some eight more edges from each node, with lengths from a
 * hash of both ends, so that any rank knows any edge.
 */
final class ShortestPaths extends App {
	private static final int FAR = 1 << 29; // twice this is an int yet
	private static final int EDGES = 8;
	private static final int SAMPLES = 4;

	private final int n;
	private final int firstRow;
	private final int rows;

	private int[] distance;
	private int[] rowK;

	ShortestPaths(int n, Intracomm world) throws UsageException {
		super(world);
		this.n = n;
		if (n < Math.max(ranks, 2) || n > 1 << 14)
			throw new UsageException("asp wants " + Math.max(ranks, 2) + " (at least the ranks) to 16384 nodes, not " + n);
		firstRow = share(n, rank);
		rows = share(n, rank + 1) - firstRow;
	}

	@Override
	String size() {
		return n + " nodes";
	}

	/** The length of the edge from i to j, or {@link #FAR}. */
	private int edge(int i, int j) {
		if (i == j)
			return 0;
		// The mixing function of SplitMix64 (Steele, Lea, Flood 2014).
		long h = ((long) i << 32 | j) * 0x9e3779b97f4a7c15L;
		h = (h ^ h >>> 30) * 0xbf58476d1ce4e5b9L;
		h = (h ^ h >>> 27) * 0x94d049bb133111ebL;
		h ^= h >>> 31;
		int length = 1 + (int) (h >>> 54);
		if (j == (i + 1) % n)
			return length;
		return (int) (h & 0xffffff) < (1 << 24) / n * EDGES ? length : FAR;
	}

	@Override
	void prepare() {
		distance = new int[rows * n];
		rowK = new int[n];
		for (int i = 0; i < rows; i++) {
			for (int j = 0; j < n; j++)
				distance[i * n + j] = edge(firstRow + i, j);
		}
	}

	@Override
	void run() {
		int owner = 0;
		for (int k = 0; k < n; k++) {
			while (k >= share(n, owner + 1))
				owner++;
			if (owner == rank)
				System.arraycopy(distance, (k - firstRow) * n, rowK, 0, n);
			enter();
			world.Bcast(rowK, 0, n, MPI.INT, owner);
			leave();
			for (int i = 0; i < rows; i++) {
				int toK = distance[i * n + k];
				if (toK < FAR)
					shorten(distance, i * n, rowK, toK);
			}
		}
	}

	private static void shorten(int[] distance, int o, int[] row, int toK) {
		for (int j = 0; j < row.length; j++)
			distance[o + j] = Math.min(distance[o + j], toK + row[j]);
	}

	@Override
	double work() {
		return 1e-6 * n * n * n;
	}

	@Override
	String unit() {
		return "paths compared";
	}

	/** Some rows of each rank, against Dijkstra's algorithm. */
	@Override
	boolean verify(Report report) {
		int samples = Math.min(SAMPLES, rows);
		boolean good = true;
		for (int k = 0; k < samples; k++) {
			int row = share(rows, k, samples);
			good &= Arrays.equals(dijkstra(firstRow + row), 0, n, distance, row * n, (row + 1) * n);
		}
		return report.check("Dijkstra's algorithm agrees", good);
	}

	private int[] dijkstra(int from) {
		int[] shortest = new int[n];
		boolean[] done = new boolean[n];
		Arrays.fill(shortest, FAR);
		shortest[from] = 0;
		for (int step = 0; step < n; step++) {
			int nearest = -1;
			for (int j = 0; j < n; j++) {
				if (!done[j] && (nearest < 0 || shortest[j] < shortest[nearest]))
					nearest = j;
			}
			done[nearest] = true;
			for (int j = 0; j < n; j++)
				shortest[j] = Math.min(shortest[j], shortest[nearest] + edge(nearest, j));
		}
		return shortest;
	}
}
