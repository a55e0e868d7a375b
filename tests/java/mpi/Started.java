// SPDX-License-Identifier: MIT
package mpitest;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.Arrays;
import mpi.Datatype;
import mpi.Intracomm;
import mpi.MPI;
import mpi.MPIException;
import mpi.Op;
import mpi.Request;
import mpi.Status;
import mpi.User_function;

/** Non-blocking collective operations of our package mpi: all of one round are under way at once. Any number of ranks; "overlap FOLDER": with a computation beside them. */
public final class Started {
	private static Intracomm comm;
	private static int rank;
	private static int size;

	private Started() {}

	public static void main(String[] args) throws IOException {
		String[] words = MPI.Init(args);
		comm = MPI.COMM_WORLD;
		rank = comm.Rank();
		size = comm.Size();
		if (words.length > 1) {
			overlap(Paths.get(words[1]));
		} else {
			Intracomm half = comm.Split(rank % 2, rank);
			for (int count : new int[] {0, 1, 7, 3000}) {
				dataOfAllKinds(comm, count);
				dataOfAllKinds(half, count);
			}
			reductions();
			derived();
			objectsAndUsersOperations();
			requests(half);
			badInput();
			half.Free();
		}
		MPI.Finalize();
		System.out.println("rank " + rank + ": all that was started is complete");
	}

	/** Parts of different lengths with a gap between them: rank i has i % 3 * count elements. */
	private static int[] lengths(int members, int count) {
		int[] lengths = new int[members];
		Arrays.setAll(lengths, i -> i % 3 * count);
		return lengths;
	}

	private static int[] begins(int members, int count) {
		int[] begins = new int[members];
		for (int i = 1; i < members; i++) {
			begins[i] = begins[i - 1] + (i - 1) % 3 * count + 1;
		}
		return begins;
	}

	private static int[] filled(int length, int seed) {
		int[] made = new int[length];
		Arrays.setAll(made, i -> seed * 10_000 + i);
		return made;
	}

	/** All that bring data, at once, against their blocking twins. */
	private static void dataOfAllKinds(Intracomm in, int count) {
		int n = in.Size();
		int me = in.Rank();
		int root = n - 1;
		int[] counts = lengths(n, count);
		int[] at = begins(n, count);
		int room = at[n - 1] + counts[n - 1];
		int[] mine = filled(count, me);
		int[] many = filled(n * count, me);
		int[] uneven = filled(counts[me], me);
		int[] spread = filled(room, 50 + root);
		int[] same = new int[n];
		Arrays.fill(same, counts[me]);
		int[] sameAt = new int[n];
		Arrays.setAll(sameAt, i -> i * counts[me]);
		int[][] got = {me == root ? mine.clone() : new int[count], new int[n * count], new int[room], new int[count], new int[counts[me]], new int[n * count],
				new int[room], new int[n * count], new int[n * counts[me]]};
		int[][] want = new int[got.length][];
		for (int i = 0; i < got.length; i++) {
			want[i] = got[i].clone();
		}
		Request[] all = {in.Ibarrier(), in.Ibcast(got[0], 0, count, MPI.INT, root), in.Igather(mine, 0, count, MPI.INT, got[1], 0, count, MPI.INT, root),
				in.Igatherv(uneven, 0, counts[me], MPI.INT, got[2], 0, counts, at, MPI.INT, root),
				in.Iscatter(many, 0, count, MPI.INT, got[3], 0, count, MPI.INT, root),
				in.Iscatterv(me == root ? spread : null, 0, me == root ? counts : null, me == root ? at : null, MPI.INT, got[4], 0, counts[me], MPI.INT, root),
				in.Iallgather(mine, 0, count, MPI.INT, got[5], 0, count, MPI.INT),
				in.Iallgatherv(uneven, 0, counts[me], MPI.INT, got[6], 0, counts, at, MPI.INT),
				in.Ialltoall(many, 0, count, MPI.INT, got[7], 0, count, MPI.INT),
				in.Ialltoallv(spread, 0, counts, at, MPI.INT, got[8], 0, same, sameAt, MPI.INT)};
		in.Bcast(want[0], 0, count, MPI.INT, root);
		in.Gather(mine, 0, count, MPI.INT, want[1], 0, count, MPI.INT, root);
		in.Gatherv(uneven, 0, counts[me], MPI.INT, want[2], 0, counts, at, MPI.INT, root);
		in.Scatter(many, 0, count, MPI.INT, want[3], 0, count, MPI.INT, root);
		in.Scatterv(spread, 0, counts, at, MPI.INT, want[4], 0, counts[me], MPI.INT, root);
		in.Allgather(mine, 0, count, MPI.INT, want[5], 0, count, MPI.INT);
		in.Allgatherv(uneven, 0, counts[me], MPI.INT, want[6], 0, counts, at, MPI.INT);
		in.Alltoall(many, 0, count, MPI.INT, want[7], 0, count, MPI.INT);
		in.Alltoallv(spread, 0, counts, at, MPI.INT, want[8], 0, same, sameAt, MPI.INT);
		Status[] statuses = Request.Waitall(all);
		Check.eq(MPI.ANY_SOURCE, statuses[1].source, "the source of a collective operation");
		for (int i = 0; i < got.length; i++) {
			Check.same(want[i], got[i], "operation %d of %d elements, rank %d of %d", i, count, me, n);
		}
	}

	private static void reductions() {
		for (int count : new int[] {1, 5, 20_000}) {
			double[] mine = new double[count];
			Arrays.setAll(mine, i -> rank + i % 7);
			double[] sum = new double[count];
			double[] max = new double[count];
			double[] upTo = new double[count];
			int[] counts = new int[size];
			Arrays.setAll(counts, i -> i % 2 * count);
			double[] operands = new double[size / 2 * count];
			Arrays.fill(operands, rank + 1);
			double[] part = new double[counts[rank]];
			boolean[] flag = new boolean[1];
			int[] least = new int[2];
			Request[] all = {comm.Iallreduce(mine, 0, sum, 0, count, MPI.DOUBLE, MPI.SUM), comm.Ireduce(mine, 0, max, 0, count, MPI.DOUBLE, MPI.MAX, size - 1),
					comm.Iscan(mine, 0, upTo, 0, count, MPI.DOUBLE, MPI.SUM), comm.Ireduce_scatter(operands, 0, part, 0, counts, MPI.DOUBLE, MPI.SUM),
					comm.Iallreduce(new boolean[] {rank == size - 1}, 0, flag, 0, 1, MPI.BOOLEAN, MPI.LOR),
					comm.Iallreduce(new int[] {size - rank, rank}, 0, least, 0, 1, MPI.INT2, MPI.MINLOC)};
			while (Request.Testall(all) == null) {
				Thread.yield();
			}
			for (int i = 0; i < count; i++) {
				Check.that(sum[i] == size * (size - 1) / 2 + size * (i % 7), "Iallreduce: %s", sum[i]);
				Check.that(max[i] == (rank == size - 1 ? size - 1 + i % 7 : 0), "Ireduce: %s", max[i]);
				Check.that(upTo[i] == rank * (rank + 1) / 2 + (rank + 1) * (i % 7), "Iscan: %s", upTo[i]);
			}
			for (double element : part) {
				Check.that(element == size * (size + 1) / 2, "Ireduce_scatter: %s", element);
			}
			Check.that(flag[0] && least[0] == 1 && least[1] == size - 1, "LOR, MINLOC");
		}
	}

	private static void derived() {
		Datatype every = Datatype.Vector(2, 1, 2, MPI.INT); // elements 0 and 2, extent 3
		every.Commit();
		int[] in = new int[2 + 3 * size];
		comm.Iallgather(new int[] {-1, rank, -1, rank + 100, -1}, 1, 1, every, in, 2, 1, every).Wait();
		for (int i = 0; i < size; i++) {
			Check.same(new int[] {i, 0, i + 100}, Arrays.copyOfRange(in, 2 + 3 * i, 5 + 3 * i), "elements of rank %d", i);
		}
	}

	/** What a thread of the communicator does, beside blocking operations of the same kind. */
	private static void objectsAndUsersOperations() {
		Op append = new Op(new User_function() {
			@Override
			public void Call(Object in, int inOffset, Object inOut, int inOutOffset, int count, Datatype type) {
				for (int i = 0; i < count; i++) {
					((Object[]) inOut)[inOutOffset + i] = ((Object[]) in)[inOffset + i] + "," + ((Object[]) inOut)[inOutOffset + i];
				}
			}
		}, false);
		Object[] text = {"rank " + rank};
		Object[] got = new Object[size];
		Object[] joined = new Object[1];
		Object[] upTo = new Object[1];
		Object[] twin = new Object[1];
		Request[] all = {comm.Iallgather(text, 0, 1, MPI.OBJECT, got, 0, 1, MPI.OBJECT), comm.Iallreduce(text, 0, joined, 0, 1, MPI.OBJECT, append),
				comm.Iscan(text, 0, upTo, 0, 1, MPI.OBJECT, append)};
		comm.Allreduce(text, 0, twin, 0, 1, MPI.OBJECT, append);
		Request.Waitall(all);
		StringBuilder want = new StringBuilder();
		for (int i = 0; i < size; i++) {
			Check.same("rank " + i, got[i], "Iallgather of objects");
			want.append(i == 0 ? "" : ",").append("rank ").append(i);
			Check.that(i != rank || want.toString().equals(upTo[0]), "Iscan of objects: %s", upTo[0]);
		}
		Check.same(want.toString(), joined[0], "Iallreduce of objects");
		Check.same(joined[0], twin[0], "Allreduce of objects");
	}

	/** Messages and collective operations in one array; a request that is freed; one that is active when its communicator is freed. */
	private static void requests(Intracomm half) {
		int[] sum = new int[1];
		int[] in = new int[1];
		Request[] all = {comm.Irecv(in, 0, 1, MPI.INT, (rank + size - 1) % size, 5), comm.Iallreduce(new int[] {rank}, 0, sum, 0, 1, MPI.INT, MPI.SUM), null};
		Check.that(!all[1].Is_null(), "Is_null of what is active");
		refused("wait for it", all[1] ::Cancel);
		Check.eq(1, Request.Waitany(all).index, "the collective operation is complete before the message");
		Check.that(all[1].Is_null(), "Is_null after Waitany");
		Check.eq(size * (size - 1) / 2, sum[0], "its result");
		comm.Barrier(); // no message comes before its receiver is here
		comm.Send(new int[] {rank}, 0, 1, MPI.INT, (rank + 1) % size, 5);
		Check.eq(0, Request.Waitany(all).index, "the message");
		Request given = comm.Ibcast(new int[100_000], 0, 100_000, MPI.INT, 0);
		given.Free();
		Check.that(given.Is_null(), "Is_null after Free");
		Intracomm copy = (Intracomm) half.clone();
		int[] word = {copy.Rank() == 0 ? 4711 : 0};
		Object[] object = {copy.Rank() == 0 ? "text" : null};
		Request[] last = {copy.Ibcast(word, 0, 1, MPI.INT, 0), copy.Ibcast(object, 0, 1, MPI.OBJECT, 0)};
		copy.Free();
		Request.Waitall(last);
		Check.that(word[0] == 4711 && "text".equals(object[0]), "operations of a communicator that was freed");
	}

	private static void badInput() {
		int[] data = new int[4];
		refused("Ibcast: the root is " + size, () -> comm.Ibcast(data, 0, 1, MPI.INT, size));
		refused("count is -1", () -> comm.Iallreduce(data, 0, data, 1, -1, MPI.INT, MPI.SUM));
		refused("offset 3, count 2", () -> comm.Ibcast(data, 3, 2, MPI.INT, 0));
		refused("the buffer is null", () -> comm.Iscan(null, 0, data, 0, 1, MPI.INT, MPI.SUM));
		refused("one for each", () -> comm.Iallgatherv(data, 0, 1, MPI.INT, data, 0, new int[0], new int[0], MPI.INT));
		refused("not defined", () -> comm.Iallreduce(new Object[1], 0, new Object[1], 0, 1, MPI.OBJECT, MPI.SUM));
		if (size > 1) {
			refused("Bcast", () -> comm.Ibcast(new int[rank + 1], 0, rank + 1, MPI.INT, 0).Wait(), rank > 0);
		}
		comm.Barrier();
	}

	private static void refused(String word, Runnable call) {
		refused(word, call, true);
	}

	private static void refused(String word, Runnable call, boolean expected) {
		try {
			call.run();
		} catch (MPIException e) {
			Check.that(e.getMessage().contains(word), "the text lacks \"%s\": %s", word, e.getMessage());
			return;
		}
		Check.that(!expected, "no exception with \"%s\"", word);
	}

	/** Rank 0 computes, without a call of the library, until all others have the result: its own part of the operation goes on meanwhile. */
	private static void overlap(Path folder) throws IOException {
		double[] mine = new double[1 << 17];
		double[] sum = new double[1 << 17];
		Arrays.fill(mine, rank + 1);
		Request request = comm.Iallreduce(mine, 0, sum, 0, sum.length, MPI.DOUBLE, MPI.SUM);
		if (rank != 0) {
			request.Wait();
			Files.createFile(folder.resolve("rank" + rank));
		}
		long steps = 0;
		for (int other = 1; rank == 0 && other < size;) {
			steps += Check.mix(steps) & 1;
			other += Files.exists(folder.resolve("rank" + other)) ? 1 : 0;
		}
		if (rank == 0) {
			request.Wait();
		}
		Check.that(sum[0] == size * (size + 1) / 2 && sum[sum.length - 1] == sum[0], "the sum: %s", sum[0]);
	}
}
