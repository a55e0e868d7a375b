// SPDX-License-Identifier: MIT
package harness;

import java.util.List;

/** What became of a job. */
public final class Result {
	/** One rank's end. */
	public static final class Rank {
		/** The exit status; 128 + signal if one ended it. */
		public final int exitCode;
		/** Everything it printed. */
		public final String stdout;
		/** Everything it complained. */
		public final String stderr;
		/** System.nanoTime() at which its end was seen, within 10 ms; 0 if it was killed at the time limit. */
		public final long endedNanos;

		Rank(int exitCode, String stdout, String stderr, long endedNanos) {
			this.exitCode = exitCode;
			this.stdout = stdout;
			this.stderr = stderr;
			this.endedNanos = endedNanos;
		}
	}

	private static final int SHOWN = 12000;

	/** Index is the rank. */
	public final List<Rank> ranks;
	/** The ranks that were killed at the time limit. */
	public final List<Integer> stuck;
	private final Mode mode;
	private final String title;

	Result(Mode mode, String title, List<Rank> ranks, List<Integer> stuck) {
		this.mode = mode;
		this.title = title;
		this.ranks = ranks;
		this.stuck = stuck;
	}

	/** One rank's exit status. */
	public int exitCode(int rank) {
		return ranks.get(rank).exitCode;
	}

	/** One rank's output. */
	public String stdout(int rank) {
		return ranks.get(rank).stdout;
	}

	/** One rank's error output. */
	public String stderr(int rank) {
		return ranks.get(rank).stderr;
	}

	/** Every rank ended in time with status 0 and without a complaint of the JVM. */
	public Result assertSuccess() {
		assertClean();
		for (int rank = 0; rank < ranks.size(); rank++)
			if (exitCode(rank) != 0)
				throw new AssertionError("rank " + rank + " ended with " + exitCode(rank) + "\n" + this);
		return this;
	}

	/** Every rank ended in time, with whatever status, and without a complaint of the JVM. */
	public Result assertClean() {
		if (!stuck.isEmpty())
			throw new AssertionError("time limit: still running were ranks " + stuck + "\n" + this);
		for (int rank = 0; rank < ranks.size(); rank++) {
			Rank r = ranks.get(rank);
			String complaint = mode.complaint(r.stdout + "\n" + r.stderr);
			if (complaint == null && r.exitCode == 134)
				complaint = "the JVM aborted";
			if (complaint != null)
				throw new AssertionError("rank " + rank + ": " + complaint + "\n" + this);
		}
		return this;
	}

	/** All output of all ranks, for a failure's message. */
	@Override
	public String toString() {
		StringBuilder text = new StringBuilder(title + " (" + mode + ")\n");
		for (int rank = 0; rank < ranks.size(); rank++) {
			Rank r = ranks.get(rank);
			text.append("--- rank ")
					.append(rank)
					.append(" exit ")
					.append(r.exitCode)
					.append(" stdout:\n")
					.append(shorten(r.stdout))
					.append("--- rank ")
					.append(rank)
					.append(" stderr:\n")
					.append(shorten(r.stderr));
		}
		return text.toString();
	}

	private static String shorten(String text) {
		if (text.length() <= SHOWN)
			return text.isEmpty() || text.endsWith("\n") ? text : text + "\n";
		return text.substring(0, SHOWN / 2) + "\n[...]\n" + text.substring(text.length() - SHOWN / 2);
	}
}
