// SPDX-License-Identifier: MIT
package mpi;

import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.FutureTask;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

/**
 * Non-blocking collective operations of a communicator that the native library cannot do: of objects, and by operations of the user's. A thread of the communicator, which
 * ends when there is nothing to do, executes them one after the other. All members begin them in the same order, so none waits for one that another member has behind it.
 */
final class Background {
	private static final int IDLE_S = 1;

	private final ThreadPoolExecutor thread = new ThreadPoolExecutor(1, 1, IDLE_S, TimeUnit.SECONDS, new LinkedBlockingQueue<>(), task -> {
		Thread made = new Thread(task, "mpi collective operations");
		made.setDaemon(true);
		return made;
	});

	Background() {
		thread.allowCoreThreadTimeOut(true);
	}

	Pending start(Runnable operation) {
		Task task = new Task(operation);
		thread.execute(task.future);
		return task;
	}

	/** Blocks until all that were started are complete. */
	void drain() {
		if (thread.getTaskCount() > thread.getCompletedTaskCount())
			start(() -> {}).complete(true);
	}

	private static final class Task implements Pending {
		private final FutureTask<Void> future;

		Task(Runnable operation) {
			future = new FutureTask<>(operation, null);
		}

		@Override
		public boolean complete(boolean block) {
			if (!block && !future.isDone())
				return false;
			boolean interrupted = false;
			try {
				while (true) {
					try {
						future.get();
						return true;
					} catch (InterruptedException e) {
						interrupted = true;
					} catch (ExecutionException e) {
						throw e.getCause() instanceof RuntimeException ? (RuntimeException) e.getCause() : new IllegalStateException(e.getCause());
					}
				}
			} finally {
				if (interrupted)
					Thread.currentThread().interrupt();
			}
		}

		@Override
		public void abandon() {}
	}
}
