// SPDX-License-Identifier: MIT
package xdev.ibvdev;

import java.nio.charset.StandardCharsets;
import java.util.UUID;
import xdev.ProcessID;

/** A process id that knows its rank, so that a send need not look it up. */
public final class IBVProcessID extends ProcessID {
	private final int rank;

	/**
	 * The id of a rank. It is made from the job's id, so every rank makes the same one and no message is needed.
	 *
	 * @param jobId the job
	 * @param rank  the rank in it
	 */
	IBVProcessID(String jobId, int rank) {
		super(UUID.nameUUIDFromBytes((jobId + ":" + rank).getBytes(StandardCharsets.US_ASCII)));
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
