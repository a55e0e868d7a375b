// SPDX-License-Identifier: MIT
package mpitest;

import mpi.CartParms;
import mpi.Cartcomm;
import mpi.Comm;
import mpi.Graphcomm;
import mpi.Group;
import mpi.Intercomm;
import mpi.Intracomm;
import mpi.MPI;
import mpi.ShiftParms;

/**
 * Duplicates, splits, groups, topologies, intercommunicators.
 *
 * <p>Creating a communicator runs in one thread of a rank at a time, because MPJ Express keeps the next context in
 * a static variable without a lock. Splits use distinct keys: it gives equal keys the same rank twice. It has no
 * answer for UNDEFINED colours and none for Create by ranks outside the group, which therefore must not call it.
 */
final class Communicators {
	private Communicators() {}

	static void intra(Place p) {
		Intracomm copy = Place.duplicate(p.comm);
		Check.eq(MPI.CONGRUENT, Comm.Compare(p.comm, copy), "Compare of a communicator and its duplicate");
		Check.eq(MPI.IDENT, Comm.Compare(p.comm, p.comm), "Compare of a communicator and itself");
		Check.that(!copy.Test_inter(), "a duplicate claims to be an intercommunicator");
		apart(p, copy);

		Intracomm halves = p.comm.Split(p.rank % 2, -p.rank);
		int members = (p.size + (p.rank % 2 == 0 ? 1 : 0)) / 2;
		Check.eq(members, halves.Size(), "size of a split");
		int[] theirs = new int[members];
		halves.Allgather(new int[] {p.rank}, 0, 1, MPI.INT, theirs, 0, 1, MPI.INT);
		for (int i = 0; i < members; i++) {
			// Keys are negative ranks: the highest rank comes first.
			Check.eq(highest(p) - 2 * i, theirs[i], "rank %d of a split with falling keys", i);
		}
		traffic(halves, p, "a split");
		if (members >= 2) {
			Intracomm quarters = halves.Split(halves.Rank() / 2, halves.Rank());
			traffic(quarters, p, "a split of a split");
		}
		p.comm.Barrier();
	}

	private static int highest(Place p) {
		return (p.size - 1) % 2 == p.rank % 2 ? p.size - 1 : p.size - 2;
	}

	/** The same tag in two communicators: a receive sees only its own. */
	private static void apart(Place p, Intracomm copy) {
		int[] in = new int[1];
		mpi.Request a = p.comm.Isend(new int[] {1}, 0, 1, MPI.INT, p.right(), 140);
		mpi.Request b = copy.Isend(new int[] {2}, 0, 1, MPI.INT, p.right(), 140);
		if (!(p.niodev() && p.size == 1)) {
			copy.Recv(in, 0, 1, MPI.INT, MPI.ANY_SOURCE, MPI.ANY_TAG);
			Check.eq(2, in[0], "message in the duplicate");
			p.comm.Recv(in, 0, 1, MPI.INT, MPI.ANY_SOURCE, 140);
		} else {
			p.comm.Recv(in, 0, 1, MPI.INT, p.left(), 140);
			Check.eq(1, in[0], "message in the original");
			copy.Recv(in, 0, 1, MPI.INT, p.left(), 140);
			in[0] = 1;
		}
		Check.eq(1, in[0], "message in the original");
		a.Wait();
		b.Wait();
	}

	/** A few messages and collectives within comm. */
	static void traffic(Intracomm comm, Place p, String what) {
		Place place = new Place(comm, p.device, p.thread, p.seed);
		Blocking.exchange(place);
		int[] sum = new int[1];
		comm.Allreduce(new int[] {place.rank + 1}, 0, sum, 0, 1, MPI.INT, MPI.SUM);
		Check.eq(place.size * (place.size + 1) / 2, sum[0], "sum over %s", what);
		for (int root = 0; root < place.size; root++) {
			int[] word = {place.rank == root ? 4711 + root : 0};
			comm.Bcast(word, 0, 1, MPI.INT, root);
			Check.eq(4711 + root, word[0], "Bcast in %s", what);
		}
		comm.Barrier();
	}

	static void groups(Place p) {
		Group all = p.comm.Group();
		Check.eq(p.size, all.Size(), "size of the group");
		Check.eq(p.rank, all.Rank(), "rank in the group");
		int[] even = every(p.size, 2, 0);
		Group evens = all.Incl(even);
		Group odds = all.Excl(even);
		Check.eq(even.length, evens.Size(), "size of Incl");
		Check.eq(p.size - even.length, odds.Size(), "size of Excl");
		Check.eq(p.rank % 2 == 0 ? p.rank / 2 : MPI.UNDEFINED, evens.Rank(), "rank in Incl");
		Check.same(even, Group.Translate_ranks(evens, every(even.length, 1, 0), all), "Translate_ranks");
		Group union = Group.Union(evens, odds);
		Check.eq(p.size, union.Size(), "size of Union");
		Check.eq(p.size == 1 || p.size == 2 ? MPI.IDENT : MPI.SIMILAR, Group.Compare(all, union), "Compare with the reordered union");
		Check.eq(even.length, Group.Intersection(all, evens).Size(), "size of Intersection");
		Check.eq(p.size - even.length, Group.Difference(all, evens).Size(), "size of Difference");
		if (p.size >= 4) {
			int[][] range = {{0, p.size - 1, 3}};
			Check.eq((p.size + 2) / 3, all.Range_incl(range).Size(), "size of Range_incl");
			Check.eq(p.size - (p.size + 2) / 3, all.Range_excl(range).Size(), "size of Range_excl");
		}
		// Members only: see the class comment.
		if (p.rank % 2 == 0) {
			traffic(p.comm.Create(evens), p, "Create of the even ranks");
		} else {
			traffic(p.comm.Create(odds), p, "Create of the odd ranks");
		}
		p.comm.Barrier();
	}

	private static int[] every(int end, int step, int first) {
		int[] numbers = new int[(end - first + step - 1) / step];
		for (int i = 0; i < numbers.length; i++) {
			numbers[i] = first + i * step;
		}
		return numbers;
	}

	/** A torus and a line of processes. Shift gives -1 where MPI has PROC_NULL, which it cannot send to. */
	static void cartesian(Place p) {
		int[] dims = new int[2];
		Cartcomm.Dims_create(p.size, dims);
		Check.eq(p.size, dims[0] * dims[1], "product of Dims_create");
		Cartcomm torus = p.comm.Create_cart(dims, new boolean[] {true, true}, false);
		Check.eq(MPI.CART, torus.Topo_test(), "topology");
		CartParms parms = torus.Get();
		Check.same(dims, parms.dims, "dimensions");
		int[] coords = torus.Coords(torus.Rank());
		Check.same(new int[] {p.rank / dims[1], p.rank % dims[1]}, coords, "coordinates");
		Check.eq(p.rank, torus.Rank(coords), "rank of the coordinates");
		for (int direction = 0; direction < 2; direction++) {
			ShiftParms shift = torus.Shift(direction, 1);
			int[] in = new int[1];
			torus.Sendrecv(new int[] {p.rank}, 0, 1, MPI.INT, shift.rank_dest, 150, in, 0, 1, MPI.INT, shift.rank_source, 150);
			Check.eq(shift.rank_source, in[0], "message along dimension %d", direction);
		}
		boolean[] keep = {false, true};
		Cartcomm rows = torus.Sub(keep);
		Check.eq(dims[1], rows.Size(), "size of a row");
		traffic(rows, p, "a row");

		Cartcomm line = p.comm.Create_cart(new int[] {p.size}, new boolean[] {false}, false);
		ShiftParms shift = line.Shift(0, 1);
		int none = Place.EXPRESS ? -1 : MPI.PROC_NULL;
		Check.eq(p.rank == p.size - 1 ? none : p.rank + 1, shift.rank_dest, "right end of a line");
		Check.eq(p.rank == 0 ? none : p.rank - 1, shift.rank_source, "left end of a line");
		p.comm.Barrier();
	}

	/** A star: rank 0 is everybody's neighbour. */
	static void graph(Place p) {
		int[] index = new int[p.size];
		int[] edges = new int[2 * (p.size - 1)];
		for (int i = 0; i < p.size; i++) {
			index[i] = p.size - 1 + i;
			if (i > 0) {
				edges[i - 1] = i;
			}
		}
		Graphcomm star = p.comm.Create_graph(index, edges, false);
		Check.eq(MPI.GRAPH, star.Topo_test(), "topology");
		int[] want = p.rank == 0 ? every(p.size, 1, 1) : new int[] {0};
		Check.same(want, star.Neighbours(p.rank), "neighbours in a star");
		Check.same(index, star.Get().index, "index of the graph");
		traffic(star, p, "a graph");
	}

	/** Even and odd ranks face each other; an intercommunicator cannot join a rank with itself. */
	static void inter(Place p) {
		if (p.size < 2) {
			return;
		}
		boolean high = p.rank % 2 == 1;
		Intracomm mine = p.comm.Split(high ? 1 : 0, p.rank);
		Intercomm inter = p.comm.Create_intercomm(mine, 0, high ? 0 : 1, 160);
		Check.that(inter.Test_inter(), "an intercommunicator denies it");
		Check.eq(mine.Size(), inter.Size(), "local size");
		Check.eq(p.size - mine.Size(), inter.Remote_size(), "remote size");
		int me = inter.Rank();
		if (me < inter.Remote_size()) {
			for (int length : new int[] {1, 1000, 100_000}) {
				byte[] out = Bytes.of(p.seed + p.rank, length);
				byte[] in = new byte[length];
				mpi.Request send = inter.Isend(out, 0, length, MPI.BYTE, me, 161);
				mpi.Status status = inter.Recv(in, 0, length, MPI.BYTE, me, 161);
				send.Wait();
				Bytes.check(in, 0, length, p.seed + (high ? p.rank - 1 : p.rank + 1), "message across an intercommunicator");
				Check.eq(me, status.source, "source across an intercommunicator");
			}
		}
		Intracomm merged = inter.Merge(high);
		Check.eq(p.size, merged.Size(), "size of the merged communicator");
		Check.eq(high ? p.size - mine.Size() + me : me, merged.Rank(), "rank in the merged communicator");
		traffic(merged, p, "a merged communicator");
		p.comm.Barrier();
	}
}
