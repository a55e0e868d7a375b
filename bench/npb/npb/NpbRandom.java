// SPDX-License-Identifier: MIT
package npb;

/**
 * The generator of the NAS Parallel Benchmarks: x(k+1) = a x(k) mod 2^46, uniform numbers x(k) 2^-46.
 *
 * <p>2^46 divides 2^64, so the product of two longs may overflow: its lower 46 bits are right.
 */
final class NpbRandom {
	/** The multiplier of all kernels, 5^13. */
	static final long A = 1220703125L;
	/** The seed of all kernels but EP. */
	static final long SEED = 314159265L;

	private static final long MASK = (1L << 46) - 1;
	private static final double SCALE = 0x1p-46;
	private static final int LANES = 4;

	private long x;

	NpbRandom(long seed) {
		x = seed;
	}

	/** The generator that follows after {@code count} numbers. */
	static NpbRandom after(long seed, long count) {
		return new NpbRandom(seed * power(A, count) & MASK);
	}

	/** a^n mod 2^46. */
	static long power(long a, long n) {
		long result = 1;
		for (long square = a & MASK; n > 0; n >>= 1) {
			if ((n & 1) != 0)
				result = result * square & MASK;
			square = square * square & MASK;
		}
		return result;
	}

	/** The next number in (0, 1). */
	double next() {
		x = x * A & MASK;
		return x * SCALE;
	}

	/** The next numbers into {@code out[offset] ... out[offset + count - 1]}. */
	void fill(double[] out, int offset, int count) {
		// Four sequences, each four steps at a time: a chain of multiplications would set the pace.
		long x0 = x * A & MASK;
		long x1 = x0 * A & MASK;
		long x2 = x1 * A & MASK;
		long x3 = x2 * A & MASK;
		long step = power(A, LANES);
		int i = 0;
		for (; i + LANES <= count; i += LANES) {
			out[offset + i] = x0 * SCALE;
			out[offset + i + 1] = x1 * SCALE;
			out[offset + i + 2] = x2 * SCALE;
			out[offset + i + 3] = x3 * SCALE;
			x = x3;
			x0 = x0 * step & MASK;
			x1 = x1 * step & MASK;
			x2 = x2 * step & MASK;
			x3 = x3 * step & MASK;
		}
		for (; i < count; i++)
			out[offset + i] = next();
	}
}
