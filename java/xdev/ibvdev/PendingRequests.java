// SPDX-License-Identifier: MIT
package xdev.ibvdev;

import java.util.concurrent.atomic.AtomicLongArray;
import java.util.concurrent.atomic.AtomicReferenceArray;
import java.util.function.Consumer;

/**
 * The requests under way, by the slot of their handle. It keeps what they read and write reachable when
 * the program drops its Request object, and finds the object of a handle for peek.
 *
 * <p>No locks but for growing. A slot belongs to one request at a time, but a request that has just been consumed may
 * leave after the slot's next owner has arrived: so it leaves by compare-and-set.
 */
public final class PendingRequests {
	private static final int CHUNK_BITS = 8;
	private static final int CHUNK = 1 << CHUNK_BITS;

	private static final class Chunk {
		final AtomicReferenceArray<PendingRequest> requests = new AtomicReferenceArray<>(CHUNK);
		/** The handle that came into the slot last; at first one older than any. */
		final AtomicLongArray latest = new AtomicLongArray(CHUNK);

		Chunk() {
			for (int i = 0; i < CHUNK; i++)
				latest.setPlain(i, -1);
		}
	}

	private volatile Chunk[] chunks = new Chunk[0];
	/**
	 * Requests for which the heap had no chunk, linked by PendingRequest.next: the operation runs already, so they must be
	 * kept. At most one of a slot, the latest, which stays when it has been consumed.
	 */
	private volatile PendingRequest homeless;

	private static int slot(long handle) {
		return (int) handle & 0x7fffffff;
	}

	/** The slot's chunk, or null if there is none yet. */
	private Chunk chunk(int slot) {
		int index = slot >>> CHUNK_BITS;
		Chunk[] present = chunks;
		return index < present.length ? present[index] : null;
	}

	private synchronized Chunk grow(int index) {
		Chunk[] present = chunks;
		if (index >= present.length) {
			Chunk[] more = java.util.Arrays.copyOf(present, index + 1);
			for (int i = present.length; i <= index; i++)
				more[i] = new Chunk();
			chunks = more;
			present = more;
		}
		return present[index];
	}

	private synchronized void addHomeless(PendingRequest request) {
		PendingRequest before = findHomeless(slot(request.handle()));
		if (before != null)
			unlink(before);
		request.setNext(homeless);
		homeless = request;
	}

	private void unlink(PendingRequest request) {
		if (homeless == request)
			homeless = request.next();
		for (PendingRequest r = homeless; r != null; r = r.next())
			if (r.next() == request)
				r.setNext(request.next());
	}

	private synchronized PendingRequest findHomeless(int slot) {
		PendingRequest r = homeless;
		while (r != null && slot(r.handle()) != slot)
			r = r.next();
		return r;
	}

	/** Has the slot come as far as this handle's generation? */
	private static boolean reached(long latest, long handle) {
		return (int) (latest >>> 32) - (int) (handle >>> 32) >= 0;
	}

	/**
	 * Enters a request whose handle has just come from the library. Never fails.
	 *
	 * @param request not entered before
	 */
	public void add(PendingRequest request) {
		int slot = slot(request.handle());
		Chunk chunk = chunk(slot);
		if (chunk == null) {
			try {
				chunk = grow(slot >>> CHUNK_BITS);
			} catch (OutOfMemoryError e) {
				addHomeless(request);
				return;
			}
		}
		chunk.requests.setRelease(slot & CHUNK - 1, request);
		chunk.latest.setRelease(slot & CHUNK - 1, request.handle());
	}

	/**
	 * Takes out a request that the library has consumed.
	 *
	 * @param request entered before
	 */
	public void remove(PendingRequest request) {
		int slot = slot(request.handle());
		Chunk chunk = chunk(slot);
		if (chunk != null)
			chunk.requests.compareAndSet(slot & CHUNK - 1, request, null);
		request.setConsumed();
	}

	/**
	 * The request of a handle that peek gave, or null if another thread has consumed it in the meantime.
	 * The library knows a handle a moment before add() does: then this waits for the thread that is about to add it.
	 *
	 * @param handle of a request of the library
	 * @return the request, or null
	 */
	public PendingRequest find(long handle) {
		int slot = slot(handle);
		int index = slot & CHUNK - 1;
		for (int spins = 0;; spins++) {
			Chunk chunk = chunk(slot);
			long latest = chunk == null ? -1 : chunk.latest.getAcquire(index);
			PendingRequest request = chunk == null ? null : chunk.requests.getAcquire(index);
			if (request != null && request.handle() == handle)
				return request;
			if (chunk != null && reached(latest, handle))
				return null;
			request = homeless == null ? null : findHomeless(slot);
			if (request != null && reached(request.handle(), handle))
				return request.handle() == handle && !request.consumed() ? request : null;
			if (spins < 100)
				Thread.onSpinWait();
			else
				Thread.yield();
		}
	}

	/**
	 * Visits all requests that were there throughout.
	 *
	 * @param visitor called for each
	 */
	public void forEach(Consumer<PendingRequest> visitor) {
		PendingRequest alone;
		synchronized (this) {
			alone = homeless;
		}
		for (; alone != null; alone = alone.next())
			visitor.accept(alone);
		for (Chunk chunk : chunks) {
			for (int i = 0; i < CHUNK; i++) {
				PendingRequest request = chunk.requests.getAcquire(i);
				if (request != null)
					visitor.accept(request);
			}
		}
	}

	/** Releases what abandoned requests hold, once the endpoint is gone. */
	public void abandonAll() {
		PendingRequest alone;
		synchronized (this) {
			alone = homeless;
			homeless = null;
		}
		for (; alone != null; alone = alone.next())
			alone.abandon();
		for (Chunk chunk : chunks) {
			for (int i = 0; i < CHUNK; i++) {
				PendingRequest request = chunk.requests.getAndSet(i, null);
				if (request != null)
					request.abandon();
			}
		}
	}
}
