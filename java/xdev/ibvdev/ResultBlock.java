// SPDX-License-Identifier: MIT
package xdev.ibvdev;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/**
 * Where natives put the status of a receive or probe: 40 bytes of native memory for each thread, so that a
 * status costs neither an object nor a JNI call. For the devices of this jar only.
 */
public final class ResultBlock {
	private static final ThreadLocal<ResultBlock> OWN = ThreadLocal.withInitial(ResultBlock::new);

	private final ByteBuffer memory = ByteBuffer.allocateDirect(Native.RESULT_BYTES).order(ByteOrder.nativeOrder());
	/** What natives are told. */
	public final long address = Native.address(memory);

	private ResultBlock() {
	}

	/**
	 * The calling thread's.
	 *
	 * @return the same object each time
	 */
	public static ResultBlock own() {
		return OWN.get();
	}

	/**
	 * The sender.
	 *
	 * @return its rank
	 */
	public int source() {
		return memory.getInt(Native.RESULT_SOURCE);
	}

	/**
	 * The tag as sent.
	 *
	 * @return the tag
	 */
	public int tag() {
		return memory.getInt(Native.RESULT_TAG);
	}

	/** Length of the static section; an int, because the receiver's capacity is one. Of a probe it may be cut. */
	int headBytes() {
		return (int) Math.min(memory.getLong(Native.RESULT_HEAD_BYTES), Integer.MAX_VALUE);
	}

	/**
	 * The word that travels in the envelope.
	 *
	 * @return as the sender gave it
	 */
	public long user() {
		return memory.getLong(Native.RESULT_USER);
	}

	/**
	 * The length of the message, both sections.
	 *
	 * @return in bytes
	 */
	public long bytes() {
		return memory.getLong(Native.RESULT_HEAD_BYTES) + memory.getLong(Native.RESULT_BODY_BYTES);
	}

	/**
	 * Memory of the library with the second section, which belongs to the caller.
	 *
	 * @return its address, or 0
	 */
	public long body() {
		return memory.getLong(Native.RESULT_BODY);
	}

	/** See {@link Envelope}. */
	long envelope() {
		return memory.getLong(Native.RESULT_USER);
	}

	/** The dynamic section as an array of its own, or null if the message has none. Call it once. */
	byte[] takeBody() {
		long at = memory.getLong(Native.RESULT_BODY);
		return at == 0 ? null : Native.body(at, (int) memory.getLong(Native.RESULT_BODY_BYTES));
	}
}
