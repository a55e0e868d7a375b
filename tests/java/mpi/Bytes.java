// SPDX-License-Identifier: MIT
package mpitest;

import java.nio.ByteBuffer;

/** Byte payloads of any size, made and checked eight bytes at a time so that megabytes cost little. */
final class Bytes {
	private Bytes() {}

	static byte[] of(long seed, int length) {
		byte[] bytes = new byte[length];
		fill(bytes, 0, length, seed);
		return bytes;
	}

	static void fill(byte[] bytes, int offset, int length, long seed) {
		ByteBuffer out = ByteBuffer.wrap(bytes, offset, length);
		long state = Check.mix(seed ^ length);
		while (out.remaining() >= 8) {
			out.putLong(state);
			state = next(state);
		}
		while (out.hasRemaining()) {
			out.put((byte) state);
			state = next(state);
		}
	}

	static void check(byte[] bytes, int offset, int length, long seed, String what) {
		ByteBuffer in = ByteBuffer.wrap(bytes, offset, length);
		long state = Check.mix(seed ^ length);
		while (in.remaining() >= 8) {
			if (in.getLong() != state) {
				Check.fail("%s: message of %d bytes differs between byte %d and %d", what, length, in.position() - 8 - offset, in.position() - 1 - offset);
			}
			state = next(state);
		}
		while (in.hasRemaining()) {
			if (in.get() != (byte) state) {
				Check.fail("%s: message of %d bytes differs at byte %d", what, length, in.position() - 1 - offset);
			}
			state = next(state);
		}
	}

	private static long next(long state) {
		return state * 6364136223846793005L + 1442695040888963407L;
	}
}
