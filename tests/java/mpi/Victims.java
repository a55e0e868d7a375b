// SPDX-License-Identifier: MIT
package mpitest;

import java.util.Random;
import mpi.MPI;
import mpi.Request;

/**
 * Ranks to be killed. Arguments: the victim's rank, then the name of a state for every other rank in turn, or
 * {@code traffic} alone for messages between all until somebody dies.
 *
 * <p>A survivor prints "rank R dies in STATE: TEXT" with the exception's text and ends with status 17; the victim
 * does nothing that could end it.
 */
public final class Victims {
	static final int SURVIVOR = 17;

	private Victims() {}

	public static void main(String[] args) throws Exception {
		String[] mine = MPI.Init(args);
		int rank = MPI.COMM_WORLD.Rank();
		int size = MPI.COMM_WORLD.Size();
		int victim = Integer.parseInt(mine[0]);
		boolean traffic = mine[1].equals("traffic");
		String state = traffic ? "traffic" : rank == victim ? "sleep" : mine[1 + (rank < victim ? rank : rank - 1)];
		MPI.COMM_WORLD.Barrier();
		System.out.println("rank " + rank + " is in " + state + ", process " + ProcessHandle.current().pid());
		try {
			if (traffic) {
				traffic(rank, size);
			} else {
				enter(state, rank, size, victim);
			}
		} catch (xdev.XDevException e) {
			System.out.println("rank " + rank + " dies in " + state + ": " + e.getMessage());
			System.exit(SURVIVOR);
		}
		throw new IllegalStateException("rank " + rank + " left " + state + " although nobody sends to it");
	}

	private static void enter(String state, int rank, int size, int victim) throws InterruptedException {
		int[] in = new int[1];
		// A survivor that sends to nobody: the next rank that is not the victim.
		int other = (rank + 1) % size == victim ? (rank + 2) % size : (rank + 1) % size;
		switch (state) {
		case "sleep":
			Thread.sleep(600_000);
			break;
		case "recv-from-dead":
			MPI.COMM_WORLD.Recv(in, 0, 1, MPI.INT, victim, 1);
			break;
		case "recv-from-other":
			MPI.COMM_WORLD.Recv(in, 0, 1, MPI.INT, other, 1);
			break;
		case "barrier":
			MPI.COMM_WORLD.Barrier();
			break;
		case "waitany":
			Request[] requests = new Request[size];
			for (int i = 0; i < size; i++) {
				requests[i] = MPI.COMM_WORLD.Irecv(new int[1], 0, 1, MPI.INT, i, 2);
			}
			Request.Waitany(requests);
			break;
		case "any-source":
			MPI.COMM_WORLD.Recv(in, 0, 1, MPI.INT, MPI.ANY_SOURCE, 1);
			break;
		case "probe":
			MPI.COMM_WORLD.Probe(MPI.ANY_SOURCE, MPI.ANY_TAG);
			break;
		case "ssend-to-dead":
			MPI.COMM_WORLD.Ssend(in, 0, 1, MPI.INT, victim, 1);
			break;
		case "large-send-to-dead":
			MPI.COMM_WORLD.Send(new byte[4 << 20], 0, 4 << 20, MPI.BYTE, victim, 1);
			break;
		default:
			throw new IllegalArgumentException("no state \"" + state + "\"");
		}
	}

	/** Messages of all sizes between all ranks, for ever. */
	private static void traffic(int rank, int size) {
		Random random = new Random(42);
		while (true) {
			Request[] requests = new Request[2 * size];
			int[] lengths = new int[size];
			for (int i = 0; i < size; i++) {
				// The same draws on every rank: what i sends to everybody has one length.
				lengths[i] = random.nextInt(random.nextInt(4) == 0 ? 400_000 : 5_000);
			}
			for (int i = 0; i < size; i++) {
				requests[i] = MPI.COMM_WORLD.Irecv(new byte[lengths[i]], 0, lengths[i], MPI.BYTE, i, 3);
			}
			for (int i = 0; i < size; i++) {
				requests[size + i] = MPI.COMM_WORLD.Isend(new byte[lengths[rank]], 0, lengths[rank], MPI.BYTE, i, 3);
			}
			Request.Waitall(requests);
		}
	}
}
