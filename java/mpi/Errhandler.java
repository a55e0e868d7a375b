// SPDX-License-Identifier: MIT
package mpi;

/** What happens on an error (MPI 4.0, section 9.3): MPI.ERRORS_RETURN throws an {@link MPIException}, MPI.ERRORS_ARE_FATAL ends the job. */
public class Errhandler {
	private final String name;

	Errhandler(String name) {
		this.name = name;
	}

	@Override
	public String toString() {
		return name;
	}
}
