// SPDX-License-Identifier: MIT
package xdev.ibvdev;

import xdev.ProcessID;

/** A process id that knows its rank, so that a send need not look it up. */
public final class IBVProcessID extends ProcessID {
	private final int rank;

	/**
	 * The id of a rank, the same on every rank.
	 *
	 * @param jobId the job
	 * @param rank  the rank in it
	 */
	IBVProcessID(String jobId, int rank) {
		super(RankId.of(jobId, rank));
		this.rank = rank;
	}

	/**
	 * The rank in the job that made this id.
	 *
	 * @return 0 to size - 1
	 */
	public int rank() {
		return rank;
	}

	/**
	 * For messages and logs.
	 *
	 * @return "rank 3 (uuid)"
	 */
	@Override
	public String toString() {
		return "rank " + rank + " (" + uuid() + ")";
	}
}
