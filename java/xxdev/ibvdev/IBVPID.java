// SPDX-License-Identifier: MIT
package xxdev.ibvdev;

import java.util.UUID;
import xdev.ibvdev.RankId;
import xxdev.PID;

/** A process of a job. The name is made from the job's id, so that every process makes the same one. */
final class IBVPID extends PID {
	private final int rank;
	private final UUID uuid;

	IBVPID(String jobId, int rank) {
		this.rank = rank;
		uuid = RankId.of(jobId, rank);
	}

	@Override
	public int rank() {
		return rank;
	}

	@Override
	public UUID uuid() {
		return uuid;
	}
}
