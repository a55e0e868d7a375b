// SPDX-License-Identifier: MIT
package xdev.ibvdev;

import java.util.UUID;

/** The UUID of a rank. It follows from the job's id, so every rank makes the same one and no message is needed. */
public final class RankId {
	private static final int HALF = 16;

	private RankId() {}

	/**
	 * Makes it: the job's id with the rank in the place of its last 32 bits, marked as a UUID of an own format (version 8 of
	 * RFC 9562). A hash would be as good, and needs Java's security providers, which take 15 ms to load.
	 *
	 * @param jobId 32 hexadecimal digits
	 * @param rank  the rank in that job
	 * @return equal for equal jobs and ranks only
	 */
	public static UUID of(String jobId, int rank) {
		long high = Long.parseUnsignedLong(jobId.substring(0, HALF), HALF);
		long low = Long.parseUnsignedLong(jobId.substring(HALF), HALF);
		return new UUID(high & ~0xf000L | 0x8000L, low & 0x3fff_ffff_0000_0000L | Long.MIN_VALUE | rank & 0xffff_ffffL);
	}
}
