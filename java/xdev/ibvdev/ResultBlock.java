// SPDX-License-Identifier: MIT
package xdev.ibvdev;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;

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

	/** For threads without one of their own: as many as were in use at once. */
	private static final Queue<ResultBlock> SPARE = new ConcurrentLinkedQueue<>();

	private final ByteBuffer memory;
	/** What is passed to natives. */
	public final long address;
	/** The address of the bounce buffer. */
	public final long bounce;

	private ResultBlock() {
		memory = ByteBuffer.allocateDirect(BOUNCE + BOUNCE_BYTES).order(ByteOrder.nativeOrder());
		address = Native.address(memory);
		bounce = address + BOUNCE;
	}

	/**
	 * A block of the Java heap, which natives do not get.
	 *
	 * @param source the sender
	 * @param tag    as sent
	 * @param bytes  the length of the message
	 */
	public ResultBlock(int source, int tag, long bytes) {
		memory = ByteBuffer.allocate(BOUNCE).order(ByteOrder.nativeOrder());
		address = 0;
		bounce = 0;
		memory.putInt(Native.RESULT_SOURCE, source).putInt(Native.RESULT_TAG, tag).putLong(Native.RESULT_BODY_BYTES, bytes);
	}

	/**
	 * The calling thread's, or a spare one if it is a virtual thread: those are too many for native memory each.
	 *
	 * @return to be given back by {@link #giveBack}
	 */
	public static ResultBlock take() {
		if (!VirtualThreads.current())
			return own();
		ResultBlock spare = SPARE.poll();
		return spare == null ? new ResultBlock() : spare;
	}

	/** What {@link #take} has returned to this thread is not used any more. */
	public void giveBack() {
		if (VirtualThreads.current())
			SPARE.add(this);
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
