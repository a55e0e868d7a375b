// SPDX-License-Identifier: MIT
package xdev.ibvdev;

import xdev.XDevException;

/**
 * What the device throws. MPJ Express's XDevException has a text alone, for people; this adds the error number of the C library (ibvx.h) and the rank concerned, for programs:
 * 104 (ECONNRESET) a process has died, 32 (EPIPE) the peer has finished, 90 (EMSGSIZE) the message is longer than the buffer, 110 (ETIMEDOUT), 12 (ENOMEM), 22 (EINVAL) an
 * argument is wrong, 16 (EBUSY) something must end first, 108 (ESHUTDOWN) the device is not open, 79 (ELIBACC) the native
 * library cannot be loaded, and what else the system's calls report.
 */
public final class IBVException extends XDevException {
	private static final long serialVersionUID = 1;

	/** Positive. */
	private final int errno;
	/** Which process it concerns; -1: none. */
	private final int rank;

	IBVException(int errno, int rank, String text) {
		super(text);
		this.errno = errno;
		this.rank = rank;
	}

	/**
	 * The error number.
	 *
	 * @return positive, as Linux numbers them
	 */
	public int errno() {
		return errno;
	}

	/**
	 * Which process this concerns. It need not be the one that the operation named: the first that died.
	 *
	 * @return its rank; -1 if it concerns none
	 */
	public int rank() {
		return rank;
	}
}
