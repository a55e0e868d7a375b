// SPDX-License-Identifier: MIT
package xdev.ibvdev;

import java.nio.charset.StandardCharsets;
import xdev.Device;

/** Makes the exceptions. Native methods return a negative errno; the text and the rank are those of the calling thread's last native error. */
final class Errors {
	private Errors() {}

	/** The text of the calling thread's last native error. */
	static String text() {
		return new String(Native.errorText(), StandardCharsets.UTF_8);
	}

	/** For a native method that has just returned this on this thread. */
	static IBVException of(long rc, String operation) {
		return new IBVException((int) -rc, Native.errorRank(), operation + ": " + text());
	}

	/** The same for an operation on a message; direction is "to" or "from". */
	static IBVException of(long rc, String operation, String direction, int rank, int tag, int context) {
		return of(rc,
				operation + " " + direction + " " + (rank == Device.ANY_SOURCE ? "any rank" : "rank " + rank) + ", tag "
						+ (tag == Device.ANY_TAG ? "any" : Integer.toString(tag)) + ", context " + context);
	}

	/** An argument is wrong. */
	static IBVException argument(String text) {
		return new IBVException(Native.EINVAL, -1, text);
	}

	/** With a cause, which XDevException has no constructor for. */
	static IBVException wrap(int errno, String text, Throwable cause) {
		IBVException e = new IBVException(errno, -1, text);
		e.initCause(cause);
		return e;
	}

	/** The same exception with the calling thread's stack. */
	static IBVException again(IBVException e) {
		return new IBVException(e.errno(), e.rank(), e.getMessage());
	}
}
