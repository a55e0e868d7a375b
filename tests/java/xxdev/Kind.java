// SPDX-License-Identifier: MIT
package xxdevtest;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.CharBuffer;
import java.nio.DoubleBuffer;
import java.nio.FloatBuffer;
import java.nio.IntBuffer;
import java.nio.LongBuffer;
import java.nio.ShortBuffer;
import xxdev.Type;

/** Everything that holds elements: how to make it, fill it with a pattern, and look at one element. */
enum Kind {
	BOOLEANS(Type.BOOLEAN),
	BYTES(Type.BYTE),
	CHARS(Type.CHAR),
	SHORTS(Type.SHORT),
	INTS(Type.INT),
	LONGS(Type.LONG),
	FLOATS(Type.FLOAT),
	DOUBLES(Type.DOUBLE),
	HEAP(Type.BYTE),
	DIRECT(Type.BYTE),
	SLICE(Type.BYTE),
	HEAP_CHARS(Type.CHAR),
	HEAP_SHORTS(Type.SHORT),
	HEAP_INTS(Type.INT),
	HEAP_LONGS(Type.LONG),
	HEAP_FLOATS(Type.FLOAT),
	HEAP_DOUBLES(Type.DOUBLE),
	DIRECT_CHARS(Type.CHAR),
	DIRECT_SHORTS(Type.SHORT),
	DIRECT_INTS(Type.INT),
	DIRECT_LONGS(Type.LONG),
	DIRECT_FLOATS(Type.FLOAT),
	DIRECT_DOUBLES(Type.DOUBLE),
	FOREIGN_CHARS(Type.CHAR),
	FOREIGN_SHORTS(Type.SHORT),
	FOREIGN_INTS(Type.INT),
	FOREIGN_LONGS(Type.LONG),
	FOREIGN_FLOATS(Type.FLOAT),
	FOREIGN_DOUBLES(Type.DOUBLE),
	VIEW_OF_HEAP(Type.INT);

	final Type type;

	Kind(Type type) {
		this.type = type;
	}

	private static ByteOrder foreign() {
		return ByteOrder.nativeOrder() == ByteOrder.BIG_ENDIAN ? ByteOrder.LITTLE_ENDIAN : ByteOrder.BIG_ENDIAN;
	}

	/** n elements, all zero. */
	Object make(int n) {
		int bytes = n * type.bytes();
		ByteBuffer direct = name().startsWith("DIRECT") ? ByteBuffer.allocateDirect(bytes).order(ByteOrder.nativeOrder())
				: name().startsWith("FOREIGN")          ? ByteBuffer.allocateDirect(bytes).order(foreign())
														: null;
		switch (this) {
		case BOOLEANS:
			return new boolean[n];
		case BYTES:
			return new byte[n];
		case CHARS:
			return new char[n];
		case SHORTS:
			return new short[n];
		case INTS:
			return new int[n];
		case LONGS:
			return new long[n];
		case FLOATS:
			return new float[n];
		case DOUBLES:
			return new double[n];
		case HEAP:
			return ByteBuffer.allocate(n);
		case DIRECT:
			return direct;
		case SLICE:
			return ByteBuffer.allocateDirect(n + 20).position(13).limit(13 + n).slice();
		case HEAP_CHARS:
			return CharBuffer.allocate(n + 3).position(3).slice();
		case HEAP_SHORTS:
			return ShortBuffer.allocate(n);
		case HEAP_INTS:
			return IntBuffer.allocate(n + 5).position(5).slice();
		case HEAP_LONGS:
			return LongBuffer.allocate(n);
		case HEAP_FLOATS:
			return FloatBuffer.allocate(n);
		case HEAP_DOUBLES:
			return DoubleBuffer.allocate(n);
		case VIEW_OF_HEAP:
			return ByteBuffer.allocate(bytes).asIntBuffer();
		default:
			return view(direct);
		}
	}

	private Object view(ByteBuffer memory) {
		switch (type) {
		case CHAR:
			return memory.asCharBuffer();
		case SHORT:
			return memory.asShortBuffer();
		case INT:
			return memory.asIntBuffer();
		case LONG:
			return memory.asLongBuffer();
		case FLOAT:
			return memory.asFloatBuffer();
		default:
			return memory.asDoubleBuffer();
		}
	}

	/** Element i of a pattern, as a number that fits the type. */
	long pattern(long i, int seed) {
		long value = (i + 1) * 0x9E3779B97F4A7C15L + seed * 0xBF58476D1CE4E5B9L;
		switch (type) {
		case BOOLEAN:
			return value >>> 63;
		case BYTE:
			return (byte) (value >>> 40);
		case CHAR:
			return (char) (value >>> 40);
		case SHORT:
			return (short) (value >>> 40);
		case INT:
			return (int) (value >>> 20);
		case LONG:
			return value;
		default:
			return value >>> 41; /* what a float can distinguish */
		}
	}

	/** Fills elements from..from+n with the pattern's elements 0..n. */
	void fill(Object buf, int from, int n, int seed) {
		for (int i = 0; i < n; i++)
			set(buf, from + i, pattern(i, seed));
	}

	/** Elements from..from+n must be the pattern, and the others what nothing has touched: zero. */
	void verify(Object buf, int length, int from, int n, int seed) {
		for (int i = 0; i < length; i++) {
			long expected = i < from || i >= from + n ? 0 : pattern(i - from, seed);
			if (get(buf, i) != expected)
				throw new AssertionError(
						this + ": element " + i + " of " + length + " is " + get(buf, i) + ", not " + expected + " (" + n + " were received at " + from + ")");
		}
	}

	private static void set(Object buf, int i, long value) {
		if (buf instanceof boolean[])
			((boolean[]) buf)[i] = value != 0;
		else if (buf instanceof byte[])
			((byte[]) buf)[i] = (byte) value;
		else if (buf instanceof char[])
			((char[]) buf)[i] = (char) value;
		else if (buf instanceof short[])
			((short[]) buf)[i] = (short) value;
		else if (buf instanceof int[])
			((int[]) buf)[i] = (int) value;
		else if (buf instanceof long[])
			((long[]) buf)[i] = value;
		else if (buf instanceof float[])
			((float[]) buf)[i] = value;
		else if (buf instanceof double[])
			((double[]) buf)[i] = value;
		else if (buf instanceof ByteBuffer)
			((ByteBuffer) buf).put(i, (byte) value);
		else if (buf instanceof CharBuffer)
			((CharBuffer) buf).put(i, (char) value);
		else if (buf instanceof ShortBuffer)
			((ShortBuffer) buf).put(i, (short) value);
		else if (buf instanceof IntBuffer)
			((IntBuffer) buf).put(i, (int) value);
		else if (buf instanceof LongBuffer)
			((LongBuffer) buf).put(i, value);
		else if (buf instanceof FloatBuffer)
			((FloatBuffer) buf).put(i, value);
		else
			((DoubleBuffer) buf).put(i, value);
	}

	private static long get(Object buf, int i) {
		if (buf instanceof boolean[])
			return ((boolean[]) buf)[i] ? 1 : 0;
		if (buf instanceof byte[])
			return ((byte[]) buf)[i];
		if (buf instanceof char[])
			return ((char[]) buf)[i];
		if (buf instanceof short[])
			return ((short[]) buf)[i];
		if (buf instanceof int[])
			return ((int[]) buf)[i];
		if (buf instanceof long[])
			return ((long[]) buf)[i];
		if (buf instanceof float[])
			return (long) ((float[]) buf)[i];
		if (buf instanceof double[])
			return (long) ((double[]) buf)[i];
		if (buf instanceof ByteBuffer)
			return ((ByteBuffer) buf).get(i);
		if (buf instanceof CharBuffer)
			return ((CharBuffer) buf).get(i);
		if (buf instanceof ShortBuffer)
			return ((ShortBuffer) buf).get(i);
		if (buf instanceof IntBuffer)
			return ((IntBuffer) buf).get(i);
		if (buf instanceof LongBuffer)
			return ((LongBuffer) buf).get(i);
		if (buf instanceof FloatBuffer)
			return (long) ((FloatBuffer) buf).get(i);
		return (long) ((DoubleBuffer) buf).get(i);
	}
}
