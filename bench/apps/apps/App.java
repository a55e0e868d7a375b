// SPDX-License-Identifier: MIT
package apps;

import mpi.Intracomm;
import mpi.MPI;
import mpi.Op;

/** One code: made for a size and the ranks of a job, then prepare, run, verify, once each and on all ranks. */
abstract class App {
	final Intracomm world;
	final int rank;
	final int ranks;

	private long communicationNs;
	private long enteredNs;

	App(Intracomm world) {
		this.world = world;
		rank = world.Rank();
		ranks = world.Size();
	}

	/** What was computed, for example "2048 particles, 50 steps". */
	abstract String size();

	/** Memory and input, outside the measured time. */
	abstract void prepare();

	/** The measured part; surrounds what it does in {@code mpi.*} with {@link #enter} and {@link #leave}. */
	abstract void run();

	/** Whether this rank's part of the result is right; may communicate, and may talk. */
	abstract boolean verify(Report report);

	/** Work of the measured part, in millions of {@link #unit}. */
	abstract double work();

	abstract String unit();

	/** From here on time counts as communication (packing by MPJ Express and waiting for slower ranks included). */
	final void enter() {
		enteredNs = System.nanoTime();
	}

	/** The end of what began with {@link #enter}. */
	final void leave() {
		communicationNs += System.nanoTime() - enteredNs;
	}

	/** Seconds between {@link #enter} and {@link #leave} so far. */
	final double communication() {
		return communicationNs * 1e-9;
	}

	/** One number of all ranks, on all ranks; outside the measured time. */
	final double reduce(double value, Op op) {
		double[] result = new double[1];
		world.Allreduce(new double[] {value}, 0, result, 0, 1, MPI.DOUBLE, op);
		return result[0];
	}

	/** The first of {@code n} things that is the given rank's, when each gets the same number or one more. */
	final int share(int n, int ofRank) {
		return share(n, ofRank, ranks);
	}

	/** As above, for {@code parts} parts. */
	static int share(int n, int part, int parts) {
		return (int) ((long) n * part / parts);
	}
}
