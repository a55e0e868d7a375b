// SPDX-License-Identifier: MIT
package xdev.ibvdev;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/**
 * Where natives put the status of a receive or probe: 40 bytes of native memory for each thread, so that a
 * status costs neither an object nor a JNI call.
 */
final class ResultBlock {
	private static final ThreadLocal<ResultBlock> OWN = ThreadLocal.withInitial(ResultBlock::new);

	private final ByteBuffer memory = ByteBuffer.allocateDirect(Native.RESULT_BYTES).order(ByteOrder.nativeOrder());
	final long address = Native.address(memory);

	private ResultBlock() {
	}

	/** The calling thread's. */
	static ResultBlock own() {
		return OWN.get();
	}

	int source() {
		return memory.getInt(Native.RESULT_SOURCE);
	}

	int tag() {
		return memory.getInt(Native.RESULT_TAG);
	}

	/** Length of the static section; an int, because the receiver's capacity is one. Of a probe it may be cut. */
	int headBytes() {
		return (int) Math.min(memory.getLong(Native.RESULT_HEAD_BYTES), Integer.MAX_VALUE);
	}

	int typeCode() {
		return (int) (memory.getLong(Native.RESULT_USER) >>> 32) & 0xff;
	}

	int elements() {
		return (int) memory.getLong(Native.RESULT_USER);
	}

	/** The dynamic section as an array of its own, or null if the message has none. Call it once. */
	byte[] takeBody() {
		long at = memory.getLong(Native.RESULT_BODY);
		return at == 0 ? null : Native.body(at, (int) memory.getLong(Native.RESULT_BODY_BYTES));
	}
}
