// SPDX-License-Identifier: MIT
package ibvbench;

import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import mpi.Intracomm;
import mpi.MPI;

/**
 * Collective operations of package mpi that move parts of {@code double[]}, of many sizes: {@code ibvrun -np 4 -cp build/bench/java/bench.jar
 * ibvbench.CollectiveParts 16k,1m}. Rank 0 prints a line for each: operation, bytes of a part, microseconds (the median of five samples).
 */
public final class CollectiveParts {
	/** So long the compilers of two JVMs on two processors may take. */
	private static final long WARMUP_NS = 4_000_000_000L;
	private static final int SAMPLES = 5;

	private final Intracomm world = MPI.COMM_WORLD;
	private final double[] out;
	private final double[] in;

	/** One of the operations, with so many elements in a part. */
	private interface Operation {
		void perform(int count) throws Exception;
	}

	private CollectiveParts(int most) {
		out = new double[most * world.Size()];
		in = new double[most * world.Size()];
	}

	/**
	 * Measures.
	 *
	 * @param args of the launcher; the last one: sizes, such as 16k,64k,1m
	 */
	public static void main(String[] args) throws Exception {
		String[] own = MPI.Init(args);
		List<Integer> sizes = Options.numbers(own[own.length - 1], ",");
		CollectiveParts bench = new CollectiveParts(Collections.max(sizes) / Double.BYTES);
		bench.warmUp();
		for (int bytes : sizes)
			bench.measure(bytes);
		MPI.Finalize();
	}

	private void bcast(int count) throws Exception {
		world.Bcast(out, 0, count, MPI.DOUBLE, 0);
	}

	private void scatter(int count) throws Exception {
		world.Scatter(out, 0, count, MPI.DOUBLE, in, 0, count, MPI.DOUBLE, 0);
	}

	private void gather(int count) throws Exception {
		world.Gather(out, 0, count, MPI.DOUBLE, in, 0, count, MPI.DOUBLE, 0);
	}

	private void alltoall(int count) throws Exception {
		world.Alltoall(out, 0, count, MPI.DOUBLE, in, 0, count, MPI.DOUBLE);
	}

	private void allgather(int count) throws Exception {
		world.Allgather(out, 0, count, MPI.DOUBLE, in, 0, count, MPI.DOUBLE);
	}

	private void everything(int count) throws Exception {
		bcast(count);
		scatter(count);
		gather(count);
		alltoall(count);
		allgather(count);
	}

	private void warmUp() throws Exception {
		int most = Math.min(1 << 13, out.length / world.Size());
		boolean[] over = {false};
		for (long begin = System.nanoTime(); !over[0];) {
			for (int count = 1; count <= most; count *= 2)
				everything(count);
			over[0] = System.nanoTime() - begin > WARMUP_NS;
			world.Bcast(over, 0, 1, MPI.BOOLEAN, 0);
		}
	}

	private void measure(int bytes) throws Exception {
		measure("bcast", bytes, this::bcast);
		measure("scatter", bytes, this::scatter);
		measure("gather", bytes, this::gather);
		measure("alltoall", bytes, this::alltoall);
		measure("allgather", bytes, this::allgather);
	}

	private void measure(String name, int bytes, Operation operation) throws Exception {
		int count = bytes / Double.BYTES;
		int times = Math.max(10, Math.min(5000, 20_000_000 / (bytes + 2000)));
		for (int i = 0; i < times / 2 + 20; i++)
			operation.perform(count);
		double[] us = new double[SAMPLES];
		for (int sample = 0; sample < SAMPLES; sample++) {
			world.Barrier();
			long begin = System.nanoTime();
			for (int i = 0; i < times; i++)
				operation.perform(count);
			us[sample] = (System.nanoTime() - begin) / 1e3 / times;
		}
		Arrays.sort(us);
		if (world.Rank() == 0)
			System.out.printf("%s %d %.2f%n", name, bytes, us[SAMPLES / 2]);
	}
}
