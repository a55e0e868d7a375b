// SPDX-License-Identifier: MIT
package mpitest;

/** The few assertions the programs need; a failed one prints what was expected and what was found. */
final class Check {
	private Check() {}

	/** Thrown by a failed check; the program prints it and exits non-zero. */
	static final class Failed extends RuntimeException {
		private static final long serialVersionUID = 1L;

		Failed(String text) {
			super(text);
		}
	}

	static Failed fail(String format, Object... args) {
		throw new Failed(String.format(format, args));
	}

	static void that(boolean ok, String format, Object... args) {
		if (!ok) {
			fail(format, args);
		}
	}

	static void eq(long want, long got, String format, Object... args) {
		if (want != got) {
			fail("%s: expected %d, got %d", String.format(format, args), want, got);
		}
	}

	static void same(Object want, Object got, String format, Object... args) {
		if (!java.util.Objects.deepEquals(want, got)) {
			fail("%s: expected %s, got %s", String.format(format, args), show(want), show(got));
		}
	}

	private static String show(Object value) {
		String text = java.util.Arrays.deepToString(new Object[] {value});
		return text.length() > 300 ? text.substring(0, 300) + "..." : text;
	}

	/** A deterministic 64-bit value from a seed: the same on every rank, so contents can be recomputed. */
	static long mix(long seed) {
		long z = seed * 0x9E3779B97F4A7C15L + 0x632BE59BD9B4E019L;
		z = (z ^ (z >>> 30)) * 0xBF58476D1CE4E5B9L;
		z = (z ^ (z >>> 27)) * 0x94D049BB133111EBL;
		return z ^ (z >>> 31);
	}
}
