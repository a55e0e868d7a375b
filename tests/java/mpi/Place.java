// SPDX-License-Identifier: MIT
package mpitest;

import mpi.Intracomm;

/** Where a section runs: a communicator that is this thread's alone, and which device carries it. */
final class Place {
	final Intracomm comm;
	final int rank;
	final int size;
	final String device;
	/** Index of the thread among those that run the same sections; -1 when there is one. */
	final int thread;
	final long seed;

	Place(Intracomm comm, String device, int thread, long seed) {
		this.comm = comm;
		this.rank = comm.Rank();
		this.size = comm.Size();
		this.device = device;
		this.thread = thread;
		this.seed = seed;
	}

	int right() {
		return (rank + 1) % size;
	}

	int left() {
		return (rank + size - 1) % size;
	}

	boolean alone() {
		return thread < 0;
	}

	/** True when the size of a test should be kept small because eight ranks or four threads share two cores. */
	boolean crowded() {
		return thread >= 0 || size > 4;
	}

	/**
	 * niodev hangs where a self-send meets no posted receive, after a truncation, and in peek(), and reports
	 * wildcards in the status of a self-send. Sections leave those cases out on it so that the rest can be compared.
	 */
	boolean niodev() {
		return device.equals("niodev");
	}

	/**
	 * A duplicate whose user traffic cannot meet another communicator's collectives. MPJ Express gives the n-th
	 * communicator context n for point-to-point and 3n for collectives, so that of a communicator with n = 3k the
	 * wildcards would match the collectives of communicator k (WORLD's for n = 9).
	 */
	static Intracomm duplicate(Intracomm comm) {
		if (!EXPRESS) {
			return (Intracomm) comm.clone();
		}
		while (true) {
			Intracomm copy = (Intracomm) comm.clone();
			if (copy.mpjdevComm.sendctxt % 3 != 0 && copy.mpjdevComm.sendctxt != 10) {
				return copy;
			}
		}
	}

	/**
	 * True when a small blocking send may be relied on to return although nobody receives yet. MPI does not promise
	 * it; this device does while its credit window has room, which the other threads of a rank may have taken if it is small.
	 */
	boolean buffers() {
		return psl >= 131072 || alone() && psl >= 1024;
	}

	/** Is the package mpi MPJ Express's, not ours? What it does wrongly is left out on it alone. */
	static final boolean EXPRESS = isExpress();

	private static boolean isExpress() {
		try {
			return mpi.Comm.class.getField("mpjdevComm") != null;
		} catch (NoSuchFieldException e) {
			return false;
		}
	}

	/** The protocol switch limit in bytes; what the launchers set by default. Set once, at the start. */
	static int psl = 131072;
	/** What mpjbuf puts in front of the data of a section. */
	static final int SECTION = mpjbuf.Buffer.SECTION_OVERHEAD;
}
