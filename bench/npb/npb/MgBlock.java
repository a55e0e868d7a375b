// SPDX-License-Identifier: MIT
package npb;

/**
 * One level of MG's grid on one rank: n1 x n2 x n3 points with one layer of a neighbour's points around them, the first
 * index running fastest; and the stencils over it.
 *
 * <p>Each stencil goes along rows: sums of the neighbouring rows go into arrays that fit the first-level cache, so that
 * each inner loop reads a few streams.
 */
final class MgBlock {
	/** With the layer around. */
	final int m1;
	final int m2;
	final int m3;
	final int plane;
	final int length;

	private final double[] sides;
	private final double[] corners;
	private final double[] third;

	MgBlock(int n1, int n2, int n3) {
		m1 = n1 + 2;
		m2 = n2 + 2;
		m3 = n3 + 2;
		plane = m1 * m2;
		length = plane * m3;
		sides = new double[m1];
		corners = new double[m1];
		third = new double[m1];
	}

	/** Sums over the four rows beside row {@code o}, and over the four rows across. */
	private static void aroundRow(double[] u, int o, int m1, int plane, double[] side, double[] corner) {
		int s0 = o - m1;
		int s1 = o + m1;
		int s2 = o - plane;
		int s3 = o + plane;
		int c0 = s2 - m1;
		int c1 = s2 + m1;
		int c2 = s3 - m1;
		int c3 = s3 + m1;
		for (int i = 0; i < m1; i++)
			side[i] = u[s0 + i] + u[s1 + i] + u[s2 + i] + u[s3 + i];
		for (int i = 0; i < m1; i++)
			corner[i] = u[c0 + i] + u[c1 + i] + u[c2 + i] + u[c3 + i];
	}

	/** r = v - A u inside; {@code v} may be {@code r}.  The coefficient of the nearest neighbours is 0. */
	void residual(double[] u, double[] v, double[] r, double[] a) {
		double a0 = a[0];
		double a2 = a[2];
		double a3 = a[3];
		for (int k = 1; k < m3 - 1; k++) {
			for (int j = 1; j < m2 - 1; j++) {
				int o = j * m1 + k * plane;
				aroundRow(u, o, m1, plane, sides, corners);
				residualRow(u, v, r, o, a0, a2, a3);
			}
		}
	}

	private void residualRow(double[] u, double[] v, double[] r, int o, double a0, double a2, double a3) {
		double[] s = sides;
		double[] c = corners;
		for (int i = 1; i < m1 - 1; i++)
			r[o + i] = v[o + i] - a0 * u[o + i] - a2 * (c[i] + s[i - 1] + s[i + 1]) - a3 * (c[i - 1] + c[i + 1]);
	}

	/** u = u + C r inside.  The coefficient of the farthest neighbours is 0. */
	void smooth(double[] r, double[] u, double[] c) {
		double c0 = c[0];
		double c1 = c[1];
		double c2 = c[2];
		for (int k = 1; k < m3 - 1; k++) {
			for (int j = 1; j < m2 - 1; j++) {
				int o = j * m1 + k * plane;
				aroundRow(r, o, m1, plane, sides, corners);
				smoothRow(r, u, o, c0, c1, c2);
			}
		}
	}

	private void smoothRow(double[] r, double[] u, int o, double c0, double c1, double c2) {
		double[] s = sides;
		double[] c = corners;
		for (int i = 1; i < m1 - 1; i++)
			u[o + i] += c0 * r[o + i] + c1 * (r[o + i - 1] + r[o + i + 1] + s[i]) + c2 * (c[i] + s[i - 1] + s[i + 1]);
	}

	/** Restricts {@code r} of this level to {@code s} of the next coarser one: weights 1/2, 1/4, 1/8, 1/16. */
	void restrict(double[] r, MgBlock coarse, double[] s) {
		double[] side = sides;
		double[] corner = corners;
		for (int k = 1; k < coarse.m3 - 1; k++) {
			for (int j = 1; j < coarse.m2 - 1; j++) {
				int o = 2 * j * m1 + 2 * k * plane;
				int to = j * coarse.m1 + k * coarse.plane;
				aroundRow(r, o, m1, plane, side, corner);
				for (int i = 1; i < coarse.m1 - 1; i++) {
					int f = 2 * i;
					s[to + i] = 0.5 * r[o + f] + 0.25 * (r[o + f - 1] + r[o + f + 1] + side[f])
						+ 0.125 * (side[f - 1] + side[f + 1] + corner[f]) + 0.0625 * (corner[f - 1] + corner[f + 1]);
				}
			}
		}
	}

	/** Adds the trilinear interpolation of {@code z} of the next coarser level to {@code u}, the layer around too. */
	void interpolate(MgBlock coarse, double[] z, double[] u) {
		double[] inJ = coarse.sides;
		double[] inK = coarse.corners;
		double[] inBoth = coarse.third;
		int mc = coarse.m1;
		for (int k = 0; k < coarse.m3 - 1; k++) {
			for (int j = 0; j < coarse.m2 - 1; j++) {
				int o = j * mc + k * coarse.plane;
				for (int i = 0; i < mc; i++) {
					double next = z[o + coarse.plane + i];
					inJ[i] = z[o + mc + i] + z[o + i];
					inK[i] = next + z[o + i];
					inBoth[i] = z[o + coarse.plane + mc + i] + next + inJ[i];
				}
				int to = 2 * j * m1 + 2 * k * plane;
				spread(z, o, u, to, mc, 0.5, 1);
				spread(inJ, 0, u, to + m1, mc, 0.25, 0.5);
				spread(inK, 0, u, to + plane, mc, 0.25, 0.5);
				spread(inBoth, 0, u, to + plane + m1, mc, 0.125, 0.25);
			}
		}
	}

	private static void spread(double[] from, int o, double[] u, int to, int count, double between, double at) {
		for (int i = 0; i < count - 1; i++) {
			u[to + 2 * i] += at * from[o + i];
			u[to + 2 * i + 1] += between * (from[o + i] + from[o + i + 1]);
		}
	}

	/** The sum of squares inside. */
	double squares(double[] r) {
		double s0 = 0;
		double s1 = 0;
		for (int k = 1; k < m3 - 1; k++) {
			for (int j = 1; j < m2 - 1; j++) {
				int o = j * m1 + k * plane;
				int i = 1;
				for (; i < m1 - 2; i += 2) {
					s0 += r[o + i] * r[o + i];
					s1 += r[o + i + 1] * r[o + i + 1];
				}
				if (i < m1 - 1)
					s0 += r[o + i] * r[o + i];
			}
		}
		return s0 + s1;
	}

	/** How many numbers a face across an axis has. */
	int face(int axis) {
		return axis == 0 ? (m2 - 2) * (m3 - 2) : axis == 1 ? m1 * (m3 - 2) : plane;
	}

	/** Copies the face at position {@code at} of an axis out of the grid. */
	void get(double[] u, int axis, int at, double[] face) {
		int n = 0;
		if (axis == 2) {
			System.arraycopy(u, at * plane, face, 0, plane);
		} else if (axis == 1) {
			for (int k = 1; k < m3 - 1; k++, n += m1)
				System.arraycopy(u, at * m1 + k * plane, face, n, m1);
		} else {
			for (int k = 1; k < m3 - 1; k++) {
				for (int j = 1; j < m2 - 1; j++)
					face[n++] = u[at + j * m1 + k * plane];
			}
		}
	}

	/** The reverse of {@link #get}. */
	void put(double[] u, int axis, int at, double[] face) {
		int n = 0;
		if (axis == 2) {
			System.arraycopy(face, 0, u, at * plane, plane);
		} else if (axis == 1) {
			for (int k = 1; k < m3 - 1; k++, n += m1)
				System.arraycopy(face, n, u, at * m1 + k * plane, m1);
		} else {
			for (int k = 1; k < m3 - 1; k++) {
				for (int j = 1; j < m2 - 1; j++)
					u[at + j * m1 + k * plane] = face[n++];
			}
		}
	}

	/** Fills the layer around across an axis from the opposite side; {@code face} is scratch. */
	void wrap(double[] u, int axis, double[] face) {
		int last = extent(axis) - 1;
		get(u, axis, 1, face);
		put(u, axis, last, face);
		get(u, axis, last - 1, face);
		put(u, axis, 0, face);
	}

	/** Points along an axis, with the layer around. */
	int extent(int axis) {
		return axis == 0 ? m1 : axis == 1 ? m2 : m3;
	}
}
