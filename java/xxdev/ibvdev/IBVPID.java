// SPDX-License-Identifier: MIT
package xxdev.ibvdev;

import java.nio.charset.StandardCharsets;
import java.util.UUID;
import xxdev.PID;

/** A process of a job. The name is made from the job's id, so that every process makes the same one. */
final class IBVPID extends PID {
	private final int rank;
	private final UUID uuid;

	IBVPID(String jobId, int rank) {
		this.rank = rank;
		uuid = UUID.nameUUIDFromBytes((jobId + ":" + rank).getBytes(StandardCharsets.US_ASCII));
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
