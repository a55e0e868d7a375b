// SPDX-License-Identifier: MIT
package xxdev.ibvdev;

import java.nio.Buffer;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.CharBuffer;
import java.nio.DoubleBuffer;
import java.nio.FloatBuffer;
import java.nio.IntBuffer;
import java.nio.LongBuffer;
import java.nio.ShortBuffer;

/** The seven classes of java.nio buffers. Copies are in the machine's byte order, as everything that travels. */
final class Buffers {
	private Buffers() {}

	static int kind(Buffer buf) {
		if (buf instanceof ByteBuffer)
			return Native.BYTE;
		if (buf instanceof CharBuffer)
			return Native.CHAR;
		if (buf instanceof ShortBuffer)
			return Native.SHORT;
		if (buf instanceof IntBuffer)
			return Native.INT;
		if (buf instanceof LongBuffer)
			return Native.LONG;
		return buf instanceof FloatBuffer ? Native.FLOAT : Native.DOUBLE;
	}

	/** Do its elements lie in memory as the machine has them? */
	static boolean isNativeOrder(Buffer buf) {
		ByteOrder here = ByteOrder.nativeOrder();
		switch (kind(buf)) {
		case Native.BYTE:
			return true;
		case Native.CHAR:
			return ((CharBuffer) buf).order() == here;
		case Native.SHORT:
			return ((ShortBuffer) buf).order() == here;
		case Native.INT:
			return ((IntBuffer) buf).order() == here;
		case Native.LONG:
			return ((LongBuffer) buf).order() == here;
		case Native.FLOAT:
			return ((FloatBuffer) buf).order() == here;
		default:
			return ((DoubleBuffer) buf).order() == here;
		}
	}

	/** A direct ByteBuffer, which is sent without an object for each message? */
	static boolean isDirectBytes(Object buf) {
		return buf instanceof ByteBuffer && ((ByteBuffer) buf).isDirect();
	}

	/** Sends it, or so many bytes from an offset; blocks. */
	static void send(long endpoint, String operation, boolean sync, ByteBuffer buf, int offset, int count, int rank, int tag, int context) {
		int start = count == Message.ALL ? buf.position() : offset;
		int bytes = count == Message.ALL ? buf.remaining() : count;
		ArrayRef.check(operation, buf, buf.limit(), start, bytes);
		long word = Word.elements(Native.BYTE, bytes);
		int rc = sync ? Native.ssend(endpoint, buf, Native.MEMORY, start, bytes, rank, tag, context, word)
					  : Native.send(endpoint, buf, Native.MEMORY, start, bytes, rank, tag, context, word);
		if (rc < 0)
			throw Errors.sending(rc, operation, rank, tag, context);
	}

	private static ByteBuffer over(byte[] copy) {
		return ByteBuffer.wrap(copy).order(ByteOrder.nativeOrder());
	}

	/** Elements from..from+count. */
	static byte[] copy(int kind, Buffer buf, int from, int count) {
		byte[] copy = new byte[count << Word.shift(kind)];
		ByteBuffer to = over(copy);
		switch (kind) {
		case Native.BYTE:
			to.put(slice(((ByteBuffer) buf).duplicate(), from, count));
			break;
		case Native.CHAR:
			to.asCharBuffer().put(slice(((CharBuffer) buf).duplicate(), from, count));
			break;
		case Native.SHORT:
			to.asShortBuffer().put(slice(((ShortBuffer) buf).duplicate(), from, count));
			break;
		case Native.INT:
			to.asIntBuffer().put(slice(((IntBuffer) buf).duplicate(), from, count));
			break;
		case Native.LONG:
			to.asLongBuffer().put(slice(((LongBuffer) buf).duplicate(), from, count));
			break;
		case Native.FLOAT:
			to.asFloatBuffer().put(slice(((FloatBuffer) buf).duplicate(), from, count));
			break;
		default:
			to.asDoubleBuffer().put(slice(((DoubleBuffer) buf).duplicate(), from, count));
			break;
		}
		return copy;
	}

	/** The first count elements of the copy, to element from and on. */
	static void put(int kind, Buffer buf, int from, int count, byte[] copy) {
		ByteBuffer source = over(copy);
		switch (kind) {
		case Native.BYTE:
			slice(((ByteBuffer) buf).duplicate(), from, count).put(slice(source, 0, count));
			break;
		case Native.CHAR:
			slice(((CharBuffer) buf).duplicate(), from, count).put(slice(source.asCharBuffer(), 0, count));
			break;
		case Native.SHORT:
			slice(((ShortBuffer) buf).duplicate(), from, count).put(slice(source.asShortBuffer(), 0, count));
			break;
		case Native.INT:
			slice(((IntBuffer) buf).duplicate(), from, count).put(slice(source.asIntBuffer(), 0, count));
			break;
		case Native.LONG:
			slice(((LongBuffer) buf).duplicate(), from, count).put(slice(source.asLongBuffer(), 0, count));
			break;
		case Native.FLOAT:
			slice(((FloatBuffer) buf).duplicate(), from, count).put(slice(source.asFloatBuffer(), 0, count));
			break;
		default:
			slice(((DoubleBuffer) buf).duplicate(), from, count).put(slice(source.asDoubleBuffer(), 0, count));
			break;
		}
	}

	private static <B extends Buffer> B slice(B view, int from, int count) {
		view.limit(from + count);
		view.position(from);
		return view;
	}
}
