// SPDX-License-Identifier: MIT
package mpitest;

import mpi.MPI;

/**
 * Ends that are not MPI.Finalize, of all ranks or of rank 1: {@code forget} (main returns), {@code throw} (an
 * exception leaves main), {@code exit} (System.exit(7)). In the last two the others wait for rank 1 meanwhile; they
 * print what their exception reports and end with status 17, two seconds later: the peers of a rank that ends are notified
 * before its JVM has gone, and the launcher goes by the first that has gone.
 */
public final class Endings {
	static final int SURVIVOR = 17;
	static final int EXIT = 7;

	private Endings() {}

	public static void main(String[] args) throws Exception {
		String[] mine = MPI.Init(args);
		int rank = MPI.COMM_WORLD.Rank();
		int size = MPI.COMM_WORLD.Size();
		int[] sum = new int[1];
		MPI.COMM_WORLD.Allreduce(new int[] {1}, 0, sum, 0, 1, MPI.INT, MPI.SUM);
		Check.eq(size, sum[0], "number of ranks");
		MPI.COMM_WORLD.Barrier();
		switch (mine[0]) {
		case "forget":
			System.out.println("rank " + rank + ": main returns");
			return;
		case "throw":
			if (rank == 1) {
				throw new IllegalStateException("thrown on purpose by rank 1");
			}
			break;
		case "exit":
			if (rank == 1) {
				System.exit(EXIT);
			}
			break;
		default:
			throw new IllegalArgumentException("no ending \"" + mine[0] + "\"");
		}
		try {
			MPI.COMM_WORLD.Recv(new int[1], 0, 1, MPI.INT, 1, 1);
		} catch (RuntimeException e) { // of the device under MPJ Express, else an MPIException
			System.out.println("rank " + rank + ": " + e.getMessage());
			Thread.sleep(2000);
			System.exit(SURVIVOR);
		}
		throw new IllegalStateException("a message came that nobody has sent");
	}
}
