// SPDX-License-Identifier: MIT
package npb;

import java.util.Arrays;

/** A level of MG's grid as a whole on each rank, between levels that are split among the ranks and those that are not. */
final class MgWhole {
	private final CommTimer comm;
	private final int[] ranks;
	private final int[] first = new int[3]; // of this rank's points, along each axis
	private final int[] points = new int[3];
	private final MgBlock block;
	private final double[] grid;
	private final double[] mine;
	private final double[] all;
	private final double[] face;

	/**
	 * A cube of {@code side} points a side.
	 *
	 * @param ranks along each axis
	 * @param here the place of this rank among them
	 */
	MgWhole(CommTimer comm, int side, int[] ranks, int[] here) {
		this.comm = comm;
		this.ranks = ranks;
		int count = 1;
		for (int axis = 0; axis < ranks.length; axis++) {
			points[axis] = side / ranks[axis];
			first[axis] = here[axis] * points[axis];
			count *= points[axis];
		}
		block = new MgBlock(side, side, side);
		grid = new double[block.length];
		mine = new double[count];
		all = new double[count * comm.size];
		face = new double[block.plane];
	}

	/** Restricts {@code r}, each rank's block of this level, to {@code s} of the next coarser one, which all ranks get whole. */
	void restrict(MgBlock part, double[] r, MgBlock coarse, double[] s) {
		int n = 0;
		for (int k = 1; k <= points[2]; k++) {
			for (int j = 1; j <= points[1]; j++, n += points[0])
				System.arraycopy(r, 1 + j * part.m1 + k * part.plane, mine, n, points[0]);
		}
		comm.allgather(mine, all, mine.length);
		n = 0;
		for (int rank = 0; rank < comm.size; rank++) {
			int o = at(rank % ranks[0] * points[0], rank / ranks[0] % ranks[1] * points[1], rank / ranks[0] / ranks[1] * points[2]);
			for (int k = 0; k < points[2]; k++) {
				for (int j = 0; j < points[1]; j++, n += points[0])
					System.arraycopy(all, n, grid, o + j * block.m1 + k * block.plane, points[0]);
			}
		}
		for (int axis = 0; axis < ranks.length; axis++)
			block.wrap(grid, axis, face);
		block.restrict(grid, coarse, s);
	}

	/** Where a point is, counted from 0 without the layer around. */
	private int at(int i, int j, int k) {
		return 1 + i + (1 + j) * block.m1 + (1 + k) * block.plane;
	}

	/** u = the interpolation of {@code z} of the next coarser level, for this rank's block with the layer around. */
	void interpolate(MgBlock coarse, double[] z, MgBlock part, double[] u) {
		Arrays.fill(grid, 0);
		block.interpolate(coarse, z, grid);
		int o = at(first[0], first[1], first[2]) - at(0, 0, 0);
		for (int k = 0; k < part.m3; k++) {
			for (int j = 0; j < part.m2; j++)
				System.arraycopy(grid, o + j * block.m1 + k * block.plane, u, j * part.m1 + k * part.plane, part.m1);
		}
	}
}
