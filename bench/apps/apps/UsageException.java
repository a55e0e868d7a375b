// SPDX-License-Identifier: MIT
package apps;

/** The arguments or the number of ranks cannot be used; the message states why, and what can. */
final class UsageException extends Exception {
	private static final long serialVersionUID = 1;

	UsageException(String message) {
		super(message);
	}
}
