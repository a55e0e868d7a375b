// SPDX-License-Identifier: MIT

import java.net.InetAddress;
import mpi.MPI;

/** An MPJ Express program that knows nothing of ibvdev: one line per rank, as cluster-probe report writes it. */
public final class Report {
	private Report() {}

	public static void main(String[] args) throws Exception {
		String[] words = MPI.Init(args);
		int rank = MPI.COMM_WORLD.Rank();
		int size = MPI.COMM_WORLD.Size();
		int[] in = {rank + 1};
		int[] sum = new int[1];
		MPI.COMM_WORLD.Allreduce(in, 0, sum, 0, 1, MPI.INT, MPI.SUM);
		if (sum[0] != size * (size + 1) / 2) {
			throw new IllegalStateException("the sum is " + sum[0]);
		}
		boolean reads = rank == 0 && System.getenv("CLUSTER_NO_INPUT") == null;
		int input = !reads ? 0 : System.in.readAllBytes().length;
		StringBuilder line = new StringBuilder("rank " + rank + " of " + size + " on " + InetAddress.getLocalHost().getHostName() + ": env "
				+ System.getenv().getOrDefault("CLUSTER_WORD", "none") + ", input " + input + ", words");
		for (String word : words) {
			line.append(" [").append(word).append(']');
		}
		System.out.println(line + (args.length == words.length ? "" : ", main saw " + args.length));
		if (words.length > 1 && words[0].equals("throw") && rank == Integer.parseInt(words[1])) {
			throw new IllegalStateException("thrown by rank " + rank);
		}
		MPI.Finalize();
	}
}
