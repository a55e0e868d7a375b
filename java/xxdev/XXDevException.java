// SPDX-License-Identifier: MIT
package xxdev;

/**
 * What every operation of a device throws when it fails: the text names the operation, what was wrong, and what to do.
 * Unchecked, because the papers list the operations without a throws clause.
 */
public class XXDevException extends RuntimeException {
	private static final long serialVersionUID = 1;

	/**
	 * An exception with a text.
	 *
	 * @param message what happened
	 */
	public XXDevException(String message) {
		super(message);
	}

	/**
	 * An exception with a text and a cause.
	 *
	 * @param message what happened
	 * @param cause   why
	 */
	public XXDevException(String message, Throwable cause) {
		super(message, cause);
	}
}
