// SPDX-License-Identifier: MIT
package xxdev;

/**
 * What every operation of a device throws when it fails. The {@link #code} and the {@link #rank} are for programs; the text, for people, names the operation,
 * what was wrong, and what to do, and may change between versions. Unchecked, because the papers list the operations without a throws clause.
 */
public class XXDevException extends RuntimeException {
	private static final long serialVersionUID = 2;

	/** What kind of failure. */
	private final ErrorCode code;
	/** Which process it concerns; -1: none. */
	private final int rank;

	/**
	 * An exception with the code {@link ErrorCode#OTHER} that concerns no rank.
	 *
	 * @param message what happened
	 */
	public XXDevException(String message) {
		this(ErrorCode.OTHER, -1, message);
	}

	/**
	 * An exception with the code {@link ErrorCode#OTHER} that concerns no rank.
	 *
	 * @param message what happened
	 * @param cause   why
	 */
	public XXDevException(String message, Throwable cause) {
		this(ErrorCode.OTHER, -1, message, cause);
	}

	/**
	 * An exception without a cause.
	 *
	 * @param code    what kind of failure
	 * @param rank    the process that it concerns; -1: none
	 * @param message what happened
	 */
	public XXDevException(ErrorCode code, int rank, String message) {
		this(code, rank, message, null);
	}

	/**
	 * An exception with all that there is.
	 *
	 * @param code    what kind of failure
	 * @param rank    the process that it concerns; -1: none
	 * @param message what happened
	 * @param cause   why; null: not known
	 */
	public XXDevException(ErrorCode code, int rank, String message, Throwable cause) {
		super(message, cause);
		this.code = code;
		this.rank = rank;
	}

	/**
	 * What kind of failure this is.
	 *
	 * @return the code, never null
	 */
	public ErrorCode code() {
		return code;
	}

	/**
	 * Which process this concerns.
	 *
	 * @return its rank in the job, the index in what {@link Device#init} returned; -1 if it concerns none
	 */
	public int rank() {
		return rank;
	}
}
