// SPDX-License-Identifier: MIT
package xxdev.ibvdev;

import java.util.Locale;
import xxdev.Type;

/**
 * The type of a message, the envelope's user word.
 *
 * <pre>
 *   bits 0..7    code: 1 to 8 elements of a primitive type (kind + 1), 9 a String, 10 objects, 16 + 1..8 rows of a primitive type,
 *                127 class descriptors (the device's own)
 *   bits 8..15   rows: dimensions; Strings: 0 for ISO 8859-1, 1 for 16-bit characters
 *   bits 16..31  rows of three and more dimensions: a checksum of the upper dimensions
 *   bits 32..63  elements; rows; objects (31 bits)
 * </pre>
 */
final class Word {
	static final int STRING = 9;
	static final int OBJECT = 10;
	static final int ROWS = 16;
	static final int DESCRIPTORS = 127;
	private static final Type[] TYPES = Type.values();
	/** By kind: log2 of the bytes of an element. */
	private static final byte[] SHIFT = {0, 0, 1, 1, 2, 3, 2, 3};

	private Word() {}

	static int shift(int kind) {
		return SHIFT[kind];
	}

	/** Of count elements of a primitive type. */
	static long elements(int kind, int count) {
		return (long) count << 32 | kind + 1;
	}

	static long rows(int kind, int count, int depth, int checksum) {
		return (long) count << 32 | (long) (checksum & 0xffff) << 16 | (long) depth << 8 | ROWS + kind + 1;
	}

	static long string(boolean wide) {
		return 1L << 32 | (wide ? 1 << 8 : 0) | STRING;
	}

	static long objects(int count) {
		return (long) count << 32 | OBJECT;
	}

	static int code(long word) {
		return (int) word & 0xff;
	}

	static int count(long word) {
		return (int) (word >>> 32);
	}

	static int checksum(long word) {
		return (int) word >>> 16 & 0xffff;
	}

	static boolean wide(long word) {
		return (word & 1 << 8) != 0;
	}

	/** 2 for rows of an int[][]; else 1. */
	static int depth(long word) {
		return isRows(word) ? Math.max(2, (int) word >>> 8 & 0xff) : 1;
	}

	private static boolean isRows(long word) {
		return code(word) > ROWS && code(word) <= ROWS + 8;
	}

	/** Null for a word that no process sends. */
	static Type type(long word) {
		int code = isRows(word) ? code(word) - ROWS : code(word);
		return code >= 1 && code <= TYPES.length ? TYPES[code - 1] : null;
	}

	/** "10 int", "4 rows of int[][]", "a String", "3 objects". */
	static String text(long word) {
		Type type = type(word);
		if (type == null)
			return "something of the unknown type " + code(word);
		return text(type, count(word), depth(word));
	}

	static String text(Type type, int count, int depth) {
		String name = type.name().toLowerCase(Locale.ROOT);
		if (depth > 1)
			return count + (count == 1 ? " row" : " rows") + " of " + name + "[]".repeat(depth);
		if (type == Type.STRING)
			return "a String";
		if (type == Type.OBJECT)
			return count == 1 ? "1 object" : count + " objects";
		return count + " " + name;
	}
}
