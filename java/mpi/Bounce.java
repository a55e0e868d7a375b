// SPDX-License-Identifier: MIT
package mpi;

import java.nio.Buffer;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/** Direct memory of one operation of the native library: its description, the tables of its parts, and the elements. Used by one operation at a time. */
final class Bounce {
	private static final int ALIGN = 64;
	private static final int LEAST_BYTES = 4096;
	/** So few elements are faster copied one by one. */
	private static final int FEW = 8;

	private ByteBuffer memory = ByteBuffer.allocateDirect(0);
	/** By kind: the memory as elements. */
	private Buffer[] views;
	private int end;

	/** The room that so many bytes take. */
	static long room(long bytes) {
		return bytes + ALIGN - 1 & -ALIGN;
	}

	/** Begins an operation that takes so much room, the first headBytes of it for its description. */
	void begin(String operation, int headBytes, long bytes) {
		end = headBytes;
		if (bytes <= memory.capacity())
			return;
		if (bytes > 1 << 30)
			throw Errors.of(operation + ": it needs " + bytes + " bytes of memory outside the heap, more than 2^30: divide it");
		try {
			memory = ByteBuffer.allocateDirect(Math.max(LEAST_BYTES, Integer.highestOneBit((int) bytes - 1) << 1)).order(ByteOrder.nativeOrder());
		} catch (OutOfMemoryError e) {
			throw Errors.of(operation + ": there are no " + bytes + " bytes of memory outside the heap (" + e.getMessage()
					+ "): raise -XX:MaxDirectMemorySize, or divide it");
		}
		views = new Buffer[Kinds.OBJECT];
	}

	ByteBuffer memory() {
		return memory;
	}

	/** Takes so many bytes: their offset. */
	int take(long bytes) {
		int at = end;
		end += (int) room(bytes);
		return at;
	}

	private Buffer view(int kind) {
		if (views[kind] == null)
			views[kind] = Kinds.view(kind, memory);
		return views[kind];
	}

	/** Copies items of a type here. */
	void put(int at, Object buf, int offset, int count, Datatype type) {
		Object from = buf;
		int first = offset;
		if (!type.dense || Datatype.isBuffer(buf)) {
			from = type.pack(buf, offset, count);
			first = 0;
		}
		int elements = count * type.size;
		if (type.kind == Kinds.BOOLEAN)
			for (int i = 0; i < elements; i++)
				memory.put(at + i, (byte) (((boolean[]) from)[first + i] ? 1 : 0));
		else if (elements > FEW)
			Kinds.put(from, first, view(type.kind), at >> Kinds.shift(type.kind), elements);
		else
			putFew(type.kind, at, from, first, elements);
	}

	private void putFew(int kind, int at, Object from, int first, int elements) {
		int shift = Kinds.shift(kind);
		for (int i = 0; i < elements; i++) {
			int where = at + (i << shift);
			if (kind == Kinds.DOUBLE)
				memory.putDouble(where, ((double[]) from)[first + i]);
			else if (kind == Kinds.INT)
				memory.putInt(where, ((int[]) from)[first + i]);
			else if (kind == Kinds.LONG)
				memory.putLong(where, ((long[]) from)[first + i]);
			else if (kind == Kinds.BYTE)
				memory.put(where, ((byte[]) from)[first + i]);
			else if (kind == Kinds.FLOAT)
				memory.putFloat(where, ((float[]) from)[first + i]);
			else if (kind == Kinds.SHORT)
				memory.putShort(where, ((short[]) from)[first + i]);
			else
				memory.putChar(where, ((char[]) from)[first + i]);
		}
	}

	/** Copies items of a type from here. */
	void get(int at, Object buf, int offset, int count, Datatype type) {
		int elements = count * type.size;
		boolean direct = type.dense && !Datatype.isBuffer(buf);
		Object to = direct ? buf : Kinds.array(type.kind, elements);
		int first = direct ? offset : 0;
		if (type.kind == Kinds.BOOLEAN)
			for (int i = 0; i < elements; i++)
				((boolean[]) to)[first + i] = memory.get(at + i) != 0;
		else if (elements > FEW)
			Kinds.get(view(type.kind), at >> Kinds.shift(type.kind), to, first, elements);
		else
			getFew(type.kind, at, to, first, elements);
		if (!direct)
			type.copy(false, buf, offset, 0, elements, to, 0);
	}

	private void getFew(int kind, int at, Object to, int first, int elements) {
		int shift = Kinds.shift(kind);
		for (int i = 0; i < elements; i++) {
			int where = at + (i << shift);
			if (kind == Kinds.DOUBLE)
				((double[]) to)[first + i] = memory.getDouble(where);
			else if (kind == Kinds.INT)
				((int[]) to)[first + i] = memory.getInt(where);
			else if (kind == Kinds.LONG)
				((long[]) to)[first + i] = memory.getLong(where);
			else if (kind == Kinds.BYTE)
				((byte[]) to)[first + i] = memory.get(where);
			else if (kind == Kinds.FLOAT)
				((float[]) to)[first + i] = memory.getFloat(where);
			else if (kind == Kinds.SHORT)
				((short[]) to)[first + i] = memory.getShort(where);
			else
				((char[]) to)[first + i] = memory.getChar(where);
		}
	}
}
