// SPDX-License-Identifier: MIT
package xdev.ibvdev;

import java.util.concurrent.atomic.AtomicLongArray;
import java.util.concurrent.atomic.AtomicReferenceArray;

/**
 * The requests under way, by the slot of their handle. It keeps what they read and write reachable when
 * the program drops its Request object, and finds the object of a handle for peek.
 *
 * <p>No locks but for growing. A slot belongs to one request at a time, but a request that has just been consumed may
 * leave after the slot's next owner has arrived: so it leaves by compare-and-set.
 */
final class PendingRequests {
	private static final int CHUNK_BITS = 8;
	private static final int CHUNK = 1 << CHUNK_BITS;

	private static final class Chunk {
		final AtomicReferenceArray<IBVRequest> requests = new AtomicReferenceArray<>(CHUNK);
		/** The handle that came into the slot last; at first one older than any. */
		final AtomicLongArray latest = new AtomicLongArray(CHUNK);

		Chunk() {
			for (int i = 0; i < CHUNK; i++)
				latest.setPlain(i, -1);
		}
	}

	private volatile Chunk[] chunks = new Chunk[0];

	private static int slot(long handle) {
		return (int) handle & 0x7fffffff;
	}

	private Chunk chunk(int slot) {
		int index = slot >>> CHUNK_BITS;
		Chunk[] present = chunks;
		return index < present.length ? present[index] : grow(index);
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

	/** Enters a request whose handle has just come from the library. */
	void add(IBVRequest request) {
		int slot = slot(request.handle);
		Chunk chunk = chunk(slot);
		chunk.requests.setRelease(slot & CHUNK - 1, request);
		chunk.latest.setRelease(slot & CHUNK - 1, request.handle);
	}

	/** Takes out a request that the library has consumed. */
	void remove(IBVRequest request) {
		int slot = slot(request.handle);
		chunk(slot).requests.compareAndSet(slot & CHUNK - 1, request, null);
	}

	/**
	 * The request of a handle that peek gave, or null if another thread has consumed it in the meantime.
	 * The library knows a handle a moment before add() does: then this waits for the thread that is about to add it.
	 */
	IBVRequest find(long handle) {
		int slot = slot(handle);
		int index = slot & CHUNK - 1;
		Chunk chunk = chunk(slot);
		for (int spins = 0;; spins++) {
			long latest = chunk.latest.getAcquire(index);
			IBVRequest request = chunk.requests.getAcquire(index);
			if (request != null && request.handle == handle)
				return request;
			if ((int) (latest >>> 32) - (int) (handle >>> 32) >= 0)
				return null;
			if (spins < 100)
				Thread.onSpinWait();
			else
				Thread.yield();
		}
	}

	/** Releases what abandoned requests hold, once the endpoint is gone. */
	void abandonAll() {
		for (Chunk chunk : chunks) {
			for (int i = 0; i < CHUNK; i++) {
				IBVRequest request = chunk.requests.getAndSet(i, null);
				if (request != null)
					request.abandon();
			}
		}
	}
}
