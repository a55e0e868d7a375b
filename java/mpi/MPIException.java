// SPDX-License-Identifier: MIT
package mpi;

/**
 * What every operation throws when it fails (MPI 4.0, section 9): the text names the operation, the value that is wrong, and what to do.
 * The job can go on. Unchecked, as in MPJ Express. Where a message or a collective operation has failed, the cause is an {@link xxdev.XXDevException}, which has a code and the
 * rank concerned (in the job: in MPI.COMM_WORLD): programs need not look at the text.
 */
public class MPIException extends RuntimeException {
	private static final long serialVersionUID = 1;

	/** An exception without a text. */
	public MPIException() {}

	/**
	 * An exception with a text.
	 *
	 * @param text what happened
	 */
	public MPIException(String text) {
		super(text);
	}

	/**
	 * An exception with a cause.
	 *
	 * @param cause why
	 */
	public MPIException(Throwable cause) {
		super(cause);
	}

	MPIException(String text, Throwable cause) {
		super(text, cause);
	}
}
