// SPDX-License-Identifier: MIT
package apps;

import mpi.Intracomm;
import mpi.MPI;
import mpi.Request;

/**
 * Maxwell's equations in the plane by finite differences in the time domain (Yee 1966): Ez, Hx, Hy in a square with
 * conducting walls, cells of side 1, velocity of light 1.
 *
 * <p>The ranks form a grid of blocks. The border of a field travels, by non-blocking operations, while the inside of the
 * other field is made from it. The beginning is a sum of eigenmodes of the discrete equations, each of which only
 * oscillates, at a frequency that is known: so the result is known, but for rounding.
 */
final class Fdtd extends App {
	private static final int STEPS = 500;
	private static final double COURANT = 0.6; // length of a time step; below 1/sqrt 2
	/** Half waves along x and y, and amplitude. */
	private static final double[][] MODES = {{1, 2, 1}, {3, 1, 0.7}, {7, 5, 0.4}};
	private static final double LIMIT = 1e-10;
	private static final int E_TAG = 1; // and the next
	private static final int H_TAG = 3;

	private final int n;
	private final int firstX;
	private final int firstY;
	private final int nx;
	private final int ny;
	/** Ranks beside this one, or -1 at a wall. */
	private final int left;
	private final int right;
	private final int down;
	private final int up;
	/** From row to row: a point of a neighbour at either end. Point (x, y) of the block is at (y + 1) * pitch + x + 1. */
	private final int pitch;

	private double[] ez;
	private double[] hx;
	private double[] hy;
	private double[] columnOut;
	private double[] columnIn;

	Fdtd(int n, Intracomm world) throws UsageException {
		super(world);
		this.n = n;
		int acrossX = 1;
		for (int k = 1; k * k <= ranks; k++)
			acrossX = ranks % k == 0 ? k : acrossX;
		int acrossY = ranks / acrossX;
		if (n < 2 * acrossY || n < 16 || n > 1 << 14)
			throw new UsageException("fdtd wants " + Math.max(16, 2 * acrossY) + " to 16384 cells along a side for " + ranks + " ranks, not " + n);
		int blockX = rank % acrossX;
		int blockY = rank / acrossX;
		firstX = share(n, blockX, acrossX);
		firstY = share(n, blockY, acrossY);
		nx = share(n, blockX + 1, acrossX) - firstX;
		ny = share(n, blockY + 1, acrossY) - firstY;
		left = blockX > 0 ? rank - 1 : -1;
		right = blockX + 1 < acrossX ? rank + 1 : -1;
		down = blockY > 0 ? rank - acrossX : -1;
		up = blockY + 1 < acrossY ? rank + acrossX : -1;
		pitch = nx + 2;
	}

	@Override
	String size() {
		return n + " x " + n + " cells, " + STEPS + " steps";
	}

	@Override
	void prepare() {
		int length = pitch * (ny + 2);
		ez = new double[length];
		hx = new double[length];
		hy = new double[length];
		columnOut = new double[ny];
		columnIn = new double[ny];
		for (double[] mode : MODES) {
			double kx = Math.PI * mode[0] / n;
			double ky = Math.PI * mode[1] / n;
			double phase = phaseOfHalfStep(kx, ky);
			double h = mode[2] * COURANT * Math.sin(-phase) / Math.sin(phase); // half a step before
			add(ez, mode[2], kx, ky, 0, 0);
			add(hx, -h * Math.sin(ky / 2), kx, ky, 0, 0.5);
			add(hy, h * Math.sin(kx / 2), kx, ky, 0.5, 0);
		}
	}

	/** From the discrete equations: sin^2(phase) = COURANT^2 (sin^2(kx / 2) + sin^2(ky / 2)). */
	private static double phaseOfHalfStep(double kx, double ky) {
		return Math.asin(COURANT * Math.hypot(Math.sin(kx / 2), Math.sin(ky / 2)));
	}

	/** Adds a standing wave: a sine along each axis, or a cosine where the points lie between those of Ez. */
	private void add(double[] field, double amplitude, double kx, double ky, double betweenX, double betweenY) {
		double[] alongX = wave(kx, firstX, nx, betweenX);
		double[] alongY = wave(ky, firstY, ny, betweenY);
		for (int y = 0; y < ny; y++) {
			for (int x = 0; x < nx; x++)
				field[at(x, y)] += amplitude * alongY[y] * alongX[x];
		}
	}

	private static double[] wave(double k, int first, int count, double between) {
		double[] values = new double[count];
		for (int i = 0; i < count; i++)
			values[i] = between > 0 ? Math.cos(k * (first + i + between)) : Math.sin(k * (first + i));
		return values;
	}

	private int at(int x, int y) {
		return (y + 1) * pitch + x + 1;
	}

	@Override
	void run() {
		for (int step = 0; step < STEPS; step++) {
			makeH();
			makeE();
		}
	}

	/** H needs the Ez of the neighbours to the right and above. */
	private void makeH() {
		enter();
		Request fromRight = right < 0 ? null : world.Irecv(columnIn, 0, ny, MPI.DOUBLE, right, E_TAG);
		Request fromUp = up < 0 ? null : world.Irecv(ez, at(0, ny), nx, MPI.DOUBLE, up, E_TAG + 1);
		getColumn(ez, 0);
		Request toLeft = left < 0 ? null : world.Isend(columnOut, 0, ny, MPI.DOUBLE, left, E_TAG);
		Request toDown = down < 0 ? null : world.Isend(ez, at(0, 0), nx, MPI.DOUBLE, down, E_TAG + 1);
		leave();
		for (int y = 0; y < ny - 1; y++)
			rowOfH(ez, hx, hy, at(0, y), nx - 1, pitch);
		finish(fromRight, fromUp, toLeft, toDown);
		if (right >= 0)
			putColumn(ez, nx);
		for (int y = 0; y < ny - 1; y++)
			rowOfH(ez, hx, hy, at(nx - 1, y), 1, pitch);
		rowOfH(ez, hx, hy, at(0, ny - 1), nx, pitch);
	}

	/** Ez needs the H of the neighbours to the left and below; the walls at x = 0 and y = 0 stay. */
	private void makeE() {
		enter();
		Request fromLeft = left < 0 ? null : world.Irecv(columnIn, 0, ny, MPI.DOUBLE, left, H_TAG);
		Request fromDown = down < 0 ? null : world.Irecv(hx, at(0, -1), nx, MPI.DOUBLE, down, H_TAG + 1);
		getColumn(hy, nx - 1);
		Request toRight = right < 0 ? null : world.Isend(columnOut, 0, ny, MPI.DOUBLE, right, H_TAG);
		Request toUp = up < 0 ? null : world.Isend(hx, at(0, ny - 1), nx, MPI.DOUBLE, up, H_TAG + 1);
		leave();
		for (int y = 1; y < ny; y++)
			rowOfE(ez, hx, hy, at(1, y), nx - 1, pitch);
		finish(fromLeft, fromDown, toRight, toUp);
		int firstFree = down < 0 ? 1 : 0;
		if (left >= 0) {
			putColumn(hy, -1);
			for (int y = firstFree; y < ny; y++)
				rowOfE(ez, hx, hy, at(0, y), 1, pitch);
		}
		if (down >= 0)
			rowOfE(ez, hx, hy, at(1, 0), nx - 1, pitch);
	}

	private static void rowOfH(double[] e, double[] hx, double[] hy, int o, int count, int pitch) {
		for (int i = o; i < o + count; i++)
			hx[i] -= COURANT * (e[i + pitch] - e[i]);
		for (int i = o; i < o + count; i++)
			hy[i] += COURANT * (e[i + 1] - e[i]);
	}

	private static void rowOfE(double[] e, double[] hx, double[] hy, int o, int count, int pitch) {
		for (int i = o; i < o + count; i++)
			e[i] += COURANT * (hy[i] - hy[i - 1] - hx[i] + hx[i - pitch]);
	}

	private void finish(Request... requests) {
		enter();
		for (Request request : requests) {
			if (request != null)
				request.Wait();
		}
		leave();
	}

	private void getColumn(double[] field, int x) {
		for (int y = 0; y < ny; y++)
			columnOut[y] = field[at(x, y)];
	}

	private void putColumn(double[] field, int x) {
		for (int y = 0; y < ny; y++)
			field[at(x, y)] = columnIn[y];
	}

	@Override
	double work() {
		return 1e-6 * STEPS * n * n;
	}

	@Override
	String unit() {
		return "cells";
	}

	@Override
	boolean verify(Report report) {
		double[] expected = new double[ez.length];
		for (double[] mode : MODES) {
			double kx = Math.PI * mode[0] / n;
			double ky = Math.PI * mode[1] / n;
			add(expected, mode[2] * Math.cos(2 * STEPS * phaseOfHalfStep(kx, ky)), kx, ky, 0, 0);
		}
		double wrong = 0;
		for (int y = 0; y < ny; y++) {
			for (int x = 0; x < nx; x++)
				wrong = Math.max(wrong, Math.abs(ez[at(x, y)] - expected[at(x, y)]));
		}
		return report.below("error of Ez", reduce(wrong, MPI.MAX), LIMIT);
	}
}
