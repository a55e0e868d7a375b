// SPDX-License-Identifier: MIT
package xxdev.ibvdev;

import java.lang.reflect.Array;
import java.nio.Buffer;
import xxdev.Type;

/**
 * What a program names as the source or target of a message, as the natives take it: see Native, "an array reference". Of objects and Strings only the
 * target is one: memory of the library. Immutable.
 */
final class ArrayRef {
	private static final Type[] TYPES = Type.values();

	/** The natives' four arguments. */
	final Object memory;
	final int nativeKind;
	final long offset;
	final long length;
	/** The message's type when sent; its lowest bits are what a receive wants, 0: anything. */
	final long word;
	/** What the program named, and which elements of it. */
	final Object buf;
	final int from;
	final int count;
	/** memory is a copy of a buffer or segment in which the natives cannot work. */
	final boolean copied;

	private ArrayRef(Object memory, int nativeKind, long offset, long length, long word, Object buf, int from, int count, boolean copied) {
		this.memory = memory;
		this.nativeKind = nativeKind;
		this.offset = offset;
		this.length = length;
		this.word = word;
		this.buf = buf;
		this.from = from;
		this.count = count;
		this.copied = copied;
	}

	/** The kind of a primitive array, 0 to 7; -1: it is something else. */
	static int kindOf(Object buf) {
		if (buf instanceof byte[])
			return Native.BYTE;
		if (buf instanceof double[])
			return Native.DOUBLE;
		if (buf instanceof int[])
			return Native.INT;
		if (buf instanceof long[])
			return Native.LONG;
		if (buf instanceof float[])
			return Native.FLOAT;
		if (buf instanceof char[])
			return Native.CHAR;
		if (buf instanceof short[])
			return Native.SHORT;
		return buf instanceof boolean[] ? Native.BOOLEAN : -1;
	}

	/** Elements from..from+count of a primitive array. */
	static ArrayRef array(int kind, Object buf, int from, int count) {
		int shift = Word.shift(kind);
		return new ArrayRef(buf, kind, (long) from << shift, (long) count << shift, Word.elements(kind, count), buf, from, count, false);
	}

	/** A String: its characters, as few bytes as they need. */
	static ArrayRef text(String text) {
		Object characters = Arrival.encoded(text);
		int kind = kindOf(characters);
		long length = (long) Array.getLength(characters) << Word.shift(kind);
		return new ArrayRef(characters, kind, 0, length, Word.string(kind == Native.CHAR), text, 0, 1, false);
	}

	/** Serialized objects. */
	static ArrayRef packed(byte[] bytes, int length, long word) {
		return new ArrayRef(bytes, Native.BYTE, 0, length, word, bytes, 0, length, false);
	}

	/** Refuses what is not a portion of something with so many elements. */
	static void check(String operation, Object buf, int size, int from, int count) {
		if (from < 0 || count < 0 || from > size - count)
			throw Errors.argument(operation + ": offset " + from + ", count " + count + " is not a portion of "
					+ (buf instanceof Buffer ? buf.getClass().getSimpleName() + " with limit " + size : name(buf, size)));
	}

	/** A buffer, a segment or an array of arrays of primitives; null: something else. */
	static ArrayRef of(String operation, Object buf, int from, int count, boolean receive) {
		if (buf instanceof Buffer)
			return buffer(operation, (Buffer) buf, from, count, receive);
		if (Segments.is(buf))
			return segment(operation, buf, from, count, receive);
		int depth = Rows.depth(buf);
		return depth < 2 ? null : rows(operation, (Object[]) buf, from, count, depth);
	}

	private static ArrayRef buffer(String operation, Buffer buf, int from, int count, boolean receive) {
		int kind = Buffers.kind(buf);
		int start = count == Message.ALL ? buf.position() : from;
		int elements = count == Message.ALL ? buf.remaining() : count;
		check(operation, buf, buf.limit(), start, elements);
		if (receive && buf.isReadOnly())
			throw Errors.argument(operation + ": the " + buf.getClass().getSimpleName() + " is read-only");
		long word = Word.elements(kind, elements);
		int shift = Word.shift(kind);
		if (buf.isDirect() && Buffers.isNativeOrder(buf))
			return new ArrayRef(buf, Native.MEMORY, (long) start << shift, (long) elements << shift, word, buf, start, elements, false);
		if (buf.hasArray())
			return new ArrayRef(buf.array(), kind, (long) (buf.arrayOffset() + start) << shift, (long) elements << shift, word, buf, start, elements, false);
		if ((long) elements << shift > Integer.MAX_VALUE - 16)
			throw Errors.argument(operation + ": a " + buf.getClass().getSimpleName() + " of " + elements + " elements in another byte order than the "
					+ "machine's is too long: 2 GB are the most; use ByteOrder.nativeOrder()");
		byte[] copy = receive ? new byte[elements << shift] : Buffers.copy(kind, buf, start, elements);
		return new ArrayRef(copy, Native.BYTE, 0, copy.length, word, buf, start, elements, true);
	}

	private static ArrayRef segment(String operation, Object segment, int from, int count, boolean receive) {
		long size = Segments.size(segment);
		int start = count == Message.ALL ? 0 : from;
		long bytes = count == Message.ALL ? size : count;
		if (start < 0 || bytes < 0 || start > size - bytes)
			throw Errors.argument(operation + ": offset " + start + ", count " + bytes + " is not a portion of a MemorySegment of " + size
					+ (size == 1 ? " byte" : " bytes"));
		if (receive && Segments.isReadOnly(segment))
			throw Errors.argument(operation + ": the MemorySegment is read-only");
		Segments.check(operation, segment);
		if (bytes > Integer.MAX_VALUE)
			throw Errors.argument(operation + ": a MemorySegment of " + bytes + " bytes is too long: " + Integer.MAX_VALUE
					+ " are the most in one message; use an offset and a count, or slices");
		int length = (int) bytes;
		long word = Word.elements(Native.BYTE, length);
		if (length > 0 && Segments.isGlobal(segment))
			return new ArrayRef(Segments.buffer(segment, start, length), Native.MEMORY, 0, length, word, segment, start, length, false);
		Object array = Segments.array(segment);
		if (array != null) {
			int kind = kindOf(array);
			long at = Segments.offset(segment) + start;
			long within = (at | length) & (1L << Word.shift(kind)) - 1;
			/* The natives copy whole elements, and a message need not consist of these. */
			if (kind == Native.BYTE || !receive && within == 0)
				return new ArrayRef(array, kind, at, length, word, segment, start, length, false);
		}
		if (length > Integer.MAX_VALUE - 16)
			throw Errors.argument(
					operation + ": a MemorySegment of " + length + " bytes that must be copied is too long: use less, or memory of Arena.global()");
		byte[] copy = receive ? new byte[length] : Segments.copy(operation, segment, start, length);
		return new ArrayRef(copy, Native.BYTE, 0, length, word, segment, start, length, true);
	}

	private static ArrayRef rows(String operation, Object[] buf, int from, int count, int depth) {
		int rows = count == Message.ALL ? buf.length : count;
		int first = count == Message.ALL ? 0 : from;
		check(operation, buf, buf.length, first, rows);
		int kind = Rows.kind(buf);
		Object[] leaves = Rows.leaves(operation, buf, first, rows, depth);
		long word = Word.rows(kind, rows, depth, Rows.checksum(buf, first, rows, depth));
		return new ArrayRef(leaves, Native.ROWS + kind, 0, leaves.length, word, buf, first, rows, false);
	}

	/** Where objects and Strings are received. */
	static ArrayRef objects(Object[] buf, int from, int count, long limit) {
		return new ArrayRef(null, Native.BODY, 0, limit, 0, buf, from, count, false);
	}

	/** Is it a part of a primitive array that passes through a bounce buffer? */
	boolean isShort() {
		return nativeKind < Native.MEMORY && !copied && BounceBuffer.holds(nativeKind, (int) (length >> Word.shift(nativeKind)));
	}

	/** Brings so many bytes from the bounce buffer to the array. */
	void fill(BounceBuffer bounce, long bytes) {
		int shift = Word.shift(nativeKind);
		bounce.get(nativeKind, memory, (int) (offset >> shift), (int) (bytes >> shift));
	}

	/** Brings a received message from the copy to the buffer or segment. False: the arena of the segment was closed. */
	boolean deliver(long received) {
		if (copied && !(buf instanceof Buffer))
			return Segments.put(buf, from, Word.count(received), (byte[]) memory);
		if (copied)
			Buffers.put(Word.code(word) - 1, (Buffer) buf, from, Word.count(received), (byte[]) memory);
		return true;
	}

	/** Refuses a thread that cannot deliver: of a receive into a copy of another thread's confined segment. */
	void checkThread(String operation) {
		if (copied && !(buf instanceof Buffer))
			Segments.checkThread(operation, buf);
	}

	/** "room for 50 int (int[80], elements 20 to 69)". */
	String text() {
		if (nativeKind == Native.BODY)
			return "room for " + count + (count == 1 ? " object (" : " objects (") + name(buf, Array.getLength(buf)) + portion() + ")";
		Type type = TYPES[(Word.code(word) & 0xf) - 1];
		String name = buf instanceof Buffer ? buf.getClass().getSimpleName() : buf.getClass().isArray() ? name(buf, Array.getLength(buf)) : "MemorySegment";
		return "room for " + Word.text(type, count, Word.depth(word)) + " (" + name + portion() + ")";
	}

	private String portion() {
		boolean all = buf.getClass().isArray() && from == 0 && count == Array.getLength(buf);
		return all || count == 0 ? "" : ", elements " + from + " to " + (from + count - 1);
	}

	/** "int[80]", "double[3][]", "String[1]". */
	static String name(Object array, int length) {
		Class<?> type = array.getClass();
		StringBuilder more = new StringBuilder();
		while (type.getComponentType() != null && type.getComponentType().isArray()) {
			type = type.getComponentType();
			more.append("[]");
		}
		String element = type.isArray() ? type.getComponentType().getSimpleName() : type.getSimpleName();
		return element + "[" + length + "]" + more;
	}
}
