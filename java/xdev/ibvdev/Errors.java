// SPDX-License-Identifier: MIT
package xdev.ibvdev;

import java.nio.charset.StandardCharsets;
import xdev.Device;
import xdev.XDevException;

/** Makes the exceptions of what native methods return. */
final class Errors {
	private Errors() {}

	/** The text of the calling thread's last native error. */
	static String text() {
		return new String(Native.errorText(), StandardCharsets.UTF_8);
	}

	/** For a native method that has just failed on this thread. */
	static XDevException of(String operation) {
		return new XDevException(operation + ": " + text());
	}

	/** The same for an operation on a message; direction is "to" or "from". */
	static String text(String operation, String direction, int rank, int tag, int context) {
		return operation + " " + direction + " " + (rank == Device.ANY_SOURCE ? "any rank" : "rank " + rank) + ", tag "
				+ (tag == Device.ANY_TAG ? "any" : Integer.toString(tag)) + ", context " + context + ": " + text();
	}

	/** The exception with that text. */
	static XDevException of(String operation, String direction, int rank, int tag, int context) {
		return new XDevException(text(operation, direction, rank, tag, context));
	}

	/** An exception with a cause, which XDevException has no constructor for. */
	static XDevException wrap(String operation, String text, Throwable cause) {
		XDevException e = new XDevException(operation + ": " + text);
		e.initCause(cause);
		return e;
	}
}
