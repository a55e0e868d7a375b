// SPDX-License-Identifier: MIT
package mpi;

import java.util.ArrayDeque;
import java.util.Queue;

/**
 * Buffered sends (MPI 4.0, section 3.6). The attached buffer is an account: a message may be sent while it would have found room there. The library itself carries a copy.
 */
final class Attached {
	/** A message under way, and what it takes of the account. */
	private static final class Sent {
		final Request request;
		final long bytes;

		Sent(Request request, long bytes) {
			this.request = request;
			this.bytes = bytes;
		}
	}

	private static Object buffer;
	private static long capacity;
	private static long used;
	private static final Queue<Sent> UNDER_WAY = new ArrayDeque<>();

	private Attached() {}

	static synchronized void attach(Object attached, long bytes) {
		if (buffer != null)
			throw Errors.of("Buffer_attach: a buffer of " + capacity + " bytes is attached already: call Buffer_detach first");
		buffer = attached;
		capacity = bytes;
	}

	static synchronized void detach() {
		if (buffer == null)
			throw Errors.of("Buffer_detach: no buffer is attached: call Buffer_attach first");
		finish();
		buffer = null;
		capacity = 0;
	}

	/** Waits for all messages. */
	static synchronized void finish() {
		while (!UNDER_WAY.isEmpty())
			UNDER_WAY.remove().request.Wait();
		used = 0;
	}

	private static void reap() {
		UNDER_WAY.removeIf(sent -> {
			if (sent.request.Test() == null)
				return false;
			used -= sent.bytes;
			return true;
		});
	}

	/** Sends a copy of the message. */
	static synchronized void send(String operation, Messages comm, Object buf, int offset, int count, Datatype type, int dest, int tag) {
		Datatype.check(operation, type);
		long bytes = (long) count * type.size * type.unitBytes() + MPI.BSEND_OVERHEAD;
		reap();
		if (used + bytes > capacity)
			throw Errors.of(operation + ": the message needs " + bytes + " bytes, "
					+ (buffer == null ? "no buffer is attached" : "the attached buffer has " + (capacity - used) + " of " + capacity + " left")
					+ ": attach a longer one with MPI.Buffer_attach");
		Object from = type.elementsOf(operation, buf, count);
		type.checkRange(operation, from, offset, count);
		Request request = comm.isend(operation, false, type.pack(from, offset, count), 0, count * type.size, Messages.basic(type), dest, tag);
		UNDER_WAY.add(new Sent(request, bytes));
		used += bytes;
	}
}
