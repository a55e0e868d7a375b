// SPDX-License-Identifier: MIT
package xxdev.ibvdev;

import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Function;
import xdev.ibvdev.PendingRequests;
import xdev.ibvdev.ResultBlock;

/**
 * Lets virtual threads park until their requests are complete. One platform thread, the watcher, waits in the native library for all of them
 * (native/ibvx_watch.h) and unparks them; when nobody is parked it is parked itself, and the library is as without it.
 *
 * <p>{@link Thread#interrupt} ends no wait; the thread's interrupt status is kept.
 */
final class Watcher implements Runnable {
	/** Looks before a thread parks: most answers come at once. */
	static final int LOOKS = 16;
	/** As a time to wait. */
	static final long NO_LIMIT = -1;
	/** Requests that one call returns. */
	private static final int AT_ONCE = 64;

	/** One wait of one thread, for any of several requests or for messages. */
	static final class Wait {
		private final Thread thread = Thread.currentThread();
		private volatile boolean over;

		/** Any thread. */
		void end() {
			over = true;
			LockSupport.unpark(thread);
		}

		/** Parks until somebody calls end(), no longer than so many nanoseconds. */
		private void park(long timeoutNs) {
			long end = timeoutNs < 0 ? 0 : System.nanoTime() + timeoutNs;
			boolean interrupted = false;
			while (!over) {
				if (timeoutNs < 0) {
					LockSupport.park(this);
				} else {
					long left = end - System.nanoTime();
					if (left <= 0)
						break;
					LockSupport.parkNanos(this, left);
				}
				interrupted |= Thread.interrupted();
			}
			if (interrupted)
				thread.interrupt();
		}
	}

	private final long endpoint;
	private final PendingRequests pending;
	/** Those that watch for messages. */
	private final Queue<Wait> probes = new ConcurrentLinkedQueue<>();
	private volatile Thread thread;
	/** The watcher is parked, or about to be. */
	private volatile boolean idle;
	/** The endpoint has ended. */
	private volatile boolean ended;

	Watcher(long endpoint, PendingRequests pending) {
		this.endpoint = endpoint;
		this.pending = pending;
	}

	/**
	 * Parks until one of the requests is complete, no longer than so many nanoseconds. They are the calling thread's to wait for (state BUSY). May return early if
	 * something is wrong: then testing the requests finds it.
	 */
	void await(IBVRequest[] requests, long timeoutNs) {
		Wait wait = new Wait();
		int watched = 0;
		while (watched < requests.length && watch(requests[watched], wait))
			watched++;
		if (watched == requests.length) {
			call();
			if (!ended)
				wait.park(timeoutNs);
		}
		for (int i = 0; i < watched; i++) {
			if (requests[i] == null)
				continue;
			if (!wait.over || watched > 1)
				Native.unwatch(endpoint, requests[i].handle);
			requests[i].setWait(null);
		}
	}

	private boolean watch(IBVRequest request, Wait wait) {
		if (request == null)
			return true;
		request.setWait(wait);
		if (Native.watch(endpoint, request.handle) == 0)
			return true;
		request.setWait(null);
		return false;
	}

	/** Asks the library, which fills the block. Null: no message. */
	private static <T> T look(Function<ResultBlock, T> look) {
		ResultBlock result = ResultBlock.take();
		try {
			return look.apply(result);
		} finally {
			result.giveBack();
		}
	}

	/**
	 * Parks until there is a message; without a block meanwhile, since those are native memory.
	 *
	 * @param look asks the library; not null: done
	 * @return what look returned
	 */
	<T> T awaitMessage(Function<ResultBlock, T> look) {
		T found = null;
		for (int i = 0; i < LOOKS && found == null; i++)
			found = look(look);
		if (found != null)
			return found;
		Native.watchMessages(endpoint, 1);
		try {
			for (;;) {
				Wait wait = new Wait();
				probes.add(wait);
				found = look(look); /* what comes from now on ends the wait */
				if (found != null) {
					probes.remove(wait);
					return found;
				}
				call();
				if (!ended)
					wait.park(NO_LIMIT);
			}
		} finally {
			Native.watchMessages(endpoint, -1);
		}
	}

	/** The watcher has something to watch. */
	private void call() {
		if (thread == null)
			start();
		else if (idle)
			LockSupport.unpark(thread);
	}

	private synchronized void start() {
		if (thread != null || ended)
			return;
		Thread watcher = new Thread(null, this, "ibvdev watcher", 0, false);
		watcher.setDaemon(true);
		watcher.setContextClassLoader(null);
		watcher.start();
		thread = watcher;
	}

	@Override
	public void run() {
		long[] handles = new long[AT_ONCE];
		while (!ended) {
			int count = Native.watched(endpoint, handles);
			if (count == 0) { /* a thread that watches after this look sees idle, or is seen by the next look */
				if (idle)
					LockSupport.park(this);
				idle = !idle;
				continue;
			}
			idle = false;
			if (count < 0)
				end();
			for (int i = 0; i < count; i++)
				found(handles[i]);
		}
	}

	private void found(long handle) {
		if (handle == 0) {
			endProbes();
			return;
		}
		IBVRequest request = (IBVRequest) pending.find(handle);
		if (request != null)
			request.endWait();
	}

	private void endProbes() {
		for (Wait wait = probes.poll(); wait != null; wait = probes.poll())
			wait.end();
	}

	/** The endpoint has ended: everybody is to look again. */
	void end() {
		synchronized (this) {
			ended = true;
		}
		if (thread != null)
			LockSupport.unpark(thread);
		endProbes();
		pending.forEach(request -> ((IBVRequest) request).endWait());
	}
}
