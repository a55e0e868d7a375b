// SPDX-License-Identifier: MIT
package npb;

/**
 * FT: a diffusion equation solved in Fourier space, with a three-dimensional inverse transform each iteration.
 *
 * <p>In space each rank has a slab of z, in Fourier space one of y; from everybody to everybody in between.  A slab
 * is one array of planes of constant z, first the real parts of a plane, then the imaginary ones, x running fastest.
 * So what one rank has for another in Fourier space is contiguous, and only the slabs in space are packed.
 *
 * <p>More ranks than planes form a grid: each slab is cut, in space along y and otherwise along x, among the ranks of a
 * row, and one more exchange goes on within the rows, between the transforms along x and along y.
 */
final class Ft implements Kernel {
	private static final int[][] SIDES = {{64, 64, 64}, {128, 128, 32}, {256, 256, 128}, {512, 256, 256},
		{512, 512, 512}};
	private static final int[] ITERATIONS = {6, 6, 6, 20, 20};
	private static final double TOLERANCE = 1e-12;
	private static final double ALPHA = 1e-6;
	private static final int POINTS = 1024;
	/** Transforms at once. */
	private static final int MANY = 16;
	/** How many ranks a row of the grid has, where that is not to be chosen here. */
	private static final String GRID = "npb.ft.row";

	private final CommTimer comm;
	private final int nx;
	private final int ny;
	private final int nz;
	private final int iterations;
	private final double[] expected;
	/** In space: all x, yOwn of y, zHere of z; in between xHere, all y, zHere; in Fourier space xHere, yHere, all z. */
	private final int xHere;
	private final int yOwn;
	private final int yHere;
	private final int zHere;
	private final int inRow; // place of this rank in its row, and of the row
	private final int rowHere;
	private final CommTimer row;
	private final CommTimer column; // the ranks with the same place in their rows

	private double[] space;
	private double[] packed;
	private double[] frequencies;
	private double[] work;
	private double[] decay;
	private double[] line;
	private Fft alongX;
	private Fft alongY;
	private Fft alongZ;
	private final double[] sum = new double[2];
	private final double[] total = new double[2];
	private double[] checksums;

	Ft(ProblemClass problem, CommTimer comm) throws UsageException {
		this.comm = comm;
		int[] sides = SIDES[problem.ordinal()];
		nx = sides[0];
		ny = sides[1];
		nz = sides[2];
		iterations = ITERATIONS[problem.ordinal()];
		expected = FtValues.of(problem);
		UsageException.log2OfRanks("FT", comm.size);
		int rows = Math.min(comm.size, Math.min(ny, nz));
		int wide = Integer.getInteger(GRID, comm.size / rows);
		int widest = Math.min(nx, ny) / MANY;
		if (wide > widest)
			throw new UsageException("FT of class " + problem + " runs on up to " + widest * Math.min(ny, nz)
				+ " ranks, at most " + widest + " in a row, not on " + comm.size + " in rows of " + wide);
		if (wide < 1 || comm.size % wide != 0 || comm.size / wide > Math.min(ny, nz))
			throw new UsageException(GRID + " = " + wide + " does not fit " + comm.size + " ranks");
		rows = comm.size / wide;
		inRow = comm.rank % wide;
		rowHere = comm.rank / wide;
		row = wide > 1 ? comm.part(rowHere) : null;
		column = wide > 1 ? comm.part(inRow) : comm;
		xHere = nx / wide;
		yOwn = ny / wide;
		yHere = ny / rows;
		zHere = nz / rows;
		if (2L * nx * yOwn * zHere > Integer.MAX_VALUE)
			throw new UsageException("FT of class " + problem + " does not fit " + comm.size + " ranks");
	}

	@Override
	public String name() {
		return "FT";
	}

	@Override
	public String size() {
		return nx + "x" + ny + "x" + nz;
	}

	@Override
	public int iterations() {
		return iterations;
	}

	@Override
	public void prepare() {
		int length = 2 * nx * yOwn * zHere;
		space = new double[length];
		packed = comm.size > 1 ? new double[length] : null;
		frequencies = new double[length];
		work = new double[length];
		decay = new double[length / 2];
		line = new double[2 * nx];
		alongX = new Fft(nx, MANY);
		alongY = new Fft(ny, MANY);
		alongZ = new Fft(nz, MANY);
		checksums = new double[2 * iterations];
		start();
		forward();
		evolve();
		inverse();
	}

	@Override
	public void reset() {
		// A run begins with the random field.
	}

	@Override
	public void run() {
		start();
		forward();
		for (int i = 0; i < iterations; i++) {
			evolve();
			inverse();
			checksum(i);
		}
	}

	/** The random field, and by what each frequency shrinks in one step. */
	private void start() {
		int plane = nx * yOwn;
		for (int z = 0; z < zHere; z++) {
			long lines = (rowHere * zHere + z) * (long) ny + inRow * yOwn;
			NpbRandom random = NpbRandom.after(NpbRandom.SEED, 2L * nx * lines);
			for (int y = 0; y < yOwn; y++) {
				random.fill(line, 0, line.length);
				int o = 2 * z * plane + y * nx;
				for (int x = 0; x < nx; x++) {
					space[o + x] = line[2 * x];
					space[o + plane + x] = line[2 * x + 1];
				}
			}
		}
		double factor = -4 * ALPHA * Math.PI * Math.PI;
		int at = 0;
		for (int z = 0; z < nz; z++) {
			for (int y = 0; y < yHere; y++) {
				double others = square(z, nz) + square(rowHere * yHere + y, ny);
				for (int x = 0; x < xHere; x++)
					decay[at++] = Math.exp(factor * (square(inRow * xHere + x, nx) + others));
			}
		}
	}

	/** The square of the frequency of index k, which lies in -n/2 ... n/2 - 1. */
	private static double square(int k, int n) {
		double f = k < n / 2 ? k : k - n;
		return f * f;
	}

	/** frequencies = the transform of space. */
	private void forward() {
		rows(space, -1);
		if (row != null)
			cutAlongX();
		columns(alongY, space, zHere, 2 * xHere * ny, xHere * ny, xHere, xHere, -1);
		if (comm.size == 1) {
			System.arraycopy(space, 0, frequencies, 0, space.length);
		} else {
			int run = xHere * yHere;
			int to = 0;
			for (int k = 0; k < column.size; k++) {
				for (int half = 0; half < 2 * zHere; half++, to += run)
					System.arraycopy(space, half * xHere * ny + k * run, packed, to, run);
			}
			column.alltoall(packed, frequencies, packed.length / column.size);
		}
		columns(alongZ, frequencies, 1, 0, xHere * yHere, 2 * xHere * yHere, xHere * yHere, -1);
	}

	/** From lines of all x to planes of xHere; uses the work array. */
	private void cutAlongX() {
		int to = 0;
		for (int k = 0; k < row.size; k++) {
			for (int line = 0; line < 2 * zHere * yOwn; line++, to += xHere)
				System.arraycopy(space, line * nx + k * xHere, packed, to, xHere);
		}
		row.alltoall(packed, work, packed.length / row.size);
		int run = xHere * yOwn;
		int from = 0;
		for (int k = 0; k < row.size; k++) {
			for (int half = 0; half < 2 * zHere; half++, from += run)
				System.arraycopy(work, from, space, half * xHere * ny + k * run, run);
		}
	}

	/** The reverse. */
	private void joinAlongX() {
		int run = xHere * yOwn;
		int to = 0;
		for (int k = 0; k < row.size; k++) {
			for (int half = 0; half < 2 * zHere; half++, to += run)
				System.arraycopy(space, half * xHere * ny + k * run, packed, to, run);
		}
		row.alltoall(packed, work, packed.length / row.size);
		int from = 0;
		for (int k = 0; k < row.size; k++) {
			for (int line = 0; line < 2 * zHere * yOwn; line++, from += xHere)
				System.arraycopy(work, from, space, line * nx + k * xHere, xHere);
		}
	}

	/** One step in time, also copied into the work array. */
	private void evolve() {
		int run = xHere * yHere;
		for (int z = 0; z < nz; z++) {
			shrink(frequencies, work, decay, 2 * z * run, z * run, run);
			shrink(frequencies, work, decay, (2 * z + 1) * run, z * run, run);
		}
	}

	private static void shrink(double[] values, double[] copy, double[] by, int at, int byAt, int count) {
		for (int i = 0; i < count; i++)
			values[at + i] *= by[byAt + i];
		System.arraycopy(values, at, copy, at, count);
	}

	/** space = the inverse transform of the work array. */
	private void inverse() {
		columns(alongZ, work, 1, 0, xHere * yHere, 2 * xHere * yHere, xHere * yHere, 1);
		if (comm.size == 1) {
			double[] t = space;
			space = work;
			work = t;
		} else {
			column.alltoall(work, packed, packed.length / column.size);
			int run = xHere * yHere;
			int from = 0;
			for (int k = 0; k < column.size; k++) {
				for (int half = 0; half < 2 * zHere; half++, from += run)
					System.arraycopy(packed, from, space, half * xHere * ny + k * run, run);
			}
		}
		columns(alongY, space, zHere, 2 * xHere * ny, xHere * ny, xHere, xHere, 1);
		if (row != null)
			joinAlongX();
		rows(space, 1);
	}

	/** Transforms along x, which is contiguous: some rows at a time are turned into columns and back. */
	private void rows(double[] a, int sign) {
		Fft fft = alongX;
		int many = fft.many();
		int imaginary = nx * yOwn;
		for (int z = 0; z < zHere; z++) {
			for (int y = 0; y < yOwn; y += many) {
				int o = 2 * z * imaginary + y * nx;
				gather(a, o, fft.re, nx, many);
				gather(a, o + imaginary, fft.im, nx, many);
				fft.transform(sign);
				scatter(fft.resultRe(), a, o, nx, many);
				scatter(fft.resultIm(), a, o + imaginary, nx, many);
			}
		}
	}

	private static void gather(double[] a, int o, double[] columns, int n, int many) {
		for (int x = 0; x < n; x++) {
			for (int b = 0; b < many; b++)
				columns[x * many + b] = a[o + x + b * n];
		}
	}

	private static void scatter(double[] columns, double[] a, int o, int n, int many) {
		for (int b = 0; b < many; b++) {
			for (int x = 0; x < n; x++)
				a[o + x + b * n] = columns[x * many + b];
		}
	}

	/**
	 * Transforms along an axis that is not contiguous.
	 *
	 * @param blocks how many times, {@code blockStride} apart
	 * @param imaginary where the imaginary part of an element is
	 * @param stride from element to element
	 * @param width number of transforms side by side
	 */
	private static void columns(Fft fft, double[] a, int blocks, int blockStride, int imaginary, int stride, int width,
		int sign) {
		int many = fft.many();
		int n = fft.re.length / many;
		for (int block = 0; block < blocks; block++) {
			for (int x = 0; x < width; x += many) {
				int o = block * blockStride + x;
				for (int k = 0; k < n; k++) {
					System.arraycopy(a, o + k * stride, fft.re, k * many, many);
					System.arraycopy(a, o + imaginary + k * stride, fft.im, k * many, many);
				}
				fft.transform(sign);
				double[] re = fft.resultRe();
				double[] im = fft.resultIm();
				for (int k = 0; k < n; k++) {
					System.arraycopy(re, k * many, a, o + k * stride, many);
					System.arraycopy(im, k * many, a, o + imaginary + k * stride, many);
				}
			}
		}
	}

	private void checksum(int iteration) {
		int plane = nx * yOwn;
		double re = 0;
		double im = 0;
		for (int j = 1; j <= POINTS; j++) {
			int z = 5 * j % nz - rowHere * zHere;
			int y = 3 * j % ny - inRow * yOwn;
			if (z < 0 || z >= zHere || y < 0 || y >= yOwn)
				continue;
			int at = 2 * z * plane + y * nx + j % nx;
			re += space[at];
			im += space[at + plane];
		}
		double scale = 1.0 / ((double) nx * ny * nz);
		sum[0] = re * scale;
		sum[1] = im * scale;
		comm.sum(sum, total, 2);
		checksums[2 * iteration] = total[0];
		checksums[2 * iteration + 1] = total[1];
	}

	@Override
	public double megaOperations() {
		double n = (double) nx * ny * nz;
		return 1e-6 * n * (14.8157 + 7.19641 * Math.log(n) + (5.23518 + 7.21113 * Math.log(n)) * iterations);
	}

	@Override
	public boolean verify(Report report) {
		boolean good = true;
		for (int i = 0; i < iterations; i++) {
			good &= report.near("T=" + (i + 1) + " real", checksums[2 * i], expected[2 * i], TOLERANCE);
			good &= report.near("T=" + (i + 1) + " imag", checksums[2 * i + 1], expected[2 * i + 1], TOLERANCE);
		}
		return good;
	}
}
