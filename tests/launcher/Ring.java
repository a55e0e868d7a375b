// SPDX-License-Identifier: MIT
import java.nio.file.Files;
import java.nio.file.Path;
import mpi.MPI;

/** An MPI program: sums ranks, then does what its first argument selects. */
public final class Ring {
	public static void main(String[] argv) throws Exception {
		String mode = "";
		int rounds = 1;
		for (int round = 0; round < rounds; round++) {
			String[] args = MPI.Init(argv);
			mode = args.length > 0 ? args[0] : "";
			rounds = mode.equals("rounds") ? Integer.parseInt(args[1]) : 1;
			int rank = MPI.COMM_WORLD.Rank();
			int size = MPI.COMM_WORLD.Size();
			int[] in = {rank + 1};
			int[] sum = new int[1];
			MPI.COMM_WORLD.Allreduce(in, 0, sum, 0, 1, MPI.INT, MPI.SUM);
			System.out.println("rank " + rank + " of " + size + " sum " + sum[0]);
			if (mode.equals("throw") && rank == size - 1)
				throw new IllegalStateException("thrown by rank " + rank);
			if (mode.equals("hang")) {
				Files.writeString(Path.of(args[1] + rank), ProcessHandle.current().pid() + "\n");
				byte[] data = new byte[8];
				MPI.COMM_WORLD.Recv(data, 0, 8, MPI.BYTE, (rank + 1) % size, 7); // never sent
			}
			MPI.Finalize();
		}
	}
}
