// SPDX-License-Identifier: MIT
package xdev.ibvdev;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/**
 * What a message carries about its content, in the 64 bits that the library carries for its user: the element count of the first
 * section of an mpjbuf.Buffer (bits 0 to 31), the type code (32 to 39), and the byte order of the static section (40).
 */
final class Envelope {
	/** mpjbuf.Type.UNDEFINED, the type code of a message without a section. */
	static final int TYPE_UNDEFINED = 17;

	/** mpjbuf: byte 0 of a section the type code, bytes 4 to 7 the count, in the buffer's order. */
	private static final int SECTION_COUNT = 4;
	private static final int SECTION_BYTES = 8;
	private static final int TYPE_SHIFT = 32;
	private static final long LITTLE_ENDIAN = 1L << 40;

	private Envelope() {}

	/** Of the {@code size} bytes at {@code offset}, which the caller has checked. */
	static long of(ByteBuffer memory, int offset, int size) {
		long order = memory.order() == ByteOrder.LITTLE_ENDIAN ? LITTLE_ENDIAN : 0;
		if (size < SECTION_BYTES)
			return order | (long) TYPE_UNDEFINED << TYPE_SHIFT;
		ByteBuffer all = memory;
		if (memory.limit() < offset + SECTION_BYTES) { // the limit left there has nothing to do with the message
			all = memory.duplicate().order(memory.order());
			all.clear();
		}
		return order | (all.get(offset) & 0xffL) << TYPE_SHIFT | all.getInt(offset + SECTION_COUNT) & 0xffffffffL;
	}

	static int typeCode(long envelope) {
		return (int) (envelope >>> TYPE_SHIFT) & 0xff;
	}

	static int elements(long envelope) {
		return (int) envelope;
	}

	static ByteOrder order(long envelope) {
		return (envelope & LITTLE_ENDIAN) != 0 ? ByteOrder.LITTLE_ENDIAN : ByteOrder.BIG_ENDIAN;
	}
}
