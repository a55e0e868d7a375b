// SPDX-License-Identifier: MIT
package mpitest;

import mpi.MPI;

/** Prints its rank and arguments, or ends by Abort or a fatal error. */
public final class Alone {
	private Alone() {}

	public static void main(String[] args) {
		String[] own = MPI.Init(args);
		if (own.length == 1 && own[0].equals("abort")) {
			MPI.COMM_WORLD.Abort(7);
		}
		if (own.length == 1 && own[0].equals("fatal")) {
			MPI.Errorhandler_set(MPI.ERRORS_ARE_FATAL);
			MPI.COMM_WORLD.Send(new int[1], 0, -1, MPI.INT, 0, 0);
		}
		System.out.println(MPI.COMM_WORLD.Rank() + " of " + MPI.COMM_WORLD.Size() + ": " + String.join(" ", own));
		MPI.Finalize();
	}
}
