// SPDX-License-Identifier: MIT
package mpi;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/** Pack and Unpack (MPI 4.0, section 5.2): elements as bytes in the machine's order, one after the other. */
final class PackedBuffers {
	/** What MPJ Express puts in front of each section of an mpjbuf.Buffer. */
	static final int SECTION_BYTES = 8;

	private PackedBuffers() {}

	private static Object source(String operation, Object buf, int offset, int count, Datatype type) {
		Datatype.check(operation, type);
		if (type.kind == Kinds.OBJECT)
			throw Errors.of(operation + ": objects cannot be packed: send them as MPI.OBJECT");
		Object elements = type.elementsOf(operation, buf, count);
		type.checkRange(operation, elements, offset, count);
		return elements;
	}

	private static ByteBuffer room(String operation, byte[] message, int position, int bytes) {
		if (message == null || position < 0 || bytes > message.length - position)
			throw Errors.of(operation + ": " + bytes + " bytes at position " + position + " do not lie in "
					+ (message == null ? "null" : "the array of " + message.length) + ": take a longer one (Pack_size)");
		return ByteBuffer.wrap(message, position, bytes).slice().order(ByteOrder.nativeOrder());
	}

	static int pack(Object buf, int offset, int count, Datatype type, byte[] message, int position) {
		Object from = source("Pack", buf, offset, count, type);
		int elements = count * type.size;
		int bytes = elements << Kinds.shift(type.kind);
		ByteBuffer to = room("Pack", message, position, bytes);
		Object packed = type.pack(from, offset, count);
		if (type.kind == Kinds.BOOLEAN)
			for (boolean value : (boolean[]) packed)
				to.put((byte) (value ? 1 : 0));
		else
			Kinds.copy(packed, 0, Kinds.view(type.kind, to), 0, elements);
		return position + bytes;
	}

	static int unpack(byte[] message, int position, Object buf, int offset, int count, Datatype type) {
		Object to = source("Unpack", buf, offset, count, type);
		int elements = count * type.size;
		int bytes = elements << Kinds.shift(type.kind);
		ByteBuffer from = room("Unpack", message, position, bytes);
		Object packed = Kinds.array(type.kind, elements);
		if (type.kind == Kinds.BOOLEAN)
			for (int i = 0; i < elements; i++)
				((boolean[]) packed)[i] = from.get() != 0;
		else
			Kinds.copy(Kinds.view(type.kind, from), 0, packed, 0, elements);
		type.copy(false, to, offset, 0, elements, packed, 0);
		return position + bytes;
	}

	/** Is it MPJ Express's buffer? Asked without loading its class, which need not be there. */
	static boolean isExpress(Object buf) {
		return buf != null && buf.getClass().getName().equals("mpjbuf.Buffer");
	}

	static int pack(Object buf, int offset, int count, Datatype type, mpjbuf.Buffer message, int position) {
		Object from = source("Pack", buf, offset, count, type);
		return position + ExpressBuffers.append(message, type.pack(from, offset, count), count * type.size);
	}

	static int unpack(mpjbuf.Buffer message, int position, Object buf, int offset, int count, Datatype type) {
		Object to = source("Unpack", buf, offset, count, type);
		int elements = count * type.size;
		Object packed = Kinds.array(type.kind, elements);
		int bytes = ExpressBuffers.extract(message, packed, elements);
		type.copy(false, to, offset, 0, elements, packed, 0);
		return position + bytes;
	}
}
