// SPDX-License-Identifier: MIT
package harness;

import java.util.Arrays;

/** Runs an action in a thread of its own; finish() passes its failure on. For the programs that tests run. */
public final class Task extends Thread {
	/** Something that may throw anything. */
	public interface Action {
		void run() throws Exception;
	}

	private final Action action;
	private volatile Throwable failure;

	private Task(Action action) {
		this.action = action;
	}

	public static Task start(Action action) {
		Task task = new Task(action);
		task.setDaemon(true);
		task.start();
		return task;
	}

	@Override
	public void run() {
		try {
			action.run();
		} catch (Throwable t) {
			failure = t;
		}
	}

	public void finish() throws Exception {
		join();
		if (failure != null)
			throw new AssertionError("thread " + getName() + " failed", failure);
	}

	/** Sleeps for the other side to block; the outcome never depends on it having done so. */
	public static void pause() throws InterruptedException {
		Thread.sleep(50);
	}

	/** The action must fail with such an exception, whose text contains all the words. */
	public static <E extends Exception> E fails(Class<E> kind, Action action, String... words) throws Exception {
		try {
			action.run();
		} catch (Exception e) {
			if (!kind.isInstance(e))
				throw e;
			for (String word : words)
				if (!String.valueOf(e.getMessage()).contains(word))
					throw new AssertionError("the text does not contain \"" + word + "\"", e);
			return kind.cast(e);
		}
		throw new AssertionError("no exception; expected one with " + Arrays.toString(words));
	}
}
