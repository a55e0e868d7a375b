// SPDX-License-Identifier: MIT

import java.net.InetAddress;
import mpi.MPI;
import mpi.Status;

/**
 * A first MPJ Express program: every rank prints its number and host, then a message goes once around
 * the ring and collects the ranks it has passed.
 *
 * <p>It runs on any device: {@code ibvrun -np 4 HelloIbvdev}, or {@code -dev niodev} to compare.
 */
public final class HelloIbvdev {
	private static final int TAG = 1;

	private HelloIbvdev() {}

	public static void main(String[] args) throws Exception {
		String device = args.length > 2 ? args[2] : "?";
		MPI.Init(args);
		int rank = MPI.COMM_WORLD.Rank();
		int size = MPI.COMM_WORLD.Size();
		System.out.println("rank " + rank + " of " + size + " on device " + device + ", host " + InetAddress.getLocalHost().getHostName() + ", process "
				+ ProcessHandle.current().pid());
		int[] passed = new int[size + 1];
		int next = (rank + 1) % size;
		if (size == 1) {
			System.out.println("a ring needs at least 2 ranks: ibvrun -np 2 HelloIbvdev");
		} else if (rank == 0) {
			passed[0] = 0;
			MPI.COMM_WORLD.Send(passed, 0, 1, MPI.INT, next, TAG);
			Status status = MPI.COMM_WORLD.Recv(passed, 0, passed.length, MPI.INT, size - 1, TAG);
			StringBuilder path = new StringBuilder();
			for (int i = 0; i < status.Get_count(MPI.INT); i++) {
				if (passed[i] != i) {
					throw new IllegalStateException("stop " + i + " of the ring was rank " + passed[i]);
				}
				path.append(passed[i]).append(" -> ");
			}
			System.out.println("the message went " + path + "0");
		} else {
			Status status = MPI.COMM_WORLD.Recv(passed, 0, passed.length, MPI.INT, rank - 1, TAG);
			int count = status.Get_count(MPI.INT);
			passed[count] = rank;
			MPI.COMM_WORLD.Send(passed, 0, count + 1, MPI.INT, next, TAG);
		}
		MPI.Finalize();
	}
}
