// SPDX-License-Identifier: MIT
package xdev.ibvdev;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/**
 * Where natives put the status of a receive or probe: native memory of each thread, so that a
 * status costs neither an object nor a JNI call. Behind it is a bounce buffer for a short message. For the devices of this jar only.
 */
public final class ResultBlock {
	private static final ThreadLocal<ResultBlock> OWN = ThreadLocal.withInitial(ResultBlock::new);

	/** Size of the bounce buffer behind the status. */
	public static final int BOUNCE_BYTES = 512;
	/** Aligned for any type. */
	private static final int BOUNCE = 64;

	private final ByteBuffer memory = ByteBuffer.allocateDirect(BOUNCE + BOUNCE_BYTES).order(ByteOrder.nativeOrder());
	/** What is passed to natives. */
	public final long address = Native.address(memory);
	/** The address of the bounce buffer. */
	public final long bounce = address + BOUNCE;

	private ResultBlock() {}

	/**
	 * The calling thread's.
	 *
	 * @return the same object each time
	 */
	public static ResultBlock own() {
		return OWN.get();
	}

	/**
	 * The bounce buffer, through which short arrays pass.
	 *
	 * @return a new view of it, in the machine's byte order
	 */
	public ByteBuffer bounce() {
		return memory.duplicate().position(BOUNCE).slice().order(ByteOrder.nativeOrder());
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
