// SPDX-License-Identifier: MIT
package xxdev.ibvdev;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import xdev.ibvdev.ResultBlock;
import xdev.ibvdev.VirtualThreads;

/** The native memory of one platform thread: its result block, a bounce buffer for its calls, and some for its receives under way. */
final class ThreadBuffers {
	private static final ThreadLocal<ThreadBuffers> OWN = ThreadLocal.withInitial(ThreadBuffers::make);
	/** The most bounce buffers that a thread makes for receives, and the most that it keeps. */
	private static final int MOST = 256;

	final ResultBlock result = ResultBlock.own();
	/** For a call that blocks, or does not need it afterwards. */
	final BounceBuffer bounce = new BounceBuffer(result.bounce());
	/** Of bounce, as an array reference: (null, MEMORY, address, length). */
	final long address = result.bounce;
	private final BounceBuffer[] spare = new BounceBuffer[MOST];
	private int spares;
	private int made;

	private ThreadBuffers() {}

	private static ThreadBuffers make() {
		return VirtualThreads.current() ? null : new ThreadBuffers();
	}

	/** The calling thread's; null if it is a virtual thread: there are too many of those. */
	static ThreadBuffers own() {
		return OWN.get();
	}

	/** A bounce buffer for a receive, or null: this thread's are all in use. */
	BounceBuffer take() {
		if (spares > 0)
			return spare[--spares];
		if (made == MOST)
			return null;
		made++;
		return new BounceBuffer(ByteBuffer.allocateDirect(BounceBuffer.BYTES).order(ByteOrder.nativeOrder()));
	}

	/** What this or another thread took; the receive is complete. */
	void giveBack(BounceBuffer taken) {
		if (spares < MOST)
			spare[spares++] = taken;
	}
}
