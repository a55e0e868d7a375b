// SPDX-License-Identifier: MIT
package mpitest;

import java.util.Arrays;
import mpi.MPI;
import mpi.Request;

/**
 * MPI.Init and MPI.Finalize again and again in one JVM, with the same arguments, as some programs do over a hundred
 * times. Ranks are not in step: one may be in the next Init while another is still in Finalize. The argument is the
 * number of rounds, by default 130.
 */
public final class Rounds {
	private Rounds() {}

	public static void main(String[] args) throws Exception {
		String[] first = args.length > 3 ? Arrays.copyOfRange(args, 3, 4) : new String[] {"130"};
		int rounds = Integer.parseInt(first[0]);
		int rank = Integer.parseInt(args[0]);
		for (int round = 0; round < rounds; round++) {
			MPI.Init(args);
			try {
				round(round);
			} catch (RuntimeException e) {
				throw new IllegalStateException("round " + round + ": " + e.getMessage(), e);
			}
			if (round % 7 == rank) {
				Thread.sleep(20);
			}
			MPI.Finalize();
			if (round % 5 == rank) {
				Thread.sleep(20);
			}
		}
		System.out.println("rank " + rank + ": " + rounds + " rounds passed");
	}

	private static void round(int round) {
		int rank = MPI.COMM_WORLD.Rank();
		int size = MPI.COMM_WORLD.Size();
		int left = (rank + size - 1) % size;
		int length = round % 10 == 9 ? 200_000 : 100;
		byte[] in = new byte[length];
		byte[] out = Bytes.of(rank + round, length);
		MPI.COMM_WORLD.Sendrecv(out, 0, length, MPI.BYTE, (rank + 1) % size, round, in, 0, length, MPI.BYTE, left, round);
		Bytes.check(in, 0, length, left + round, "ring");
		int[] sum = new int[1];
		MPI.COMM_WORLD.Allreduce(new int[] {rank}, 0, sum, 0, 1, MPI.INT, MPI.SUM);
		Check.eq(size * (size - 1) / 2, sum[0], "sum of the ranks");
		// What was accepted before Finalize is delivered, however late the receiver is.
		if (rank == 0) {
			byte[] late = new byte[100];
			Request receive = MPI.COMM_WORLD.Irecv(late, 0, 100, MPI.BYTE, size - 1, 500);
			if (size == 1) {
				MPI.COMM_WORLD.Send(Bytes.of(round, 100), 0, 100, MPI.BYTE, 0, 500);
			}
			receive.Wait();
			Bytes.check(late, 0, 100, round, "a message sent just before Finalize");
		} else if (rank == size - 1) {
			MPI.COMM_WORLD.Send(Bytes.of(round, 100), 0, 100, MPI.BYTE, 0, 500);
		}
	}
}
