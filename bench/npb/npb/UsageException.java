// SPDX-License-Identifier: MIT
package npb;

/** The arguments or the number of ranks cannot be used; the message says why, and what can. */
final class UsageException extends Exception {
	private static final long serialVersionUID = 1;

	UsageException(String message) {
		super(message);
	}

	/** log2 of the number of ranks. */
	static int log2OfRanks(String kernel, int ranks) throws UsageException {
		if (Integer.bitCount(ranks) != 1)
			throw new UsageException(kernel + " runs on 1, 2, 4, 8 ... ranks, not on " + ranks);
		return Integer.numberOfTrailingZeros(ranks);
	}
}
