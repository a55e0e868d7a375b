// SPDX-License-Identifier: MIT
package npb;

import mpi.Intracomm;
import mpi.MPI;
import mpi.Op;
import mpi.Request;

/**
 * The ranks of a job and every operation that the kernels communicate with; adds up the time spent in them
 * (packing and unpacking by MPJ Express included).
 *
 * <p>Not thread-safe.  All arguments of the collective operations have to agree as MPI demands.
 */
final class CommTimer {
	final int rank;
	final int size;

	private final Intracomm world;
	private final double[] one = new double[1];
	private final double[] oneResult = new double[1];
	private final long[] spentNs; // shared with parts

	CommTimer(Intracomm world) {
		this(world, new long[1]);
	}

	private CommTimer(Intracomm world, long[] spentNs) {
		this.world = world;
		this.spentNs = spentNs;
		rank = world.Rank();
		size = world.Size();
	}

	/** Those of the ranks that give the same number, in the same order; their time counts here too. Collective. */
	CommTimer part(int number) {
		return new CommTimer(world.Split(number, rank), spentNs);
	}

	void reset() {
		spentNs[0] = 0;
	}

	/** Seconds spent in communication since {@link #reset}. */
	double seconds() {
		return spentNs[0] * 1e-9;
	}

	void barrier() {
		if (size == 1)
			return;
		long start = System.nanoTime();
		world.Barrier();
		spentNs[0] += System.nanoTime() - start;
	}

	/** The sum of what all ranks give, on all ranks. */
	double sum(double value) {
		return reduce(value, MPI.SUM);
	}

	/** The largest of what all ranks give, on all ranks. */
	double max(double value) {
		return reduce(value, MPI.MAX);
	}

	private double reduce(double value, Op op) {
		if (size == 1)
			return value;
		long start = System.nanoTime();
		one[0] = value;
		world.Allreduce(one, 0, oneResult, 0, 1, MPI.DOUBLE, op);
		spentNs[0] += System.nanoTime() - start;
		return oneResult[0];
	}

	/** {@code result[0 ... count-1]} becomes the sums over all ranks. */
	void sum(double[] values, double[] result, int count) {
		if (size == 1) {
			System.arraycopy(values, 0, result, 0, count);
			return;
		}
		long start = System.nanoTime();
		// Offsets other than 0 are broken in the reductions of MPJ Express 0.44.
		world.Allreduce(values, 0, result, 0, count, MPI.DOUBLE, MPI.SUM);
		spentNs[0] += System.nanoTime() - start;
	}

	/** As for double. */
	void sum(int[] values, int[] result, int count) {
		if (size == 1) {
			System.arraycopy(values, 0, result, 0, count);
			return;
		}
		long start = System.nanoTime();
		world.Allreduce(values, 0, result, 0, count, MPI.INT, MPI.SUM);
		spentNs[0] += System.nanoTime() - start;
	}

	/** Sends to a partner that does the same, and receives what it sends. */
	void exchange(double[] out, int outOffset, int outCount, double[] in, int inOffset, int inCount, int partner, int tag) {
		long start = System.nanoTime();
		Request receive = world.Irecv(in, inOffset, inCount, MPI.DOUBLE, partner, tag);
		world.Send(out, outOffset, outCount, MPI.DOUBLE, partner, tag);
		receive.Wait();
		spentNs[0] += System.nanoTime() - start;
	}

	/**
	 * Sends {@code down} to rank {@code below} and {@code up} to rank {@code above}, which do the same, and receives
	 * their {@code up} and {@code down}.  Both neighbours may be one rank.
	 */
	void shift(double[] down, double[] up, double[] fromBelow, double[] fromAbove, int count, int below, int above, int tag) {
		long start = System.nanoTime();
		Request low = world.Irecv(fromBelow, 0, count, MPI.DOUBLE, below, tag);
		Request high = world.Irecv(fromAbove, 0, count, MPI.DOUBLE, above, tag + 1);
		world.Send(up, 0, count, MPI.DOUBLE, above, tag);
		world.Send(down, 0, count, MPI.DOUBLE, below, tag + 1);
		low.Wait();
		high.Wait();
		spentNs[0] += System.nanoTime() - start;
	}

	/** {@code count} numbers for each rank, in the order of ranks. */
	void alltoall(double[] out, double[] in, int count) {
		long start = System.nanoTime();
		world.Alltoall(out, 0, count, MPI.DOUBLE, in, 0, count, MPI.DOUBLE);
		spentNs[0] += System.nanoTime() - start;
	}

	/** As for double. */
	void alltoall(int[] out, int[] in, int count) {
		if (size == 1) {
			System.arraycopy(out, 0, in, 0, count);
			return;
		}
		long start = System.nanoTime();
		world.Alltoall(out, 0, count, MPI.INT, in, 0, count, MPI.INT);
		spentNs[0] += System.nanoTime() - start;
	}

	/** A count and a place for each rank. */
	void alltoallv(int[] out, int[] outCounts, int[] outPlaces, int[] in, int[] inCounts, int[] inPlaces) {
		if (size == 1) {
			System.arraycopy(out, outPlaces[0], in, inPlaces[0], outCounts[0]);
			return;
		}
		long start = System.nanoTime();
		world.Alltoallv(out, 0, outCounts, outPlaces, MPI.INT, in, 0, inCounts, inPlaces, MPI.INT);
		spentNs[0] += System.nanoTime() - start;
	}

	/** Everybody's {@code count} numbers, in the order of ranks. */
	void allgather(double[] mine, double[] all, int count) {
		long start = System.nanoTime();
		world.Allgather(mine, 0, count, MPI.DOUBLE, all, 0, count, MPI.DOUBLE);
		spentNs[0] += System.nanoTime() - start;
	}

	/** Sends the last rank-ordered value up: each rank gets that of the rank below; rank 0 gets {@code first}. */
	int fromBelow(int value, int first, int tag) {
		int[] mine = {value};
		int[] below = {first};
		Request receive = rank > 0 ? world.Irecv(below, 0, 1, MPI.INT, rank - 1, tag) : null;
		if (rank + 1 < size)
			world.Send(mine, 0, 1, MPI.INT, rank + 1, tag);
		if (receive != null)
			receive.Wait();
		return below[0];
	}
}
