// SPDX-License-Identifier: MIT
package harness;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** A job whose ranks are running. */
public final class Running {
	private final Mode mode;
	private final String title;
	private final Path dir;
	private final List<Process> processes;
	private final long deadline;
	private final long[] ended;

	Running(Mode mode, String title, Path dir, List<Process> processes, int seconds) {
		this.mode = mode;
		this.title = title;
		this.dir = dir;
		this.processes = processes;
		this.deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(seconds);
		this.ended = new long[processes.size()];
	}

	/** The process of a rank, for tests that kill it. */
	public Process process(int rank) {
		return processes.get(rank);
	}

	/** What a rank has printed so far. */
	public String stdout(int rank) {
		return read("out." + rank);
	}

	/**
	 * Waits until a rank has printed the text on stdout.
	 *
	 * @throws AssertionError when the rank ends, or the job's time limit passes, without it
	 */
	public void awaitText(int rank, String text) {
		while (!stdout(rank).contains(text)) {
			boolean over = !process(rank).isAlive() && !stdout(rank).contains(text);
			if (over || System.nanoTime() > deadline)
				throw new AssertionError("rank " + rank + " did not print \"" + text + "\"\n" + await());
			pause();
		}
	}

	/** Waits for the end of all ranks; kills what is left at the time limit. */
	public Result await() {
		List<Integer> stuck = new ArrayList<>();
		while (anyAlive() && System.nanoTime() < deadline)
			pause();
		for (int rank = 0; rank < processes.size(); rank++)
			if (processes.get(rank).isAlive())
				stuck.add(rank);
		for (int rank : stuck)
			dumpThreads(processes.get(rank));
		for (int rank : stuck)
			processes.get(rank).destroyForcibly();
		List<Result.Rank> ranks = new ArrayList<>();
		for (int rank = 0; rank < processes.size(); rank++)
			ranks.add(new Result.Rank(exitCode(rank), read("out." + rank), read("err." + rank), ended[rank]));
		remove();
		return new Result(mode, title, ranks, stuck);
	}

	private boolean anyAlive() {
		boolean alive = false;
		for (int rank = 0; rank < ended.length; rank++) {
			if (processes.get(rank).isAlive())
				alive = true;
			else if (ended[rank] == 0)
				ended[rank] = System.nanoTime();
		}
		return alive;
	}

	private static void dumpThreads(Process process) {
		try {
			new ProcessBuilder("kill", "-QUIT", Long.toString(process.pid())).start().waitFor();
			process.waitFor(1, TimeUnit.SECONDS);
		} catch (IOException | InterruptedException e) {
			System.err.println("no thread dump: " + e);
		}
	}

	private int exitCode(int rank) {
		try {
			return processes.get(rank).waitFor();
		} catch (InterruptedException e) {
			throw new IllegalStateException(e);
		}
	}

	private String read(String name) {
		try {
			return new String(Files.readAllBytes(dir.resolve(name)), StandardCharsets.UTF_8);
		} catch (IOException e) {
			return "(" + e + ")";
		}
	}

	private void remove() {
		try (var files = Files.list(dir)) {
			for (Path file : (Iterable<Path>) files::iterator)
				Files.deleteIfExists(file);
			Files.deleteIfExists(dir);
		} catch (IOException e) {
			System.err.println("cannot remove " + dir + ": " + e);
		}
	}

	private static void pause() {
		try {
			Thread.sleep(10);
		} catch (InterruptedException e) {
			throw new IllegalStateException(e);
		}
	}
}
