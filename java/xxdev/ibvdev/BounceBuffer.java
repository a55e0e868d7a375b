// SPDX-License-Identifier: MIT
package xxdev.ibvdev;

import java.nio.ByteBuffer;
import java.nio.CharBuffer;
import java.nio.DoubleBuffer;
import java.nio.FloatBuffer;
import java.nio.IntBuffer;
import java.nio.LongBuffer;
import java.nio.ShortBuffer;
import xdev.ibvdev.ResultBlock;

/**
 * Native memory through which short arrays pass: compiled code copies a few bytes there and back for less than it costs a native method to ask the JVM
 * for them (bench/RESULTS.md has the measurements).
 */
final class BounceBuffer {
	/** Arrays up to this size pass through it. */
	static final int BYTES = ResultBlock.BOUNCE_BYTES;

	/** As an array reference: (bytes, MEMORY, 0, length). */
	final ByteBuffer bytes;
	private final CharBuffer chars;
	private final ShortBuffer shorts;
	private final IntBuffer ints;
	private final LongBuffer longs;
	private final FloatBuffer floats;
	private final DoubleBuffer doubles;

	/** Over so many direct bytes in the machine's order. */
	BounceBuffer(ByteBuffer bytes) {
		this.bytes = bytes;
		chars = bytes.asCharBuffer();
		shorts = bytes.asShortBuffer();
		ints = bytes.asIntBuffer();
		longs = bytes.asLongBuffer();
		floats = bytes.asFloatBuffer();
		doubles = bytes.asDoubleBuffer();
	}

	/** Does it hold so many elements of a primitive array? */
	static boolean holds(int kind, int count) {
		return kind > Native.BOOLEAN && count <= BYTES >> Word.shift(kind);
	}

	/** Elements from..from+count of an array of that kind are copied to its beginning. */
	void put(int kind, Object array, int from, int count) {
		switch (kind) {
		case Native.BYTE:
			bytes.clear();
			bytes.put((byte[]) array, from, count);
			break;
		case Native.CHAR:
			chars.clear();
			chars.put((char[]) array, from, count);
			break;
		case Native.SHORT:
			shorts.clear();
			shorts.put((short[]) array, from, count);
			break;
		case Native.INT:
			ints.clear();
			ints.put((int[]) array, from, count);
			break;
		case Native.LONG:
			longs.clear();
			longs.put((long[]) array, from, count);
			break;
		case Native.FLOAT:
			floats.clear();
			floats.put((float[]) array, from, count);
			break;
		default:
			doubles.clear();
			doubles.put((double[]) array, from, count);
		}
	}

	/** Copies back to the array. */
	void get(int kind, Object array, int from, int count) {
		switch (kind) {
		case Native.BYTE:
			bytes.clear();
			bytes.get((byte[]) array, from, count);
			break;
		case Native.CHAR:
			chars.clear();
			chars.get((char[]) array, from, count);
			break;
		case Native.SHORT:
			shorts.clear();
			shorts.get((short[]) array, from, count);
			break;
		case Native.INT:
			ints.clear();
			ints.get((int[]) array, from, count);
			break;
		case Native.LONG:
			longs.clear();
			longs.get((long[]) array, from, count);
			break;
		case Native.FLOAT:
			floats.clear();
			floats.get((float[]) array, from, count);
			break;
		default:
			doubles.clear();
			doubles.get((double[]) array, from, count);
		}
	}
}
