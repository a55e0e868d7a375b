// SPDX-License-Identifier: MIT
package apps;

/**
 * The block cipher IDEA (Lai and Massey, 1990/91): blocks of 64 bits, a key of 128, eight rounds and a half of
 * additions mod 2^16, multiplications mod 2^16 + 1 (where 0 stands for 2^16) and exclusive ors.
 */
final class Idea {
	static final int BLOCK_BYTES = 8;

	private static final int ROUNDS = 8;
	private static final int KEYS = 6 * ROUNDS + 4;
	private static final int KEY_WORDS = 8;
	private static final int MASK = 0xffff;
	private static final int PRIME = 0x10001;

	private Idea() {}

	/** The 52 keys of encryption from the eight words of the user's key: words of it, turned left by 25 bits each time. */
	static int[] encryptionKeys(int[] user) {
		int[] keys = new int[KEYS];
		for (int i = 0; i < KEYS; i++) {
			int firstBit = (i / KEY_WORDS * 25 + i % KEY_WORDS * 16) % 128;
			int word = firstBit / 16;
			int two = user[word] << 16 | user[(word + 1) % KEY_WORDS];
			keys[i] = two >>> 16 - firstBit % 16 & MASK;
		}
		return keys;
	}

	/** The keys that undo what {@code keys} do: their inverses, last first. */
	static int[] decryptionKeys(int[] keys) {
		int[] inverse = new int[KEYS];
		for (int round = 0; round <= ROUNDS; round++) {
			int to = 6 * round;
			int from = 6 * (ROUNDS - round);
			boolean straight = round == 0 || round == ROUNDS; // in between a round swaps the middle words
			inverse[to] = inverse(keys[from]);
			inverse[to + 1] = -keys[from + (straight ? 1 : 2)] & MASK;
			inverse[to + 2] = -keys[from + (straight ? 2 : 1)] & MASK;
			inverse[to + 3] = inverse(keys[from + 3]);
			if (round < ROUNDS) {
				inverse[to + 4] = keys[from - 2];
				inverse[to + 5] = keys[from - 1];
			}
		}
		return inverse;
	}

	/** 1 / x, which is x^(p-2). */
	private static int inverse(int x) {
		long result = 1;
		long square = x == 0 ? MASK + 1 : x;
		for (int n = PRIME - 2; n > 0; n >>= 1) {
			if ((n & 1) != 0)
				result = result * square % PRIME;
			square = square * square % PRIME;
		}
		return (int) result & MASK;
	}

	private static int times(int a, int b) {
		int product = a * b; // 32 bits without sign
		if (product == 0)
			return 1 - a - b & MASK;
		// 2^16 is -1, so the upper half is to be subtracted from the lower.
		int difference = (product & MASK) - (product >>> 16);
		return difference + (difference >>> 31) & MASK;
	}

	/** Encrypts or decrypts, as the keys are; {@code count} bytes, a multiple of {@link #BLOCK_BYTES}. */
	static void cipher(byte[] in, byte[] out, int count, int[] keys) {
		for (int at = 0; at < count; at += BLOCK_BYTES)
			block(in, out, at, keys);
	}

	private static void block(byte[] in, byte[] out, int at, int[] keys) {
		int a = get(in, at);
		int b = get(in, at + 2);
		int c = get(in, at + 4);
		int d = get(in, at + 6);
		for (int k = 0; k < 6 * ROUNDS; k += 6) {
			a = times(a, keys[k]);
			b = b + keys[k + 1] & MASK;
			c = c + keys[k + 2] & MASK;
			d = times(d, keys[k + 3]);
			int t = times(a ^ c, keys[k + 4]);
			int u = times((b ^ d) + t & MASK, keys[k + 5]);
			t = t + u & MASK;
			a ^= u;
			d ^= t;
			int swapped = b ^ t;
			b = c ^ u;
			c = swapped;
		}
		put(out, at, times(a, keys[KEYS - 4]));
		put(out, at + 2, c + keys[KEYS - 3]);
		put(out, at + 4, b + keys[KEYS - 2]);
		put(out, at + 6, times(d, keys[KEYS - 1]));
	}

	private static int get(byte[] bytes, int at) {
		return (bytes[at] & 0xff) << 8 | bytes[at + 1] & 0xff;
	}

	private static void put(byte[] bytes, int at, int word) {
		bytes[at] = (byte) (word >> 8);
		bytes[at + 1] = (byte) word;
	}
}
