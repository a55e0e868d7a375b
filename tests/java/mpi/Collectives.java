// SPDX-License-Identifier: MIT
package mpitest;

import java.lang.reflect.Array;
import java.util.Arrays;
import mpi.MPI;

/**
 * All collectives of mpi.*, with every root, several types and lengths.
 *
 * <p>What MPJ Express does wrongly on every device is left out: its tree and bucket algorithms ignore the offsets of
 * Gather, Scatter and Allgather and need the root's array on every rank, so those run at offset 0 unless the flat
 * ones are chosen (the section "flat" does so); collectives advance by count elements, not extents, so derived
 * types are left to point-to-point.
 */
final class Collectives {
	private Collectives() {}

	private static final int[] COUNTS = {1, 13, 1000, 40_000};

	static void barrier(Place p) {
		for (int i = 0; i < (p.crowded() ? 50 : 300); i++) {
			p.comm.Barrier();
		}
		// Nobody leaves the barrier before the last has come: rank r's message from before it is there after it.
		for (int round = 0; round < 5 && p.buffers(); round++) {
			int root = round % p.size;
			if (p.rank == root && p.size > 1) {
				for (int to = 0; to < p.size; to++) {
					if (to != root) {
						p.comm.Send(new int[] {round}, 0, 1, MPI.INT, to, 130);
					}
				}
			}
			p.comm.Barrier();
			if (p.rank != root) {
				int[] in = new int[1];
				p.comm.Recv(in, 0, 1, MPI.INT, root, 130);
				Check.eq(round, in[0], "message from before a barrier");
			}
		}
	}

	static void bcast(Place p) {
		for (Kind kind : Kind.values()) {
			for (int count : counts(p, kind)) {
				for (int root = 0; root < p.size; root++) {
					Object buffer = p.rank == root ? kind.filled(count + 5, 3, count, p.seed + root) : kind.blank(count + 5, p.seed + root);
					p.comm.Bcast(buffer, 3, count, kind.type(), root);
					kind.check(buffer, 3, count, p.seed + root, "Bcast from " + root);
				}
			}
		}
	}

	/** Fewer and shorter messages for slow kinds and for crowds. */
	private static int[] counts(Place p, Kind kind) {
		if (kind == Kind.OBJECT) {
			return new int[] {1, 13};
		}
		if (kind == Kind.INT || kind == Kind.BYTE) {
			return p.crowded() ? Arrays.copyOf(COUNTS, 3) : COUNTS;
		}
		return Arrays.copyOf(COUNTS, 2);
	}

	static void gatherScatter(Place p) {
		for (Kind kind : Kind.values()) {
			for (int count : counts(p, kind)) {
				for (int root = 0; root < p.size; root++) {
					gather(p, kind, count, root);
					scatter(p, kind, count, root);
				}
				allgather(p, kind, count);
				alltoall(p, kind, count);
			}
		}
	}

	/** Element i of the block that rank from has for rank to. */
	private static long block(Place p, int from, int to) {
		return p.seed + from * 100L + to;
	}

	private static void fillBlock(Kind kind, Object array, int offset, int count, long seed) {
		for (int i = 0; i < count; i++) {
			Array.set(array, offset + i, kind.value(seed, i));
		}
	}

	private static void checkBlock(Kind kind, Object array, int offset, int count, long seed, String what) {
		for (int i = 0; i < count; i++) {
			Object want = kind.value(seed, i);
			Object got = Array.get(array, offset + i);
			if (!java.util.Objects.equals(want, got)) {
				Check.fail("%s: element %d of %d of %s: expected %s, got %s", what, i, count, kind, want, got);
			}
		}
	}

	private static void gather(Place p, Kind kind, int count, int root) {
		Object mine = kind.array(count + 1);
		fillBlock(kind, mine, 1, count, block(p, p.rank, root));
		Object all = kind.array(2 + count * p.size);
		int offset = MPI.isOldSelected ? 2 : 0;
		p.comm.Gather(mine, 1, count, kind.type(), all, offset, count, kind.type(), root);
		if (p.rank == root) {
			for (int from = 0; from < p.size; from++) {
				checkBlock(kind, all, offset + from * count, count, block(p, from, root), "Gather to " + root + " from " + from);
			}
		}
		int[] lengths = lengths(p, count);
		int[] places = places(lengths);
		all = kind.array(2 + places[p.size]);
		p.comm.Gatherv(mine, 1, lengths[p.rank], kind.type(), all, 2, lengths, places, kind.type(), root);
		if (p.rank == root) {
			for (int from = 0; from < p.size; from++) {
				checkBlock(kind, all, 2 + places[from], lengths[from], block(p, from, root), "Gatherv to " + root + " from " + from);
			}
		}
	}

	/** A length for every rank, zero among them. */
	private static int[] lengths(Place p, int count) {
		int[] lengths = new int[p.size];
		for (int i = 0; i < p.size; i++) {
			lengths[i] = i % 3 == 2 ? 0 : Math.max(1, count / (i + 1));
		}
		return lengths;
	}

	/** Displacements with a gap of one element between blocks; the last entry is the whole length. */
	private static int[] places(int[] lengths) {
		int[] places = new int[lengths.length + 1];
		for (int i = 0; i < lengths.length; i++) {
			places[i + 1] = places[i] + lengths[i] + 1;
		}
		return places;
	}

	private static void scatter(Place p, Kind kind, int count, int root) {
		int[] lengths = lengths(p, count);
		int[] places = places(lengths);
		int from = MPI.isOldSelected ? 1 : 0;
		int into = MPI.isOldSelected ? 2 : 0;
		Object even = kind.array(1 + count * p.size);
		Object uneven = kind.array(1 + places[p.size]);
		if (p.rank == root) {
			for (int to = 0; to < p.size; to++) {
				fillBlock(kind, even, from + to * count, count, block(p, root, to));
				fillBlock(kind, uneven, 1 + places[to], lengths[to], block(p, root, to));
			}
		}
		Object mine = kind.blank(count + 2, block(p, root, p.rank));
		p.comm.Scatter(even, from, count, kind.type(), mine, into, count, kind.type(), root);
		kind.check(mine, into, count, block(p, root, p.rank), "Scatter from " + root);
		mine = kind.blank(count + 2, block(p, root, p.rank));
		p.comm.Scatterv(uneven, 1, lengths, places, kind.type(), mine, 2, lengths[p.rank], kind.type(), root);
		kind.check(mine, 2, lengths[p.rank], block(p, root, p.rank), "Scatterv from " + root);
	}

	private static void allgather(Place p, Kind kind, int count) {
		Object mine = kind.array(count + 1);
		fillBlock(kind, mine, 1, count, block(p, p.rank, 0));
		Object all = kind.array(2 + count * p.size);
		int offset = MPI.isOldSelected ? 2 : 0;
		p.comm.Allgather(mine, 1, count, kind.type(), all, offset, count, kind.type());
		for (int from = 0; from < p.size; from++) {
			checkBlock(kind, all, offset + from * count, count, block(p, from, 0), "Allgather from " + from);
		}
		int[] lengths = lengths(p, count);
		int[] places = places(lengths);
		all = kind.array(2 + places[p.size]);
		p.comm.Allgatherv(mine, 1, lengths[p.rank], kind.type(), all, 2, lengths, places, kind.type());
		for (int from = 0; from < p.size; from++) {
			checkBlock(kind, all, 2 + places[from], lengths[from], block(p, from, 0), "Allgatherv from " + from);
		}
	}

	private static void alltoall(Place p, Kind kind, int count) {
		Object out = kind.array(1 + count * p.size);
		Object in = kind.array(2 + count * p.size);
		for (int to = 0; to < p.size; to++) {
			fillBlock(kind, out, 1 + to * count, count, block(p, p.rank, to));
		}
		p.comm.Alltoall(out, 1, count, kind.type(), in, 2, count, kind.type());
		for (int from = 0; from < p.size; from++) {
			checkBlock(kind, in, 2 + from * count, count, block(p, from, p.rank), "Alltoall from " + from);
		}
		int[] lengths = lengths(p, count);
		int[] mine = new int[p.size];
		Arrays.fill(mine, lengths[p.rank]);
		int[] outPlaces = places(lengths);
		int[] inPlaces = places(mine);
		out = kind.array(1 + outPlaces[p.size]);
		in = kind.array(2 + inPlaces[p.size]);
		for (int to = 0; to < p.size; to++) {
			fillBlock(kind, out, 1 + outPlaces[to], lengths[to], block(p, p.rank, to));
		}
		p.comm.Alltoallv(out, 1, lengths, outPlaces, kind.type(), in, 2, mine, inPlaces, kind.type());
		for (int from = 0; from < p.size; from++) {
			checkBlock(kind, in, 2 + inPlaces[from], mine[from], block(p, from, p.rank), "Alltoallv from " + from);
		}
	}

	/** The same with MPJ Express's flat algorithms, which its configuration file would choose for the whole job. */
	static void flat(Place p) {
		boolean before = MPI.isOldSelected;
		MPI.isOldSelected = true;
		try {
			bcast(p);
			gatherScatter(p);
			Reductions.predefined(p);
			Reductions.located(p);
			Reductions.userDefined(p);
		} finally {
			MPI.isOldSelected = before;
		}
	}
}
