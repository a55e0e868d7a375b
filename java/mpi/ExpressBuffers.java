// SPDX-License-Identifier: MIT
package mpi;

import java.nio.ByteBuffer;
import mpjbuf.Buffer;
import mpjbuf.BufferException;
import mpjbuf.NIOBuffer;
import mpjbuf.RawBuffer;
import mpjbuf.Type;

/** MPJ Express's buffers as packed messages. Its classes must be on the class path; nothing else of this package names them. */
final class ExpressBuffers {
	private ExpressBuffers() {}

	/** Appends a section; how many bytes it has. */
	static int append(Buffer message, Object packed, int count) {
		try {
			int before = message.getSize();
			if (packed instanceof int[]) {
				message.putSectionHeader(Type.INT);
				message.write((int[]) packed, 0, count);
			} else if (packed instanceof double[]) {
				message.putSectionHeader(Type.DOUBLE);
				message.write((double[]) packed, 0, count);
			} else if (packed instanceof byte[]) {
				message.putSectionHeader(Type.BYTE);
				message.write((byte[]) packed, 0, count);
			} else if (packed instanceof long[]) {
				message.putSectionHeader(Type.LONG);
				message.write((long[]) packed, 0, count);
			} else if (packed instanceof float[]) {
				message.putSectionHeader(Type.FLOAT);
				message.write((float[]) packed, 0, count);
			} else if (packed instanceof char[]) {
				message.putSectionHeader(Type.CHAR);
				message.write((char[]) packed, 0, count);
			} else if (packed instanceof short[]) {
				message.putSectionHeader(Type.SHORT);
				message.write((short[]) packed, 0, count);
			} else {
				message.putSectionHeader(Type.BOOLEAN);
				message.write((boolean[]) packed, 0, count);
			}
			return message.getSize() - before;
		} catch (BufferException e) {
			throw Errors.of("Pack: the buffer does not take " + count + " elements: " + e.getMessage() + ": take a larger one (Pack_size)");
		}
	}

	/** Reads the next section; how many bytes it has. */
	static int extract(Buffer message, Object packed, int count) {
		try {
			if (message.isWritable())
				message.commit();
			message.getSectionHeader();
			int there = message.getSectionSize();
			if (there < count)
				throw Errors.of("Unpack: the section has " + there + " elements, " + count + " are wanted: unpack as it was packed");
			if (packed instanceof int[])
				message.read((int[]) packed, 0, count);
			else if (packed instanceof double[])
				message.read((double[]) packed, 0, count);
			else if (packed instanceof byte[])
				message.read((byte[]) packed, 0, count);
			else if (packed instanceof long[])
				message.read((long[]) packed, 0, count);
			else if (packed instanceof float[])
				message.read((float[]) packed, 0, count);
			else if (packed instanceof char[])
				message.read((char[]) packed, 0, count);
			else if (packed instanceof short[])
				message.read((short[]) packed, 0, count);
			else
				message.read((boolean[]) packed, 0, count);
			return sectionBytes(packed, count);
		} catch (BufferException e) {
			throw Errors.of("Unpack: the buffer cannot be read: " + e.getMessage() + ": unpack as it was packed");
		}
	}

	/** Sections begin at multiples of 8 bytes. */
	private static int sectionBytes(Object packed, int count) {
		return PackedBuffers.SECTION_BYTES + ((count << Kinds.shift(Kinds.of(packed))) + 7 & ~7);
	}

	private static ByteBuffer memory(String operation, Buffer message) {
		RawBuffer raw = message.getStaticBuffer();
		ByteBuffer memory = raw instanceof NIOBuffer ? ((NIOBuffer) raw).getBuffer() : null;
		if (memory == null)
			throw Errors.of(operation + ": the mpjbuf.Buffer has no memory: it has been freed, make another");
		return memory.duplicate();
	}

	/** The bytes of a message to be sent. */
	static ByteBuffer readable(String operation, Buffer message) {
		try {
			if (message.isWritable())
				message.commit();
		} catch (BufferException e) {
			throw Errors.of(operation + ": the mpjbuf.Buffer cannot be read: " + e.getMessage());
		}
		ByteBuffer memory = memory(operation, message);
		memory.limit(message.offset() + message.getSize());
		memory.position(message.offset());
		return memory.slice();
	}

	/** Room for a message to be received. */
	static ByteBuffer writable(String operation, Buffer message) {
		ByteBuffer memory = memory(operation, message);
		memory.clear();
		memory.position(message.offset());
		return memory.slice();
	}

	/** So many bytes have been received. */
	static void received(Buffer message, int bytes) {
		message.setSize(bytes);
	}
}
