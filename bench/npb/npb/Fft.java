// SPDX-License-Identifier: MIT
package npb;

/**
 * Many complex Fourier transforms of one length (a power of two) at once, by Stockham's algorithm, radix 4.
 *
 * <p>Element k of transform b is at {@code re[k * many + b]}, {@code im[k * many + b]}; so each inner loop goes through
 * contiguous memory.  Not scaled.
 */
final class Fft {
	final double[] re;
	final double[] im;

	private final int n;
	private final int many;
	private final double[] otherRe;
	private final double[] otherIm;
	private final double[] cos;
	private final double[] sin;
	/** Where the data are: the two pairs of arrays take turns. */
	private double[] xr;
	private double[] xi;
	private double[] yr;
	private double[] yi;

	Fft(int n, int many) {
		this.n = n;
		this.many = many;
		re = new double[n * many];
		im = new double[n * many];
		otherRe = new double[n * many];
		otherIm = new double[n * many];
		cos = new double[n];
		sin = new double[n];
		for (int k = 0; k < n; k++) {
			cos[k] = Math.cos(2 * Math.PI * k / n);
			sin[k] = Math.sin(2 * Math.PI * k / n);
		}
	}

	/** How many transforms are made at once. */
	int many() {
		return many;
	}

	/**
	 * Transforms {@link #re}, {@link #im} into {@link #resultRe} and {@link #resultIm}.
	 *
	 * @param sign of the exponent
	 */
	void transform(int sign) {
		xr = re;
		xi = im;
		yr = otherRe;
		yi = otherIm;
		int stride = many;
		int length = n;
		for (; length >= 4; length /= 4, stride *= 4) {
			int quarter = length / 4;
			int step = n / length;
			for (int p = 0; p < quarter; p++)
				radix4(p, quarter, stride, step, sign);
			swap();
		}
		if (length == 2) {
			radix2(xr, yr, stride);
			radix2(xi, yi, stride);
			swap();
		}
	}

	double[] resultRe() {
		return xr;
	}

	double[] resultIm() {
		return xi;
	}

	private void swap() {
		double[] t = xr;
		xr = yr;
		yr = t;
		t = xi;
		xi = yi;
		yi = t;
	}

	private static void radix2(double[] x, double[] y, int stride) {
		for (int q = 0; q < stride; q++) {
			y[q] = x[q] + x[q + stride];
			y[q + stride] = x[q] - x[q + stride];
		}
	}

	private void radix4(int p, int quarter, int stride, int step, int sign) {
		int k = p * step;
		butterfly(xr, xi, yr, yi, stride * p, stride * quarter, 4 * stride * p, stride, sign, cos[k], sign * sin[k],
			cos[2 * k], sign * sin[2 * k], cos[3 * k], sign * sin[3 * k]);
	}

	private static void butterfly(double[] xr, double[] xi, double[] yr, double[] yi, int x0, int xStep, int y0,
		int stride, double sign, double c1, double s1, double c2, double s2, double c3, double s3) {
		int x1 = x0 + xStep;
		int x2 = x1 + xStep;
		int x3 = x2 + xStep;
		int y1 = y0 + stride;
		int y2 = y1 + stride;
		int y3 = y2 + stride;
		for (int q = 0; q < stride; q++) {
			double plusR = xr[x0 + q] + xr[x2 + q];
			double plusI = xi[x0 + q] + xi[x2 + q];
			double minusR = xr[x0 + q] - xr[x2 + q];
			double minusI = xi[x0 + q] - xi[x2 + q];
			double oddPlusR = xr[x1 + q] + xr[x3 + q];
			double oddPlusI = xi[x1 + q] + xi[x3 + q];
			double turnedR = sign * (xi[x3 + q] - xi[x1 + q]);
			double turnedI = sign * (xr[x1 + q] - xr[x3 + q]);
			yr[y0 + q] = plusR + oddPlusR;
			yi[y0 + q] = plusI + oddPlusI;
			double r1 = minusR + turnedR;
			double i1 = minusI + turnedI;
			yr[y1 + q] = r1 * c1 - i1 * s1;
			yi[y1 + q] = r1 * s1 + i1 * c1;
			double r2 = plusR - oddPlusR;
			double i2 = plusI - oddPlusI;
			yr[y2 + q] = r2 * c2 - i2 * s2;
			yi[y2 + q] = r2 * s2 + i2 * c2;
			double r3 = minusR - turnedR;
			double i3 = minusI - turnedI;
			yr[y3 + q] = r3 * c3 - i3 * s3;
			yi[y3 + q] = r3 * s3 + i3 * c3;
		}
	}
}
