// SPDX-License-Identifier: MIT
package mpi;

import java.nio.Buffer;
import java.nio.ByteBuffer;
import java.nio.CharBuffer;
import java.nio.DoubleBuffer;
import java.nio.FloatBuffer;
import java.nio.IntBuffer;
import java.nio.LongBuffer;
import java.nio.ShortBuffer;

/** The basic kinds of elements, numbered as the device numbers them, and arrays and java.nio buffers of them. */
final class Kinds {
	static final int BOOLEAN = 0;
	static final int BYTE = 1;
	static final int CHAR = 2;
	static final int SHORT = 3;
	static final int INT = 4;
	static final int LONG = 5;
	static final int FLOAT = 6;
	static final int DOUBLE = 7;
	static final int OBJECT = 8;
	private static final byte[] SHIFT = {0, 0, 1, 1, 2, 3, 2, 3, 0};
	private static final String[] NAMES = {"boolean", "byte", "char", "short", "int", "long", "float", "double", "Object"};

	private Kinds() {}

	/** log2 of the bytes of an element. */
	static int shift(int kind) {
		return SHIFT[kind];
	}

	static String name(int kind) {
		return NAMES[kind];
	}

	/** Of an array or java.nio buffer; -1: it is neither. A ByteBuffer is of kind BYTE. */
	static int of(Object buf) {
		if (buf instanceof double[] || buf instanceof DoubleBuffer)
			return DOUBLE;
		if (buf instanceof int[] || buf instanceof IntBuffer)
			return INT;
		if (buf instanceof byte[] || buf instanceof ByteBuffer)
			return BYTE;
		if (buf instanceof long[] || buf instanceof LongBuffer)
			return LONG;
		if (buf instanceof float[] || buf instanceof FloatBuffer)
			return FLOAT;
		if (buf instanceof char[] || buf instanceof CharBuffer)
			return CHAR;
		if (buf instanceof short[] || buf instanceof ShortBuffer)
			return SHORT;
		if (buf instanceof boolean[])
			return BOOLEAN;
		return buf instanceof Object[] ? OBJECT : -1;
	}

	/** How many elements an array or buffer has. */
	static int length(Object buf) {
		return buf instanceof Buffer ? ((Buffer) buf).limit() : java.lang.reflect.Array.getLength(buf);
	}

	/** A new array. */
	static Object array(int kind, int length) {
		switch (kind) {
		case BOOLEAN:
			return new boolean[length];
		case BYTE:
			return new byte[length];
		case CHAR:
			return new char[length];
		case SHORT:
			return new short[length];
		case INT:
			return new int[length];
		case LONG:
			return new long[length];
		case FLOAT:
			return new float[length];
		case DOUBLE:
			return new double[length];
		default:
			return new Object[length];
		}
	}

	/** A view of the bytes as elements of another kind, in the buffer's byte order. */
	static Buffer view(int kind, ByteBuffer bytes) {
		ByteBuffer all = bytes.duplicate().order(bytes.order());
		all.position(0);
		switch (kind) {
		case CHAR:
			return all.asCharBuffer();
		case SHORT:
			return all.asShortBuffer();
		case INT:
			return all.asIntBuffer();
		case LONG:
			return all.asLongBuffer();
		case FLOAT:
			return all.asFloatBuffer();
		case DOUBLE:
			return all.asDoubleBuffer();
		default:
			return all;
		}
	}

	/** Copies between arrays and buffers of one kind, of which one at least is an array. */
	static void copy(Object from, int at, Object to, int where, int count) {
		if (from instanceof Buffer)
			get(((Buffer) from).duplicate(), at, to, where, count);
		else if (to instanceof Buffer)
			put(from, at, ((Buffer) to).duplicate(), where, count);
		else
			System.arraycopy(from, at, to, where, count);
	}

	/** Out of a buffer whose position may change. */
	static void get(Buffer view, int at, Object to, int where, int count) {
		view.position(at);
		if (view instanceof ByteBuffer)
			((ByteBuffer) view).get((byte[]) to, where, count);
		else if (view instanceof CharBuffer)
			((CharBuffer) view).get((char[]) to, where, count);
		else if (view instanceof ShortBuffer)
			((ShortBuffer) view).get((short[]) to, where, count);
		else if (view instanceof IntBuffer)
			((IntBuffer) view).get((int[]) to, where, count);
		else if (view instanceof LongBuffer)
			((LongBuffer) view).get((long[]) to, where, count);
		else if (view instanceof FloatBuffer)
			((FloatBuffer) view).get((float[]) to, where, count);
		else
			((DoubleBuffer) view).get((double[]) to, where, count);
	}

	/** Into a buffer whose position may change. */
	static void put(Object from, int at, Buffer view, int where, int count) {
		view.position(where);
		if (view instanceof ByteBuffer)
			((ByteBuffer) view).put((byte[]) from, at, count);
		else if (view instanceof CharBuffer)
			((CharBuffer) view).put((char[]) from, at, count);
		else if (view instanceof ShortBuffer)
			((ShortBuffer) view).put((short[]) from, at, count);
		else if (view instanceof IntBuffer)
			((IntBuffer) view).put((int[]) from, at, count);
		else if (view instanceof LongBuffer)
			((LongBuffer) view).put((long[]) from, at, count);
		else if (view instanceof FloatBuffer)
			((FloatBuffer) view).put((float[]) from, at, count);
		else
			((DoubleBuffer) view).put((double[]) from, at, count);
	}

	/** Copies every stride-th element of an array to consecutive ones (out) or back. */
	static void strided(int kind, boolean out, Object spread, int at, int stride, Object dense, int where, int count) {
		switch (kind) {
		case DOUBLE:
			doubles(out, (double[]) spread, at, stride, (double[]) dense, where, count);
			break;
		case INT:
			ints(out, (int[]) spread, at, stride, (int[]) dense, where, count);
			break;
		case FLOAT:
			floats(out, (float[]) spread, at, stride, (float[]) dense, where, count);
			break;
		default:
			for (int i = 0; i < count; i++) {
				if (out)
					System.arraycopy(spread, at + i * stride, dense, where + i, 1);
				else
					System.arraycopy(dense, where + i, spread, at + i * stride, 1);
			}
		}
	}

	private static void doubles(boolean out, double[] spread, int at, int stride, double[] dense, int where, int count) {
		if (out)
			for (int i = 0; i < count; i++)
				dense[where + i] = spread[at + i * stride];
		else
			for (int i = 0; i < count; i++)
				spread[at + i * stride] = dense[where + i];
	}

	private static void ints(boolean out, int[] spread, int at, int stride, int[] dense, int where, int count) {
		if (out)
			for (int i = 0; i < count; i++)
				dense[where + i] = spread[at + i * stride];
		else
			for (int i = 0; i < count; i++)
				spread[at + i * stride] = dense[where + i];
	}

	private static void floats(boolean out, float[] spread, int at, int stride, float[] dense, int where, int count) {
		if (out)
			for (int i = 0; i < count; i++)
				dense[where + i] = spread[at + i * stride];
		else
			for (int i = 0; i < count; i++)
				spread[at + i * stride] = dense[where + i];
	}
}
