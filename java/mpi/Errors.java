// SPDX-License-Identifier: MIT
package mpi;

/** Makes the exceptions; with the error handler ERRORS_ARE_FATAL it ends the job instead. */
final class Errors {
	private static final int STATUS = 1;

	private Errors() {}

	static MPIException of(String text) {
		return raised(new MPIException(text));
	}

	/** For what the device has thrown, whose text names everything but the method. */
	static MPIException of(RuntimeException cause) {
		return raised(new MPIException(cause.getMessage(), cause));
	}

	private static MPIException raised(MPIException error) {
		if (MPI.Errorhandler_get() == MPI.ERRORS_ARE_FATAL) {
			System.out.flush();
			error.printStackTrace();
			System.err.flush();
			Runtime.getRuntime().halt(STATUS);
		}
		return error;
	}
}
