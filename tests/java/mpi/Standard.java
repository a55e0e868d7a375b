// SPDX-License-Identifier: MIT
package mpitest;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.IntBuffer;
import mpi.Cartcomm;
import mpi.Comm;
import mpi.Datatype;
import mpi.GraphParms;
import mpi.Graphcomm;
import mpi.Intercomm;
import mpi.Intracomm;
import mpi.MPI;
import mpi.MPIException;
import mpi.Op;
import mpi.Prequest;
import mpi.Request;
import mpi.ShiftParms;
import mpi.Status;
import mpi.User_function;

/**
 * What the MPI standard demands and MPJ Express 0.44 does otherwise: each defect that is known of it has a method here. For our package mpi alone; any number of ranks.
 */
public final class Standard {
	private static Intracomm comm;
	private static int rank;
	private static int size;

	private Standard() {}

	public static void main(String[] args) {
		Check.that(!MPI.Initialized(), "initialized before Init");
		Check.eq(args.length > 2 && args[2].equals("ibvdev") ? args.length - 3 : args.length, MPI.Init(args).length, "arguments");
		comm = MPI.COMM_WORLD;
		rank = comm.Rank();
		size = comm.Size();
		procNull();
		split();
		clocks();
		significance();
		offsetsAndTypes();
		reduceScatterKeepsItsInput();
		order();
		userOperations();
		userOperationsOfTypesWithGaps();
		counts();
		nullRequests();
		cancel();
		communicators();
		attributes();
		grids();
		structs();
		notANumber();
		badInput();
		buffers();
		buffered();
		overlappingCreations();
		inquiries();
		MPI.Finalize();
		Check.that(!MPI.Initialized(), "initialized after Finalize");
		System.out.println("rank " + rank + ": as the standard has it");
	}

	private static int right() {
		return (rank + 1) % size;
	}

	private static int left() {
		return (rank + size - 1) % size;
	}

	private static void procNull() {
		int[] data = {1, 2};
		comm.Send(data, 0, 2, MPI.INT, MPI.PROC_NULL, 1);
		comm.Ssend(data, 0, 2, MPI.INT, MPI.PROC_NULL, 1);
		comm.Rsend(data, 0, 2, MPI.INT, MPI.PROC_NULL, 1);
		Request[] requests = {comm.Isend(data, 0, 2, MPI.INT, MPI.PROC_NULL, 1), comm.Issend(data, 0, 2, MPI.INT, MPI.PROC_NULL, 1),
				comm.Irsend(data, 0, 2, MPI.INT, MPI.PROC_NULL, 1), comm.Irecv(data, 0, 2, MPI.INT, MPI.PROC_NULL, 1)};
		isNull(Request.Waitall(requests)[3]);
		isNull(comm.Recv(data, 0, 2, MPI.INT, MPI.PROC_NULL, 1));
		isNull(comm.Probe(MPI.PROC_NULL, 1));
		isNull(comm.Iprobe(MPI.PROC_NULL, 1));
		isNull(comm.Sendrecv(data, 0, 1, MPI.INT, MPI.PROC_NULL, 1, data, 1, 1, MPI.INT, MPI.PROC_NULL, 1));
		isNull(comm.Sendrecv_replace(data, 0, 1, MPI.INT, MPI.PROC_NULL, 1, MPI.PROC_NULL, 1));
		Prequest again = comm.Recv_init(data, 0, 2, MPI.INT, MPI.PROC_NULL, 1);
		again.Start();
		isNull(again.Wait());
		Check.same(new int[] {1, 2}, data, "data of PROC_NULL");
	}

	private static void isNull(Status status) {
		Check.eq(MPI.PROC_NULL, status.source, "source of PROC_NULL");
		Check.eq(MPI.ANY_TAG, status.tag, "tag of PROC_NULL");
		Check.eq(0, status.Get_count(MPI.INT), "count of PROC_NULL");
	}

	private static void split() {
		Intracomm equal = comm.Split(0, 7);
		Check.eq(rank, equal.Rank(), "rank in a split with equal keys");
		Check.eq(size, equal.Size(), "size of a split with equal keys");
		Intracomm some = comm.Split(rank == 0 ? MPI.UNDEFINED : 1, -rank);
		Check.that((rank == 0) == (some == null), "a split with UNDEFINED");
		if (some != null) {
			Check.eq(size - 1 - rank, some.Rank(), "rank in a split with falling keys");
			some.Barrier();
			some.Free();
			refused("freed", () -> some.Barrier());
			refused("freed", () -> some.Send(new int[1], 0, 1, MPI.INT, 0, 0));
		}
	}

	private static void clocks() {
		double before = MPI.Wtime();
		long nanos = System.nanoTime();
		while (System.nanoTime() - nanos < 2_000_000) {
			Thread.onSpinWait();
		}
		double passed = MPI.Wtime() - before;
		Check.that(passed >= 0.002 && passed < 60, "Wtime of 2 ms: %s s", passed);
		Check.that(MPI.Wtick() > 0 && MPI.Wtick() <= 1e-6, "Wtick");
	}

	/** A buffer that is not significant is not looked at: it may be null, and is not written. */
	private static void significance() {
		for (int root = 0; root < size; root++) {
			int[] all = rank == root ? new int[size] : null;
			comm.Gather(new int[] {rank}, 0, 1, MPI.INT, all, 0, 1, MPI.INT, root);
			Check.that(all == null || all[size - 1] == size - 1, "Gather with null elsewhere");
			int[] mine = new int[1];
			int[] kept = all == null ? null : all.clone();
			comm.Scatter(all, 0, 1, MPI.INT, mine, 0, 1, MPI.INT, root);
			Check.eq(rank, mine[0], "Scatter with null elsewhere");
			Check.same(kept, all, "what Scatter sends");
			comm.Gatherv(mine, 0, 1, MPI.INT, all, 0, rank == root ? ones() : null, rank == root ? ramp() : null, MPI.INT, root);
			comm.Scatterv(all, 0, rank == root ? ones() : null, rank == root ? ramp() : null, MPI.INT, mine, 0, 1, MPI.INT, root);
			Check.eq(rank, mine[0], "Scatterv with null elsewhere");
			int[] sum = rank == root ? new int[1] : null;
			comm.Reduce(mine, 0, sum, 0, 1, MPI.INT, MPI.SUM, root);
			Check.that(sum == null || sum[0] == size * (size - 1) / 2, "Reduce with null elsewhere");
		}
	}

	private static int[] ones() {
		int[] ones = new int[size];
		java.util.Arrays.fill(ones, 1);
		return ones;
	}

	private static int[] ramp() {
		int[] ramp = new int[size];
		for (int i = 0; i < size; i++) {
			ramp[i] = i;
		}
		return ramp;
	}

	/** Offsets and derived types in collectives: every second element. */
	private static void offsetsAndTypes() {
		Datatype every = Datatype.Vector(2, 1, 2, MPI.INT); // elements 0 and 2, extent 3
		every.Commit();
		int[] out = {-1, rank, -1, rank + 100, -1};
		int[] in = new int[2 + 3 * size];
		comm.Allgather(out, 1, 1, every, in, 2, 1, every);
		for (int i = 0; i < size; i++) {
			Check.eq(i, in[2 + 3 * i], "first element of rank %d", i);
			Check.eq(0, in[3 + 3 * i], "the gap of rank %d", i);
			Check.eq(i + 100, in[4 + 3 * i], "second element of rank %d", i);
		}
		in = new int[2 + 3 * size];
		comm.Gather(out, 1, 1, every, in, 2, 1, every, 0);
		Check.that(rank != 0 || in[2 + 3 * (size - 1)] == size - 1, "Gather of a derived type at an offset");
		int[] back = new int[5];
		comm.Scatter(in, 2, 1, every, back, 1, 2, MPI.INT, 0);
		Check.same(new int[] {0, rank, rank + 100, 0, 0}, back, "Scatter of a derived type to a basic one");
		int[] sum = new int[5];
		comm.Allreduce(out, 1, sum, 1, 1, every, MPI.SUM);
		Check.same(new int[] {0, size * (size - 1) / 2, 0, size * (size - 1) / 2 + 100 * size, 0}, sum, "Allreduce of a derived type");
		int[] word = rank == 0 ? out : new int[5];
		comm.Bcast(word, 1, 1, every, 0);
		Check.eq(100, word[3], "Bcast of a derived type");
		int[] send = new int[3 * size];
		java.util.Arrays.fill(send, rank);
		int[] recv = new int[1 + 3 * size];
		comm.Alltoall(send, 0, 1, every, recv, 1, 1, every);
		Check.eq(size - 1, recv[1 + 3 * (size - 1) + 2], "Alltoall of a derived type");
	}

	private static void reduceScatterKeepsItsInput() {
		int[] counts = new int[size];
		int total = 0;
		for (int i = 0; i < size; i++) {
			counts[i] = i % 3;
			total += counts[i];
		}
		long[] in = new long[total + 1];
		java.util.Arrays.fill(in, rank + 1);
		long[] kept = in.clone();
		long[] out = new long[counts[rank] + 2];
		comm.Reduce_scatter(in, 1, out, 1, counts, MPI.LONG, MPI.SUM);
		Check.same(kept, in, "the input of Reduce_scatter");
		for (int i = 0; i < out.length; i++) {
			Check.eq(i == 0 || i == out.length - 1 ? 0 : size * (size + 1) / 2, out[i], "Reduce_scatter, element %d", i);
		}
	}

	/** An operation that does not commute: a product of 2 x 2 matrices modulo a prime. */
	private static void order() {
		Datatype matrix = Datatype.Contiguous(4, MPI.LONG);
		matrix.Commit();
		Op product = new Op(new User_function() {
			@Override
			public void Call(Object in, int inOffset, Object inOut, int inOutOffset, int count, Datatype type) {
				for (int i = 0; i < count; i++) {
					System.arraycopy(times((long[]) in, inOffset + 4 * i, (long[]) inOut, inOutOffset + 4 * i), 0, inOut, inOutOffset + 4 * i, 4);
				}
			}
		}, false);
		long[] want = null;
		long[] upTo = null;
		for (int i = 0; i < size; i++) {
			want = want == null ? factor(i) : times(want, 0, factor(i), 0);
			upTo = i == rank ? want : upTo;
		}
		for (int root = 0; root < size; root++) {
			long[] result = new long[4];
			comm.Reduce(factor(rank), 0, result, 0, 1, matrix, product, root);
			Check.that(rank != root || java.util.Arrays.equals(want, result), "Reduce by an operation that does not commute");
		}
		long[] result = new long[4];
		comm.Allreduce(factor(rank), 0, result, 0, 1, matrix, product);
		Check.same(want, result, "Allreduce by an operation that does not commute");
		comm.Scan(factor(rank), 0, result, 0, 1, matrix, product);
		Check.same(upTo, result, "Scan by an operation that does not commute");
		product.free();
		refused("freed", () -> comm.Scan(factor(rank), 0, new long[4], 0, 1, matrix, product));
	}

	private static long[] factor(int i) {
		return new long[] {i + 2, 1, 3, i + 5};
	}

	private static long[] times(long[] a, int i, long[] b, int j) {
		long p = 1_000_003;
		return new long[] {(a[i] * b[j] + a[i + 1] * b[j + 2]) % p, (a[i] * b[j + 1] + a[i + 1] * b[j + 3]) % p, (a[i + 2] * b[j] + a[i + 3] * b[j + 2]) % p,
				(a[i + 2] * b[j + 1] + a[i + 3] * b[j + 3]) % p};
	}

	private static void userOperations() {
		Op xor = new Op(new User_function() {
			@Override
			public void Call(Object in, int inOffset, Object inOut, int inOutOffset, int count, Datatype type) {
				for (int i = 0; i < count; i++) {
					((boolean[]) inOut)[inOutOffset + i] ^= ((boolean[]) in)[inOffset + i];
				}
			}
		}, true);
		boolean[] result = new boolean[2];
		comm.Allreduce(new boolean[] {rank % 2 == 0, true}, 0, result, 0, 2, MPI.BOOLEAN, xor);
		Check.same(new boolean[] {(size + 1) / 2 % 2 == 1, size % 2 == 1}, result, "a user's operation on booleans");
		int[] bits = new int[2];
		comm.Allreduce(new int[] {1 << rank, 1}, 0, bits, 0, 2, MPI.INT, MPI.BOR);
		Check.same(new int[] {(1 << size) - 1, 1}, bits, "BOR");
		comm.Allreduce(new int[] {1 << rank, 1}, 0, bits, 0, 2, MPI.INT, MPI.BXOR);
		Check.same(new int[] {(1 << size) - 1, size % 2}, bits, "BXOR");
	}

	/** The function finds the elements where a type with gaps has them, and nothing is written in the gaps. */
	private static void userOperationsOfTypesWithGaps() {
		Datatype gaps = Datatype.Vector(2, 1, 3, MPI.INT);
		gaps.Commit();
		Op sum = new Op(new User_function() {
			@Override
			public void Call(Object in, int inoffset, Object inout, int inoutoffset, int count, Datatype type) {
				for (int i = 0; i < 4 * count; i++)
					if (i % 4 == 0 || i % 4 == 3)
						((int[]) inout)[inoutoffset + i] += ((int[]) in)[inoffset + i];
			}
		}, true);
		int[] in = new int[4 * size];
		for (int i = 0; i < in.length; i++)
			in[i] = (rank + 1) * (i + 1);
		int[] all = new int[4 * size];
		int[] mine = new int[4];
		comm.Allreduce(in, 0, all, 0, size, gaps, sum);
		comm.Reduce_scatter(in, 0, mine, 0, ones(), gaps, sum);
		for (int i = 0; i < all.length; i++)
			Check.eq(i % 4 == 0 || i % 4 == 3 ? size * (size + 1) / 2 * (i + 1) : 0, all[i], "element " + i + " of a type with gaps");
		for (int i = 0; i < 4; i++)
			Check.eq(i % 4 == 0 || i % 4 == 3 ? size * (size + 1) / 2 * (4 * rank + i + 1) : 0, mine[i], "element " + i + " of the own part");
	}

	private static void counts() {
		Datatype pair = Datatype.Contiguous(2, MPI.INT);
		pair.Commit();
		Status status = comm.Sendrecv(new int[3], 0, 3, MPI.INT, right(), 2, new int[8], 0, 4, pair, left(), 2);
		Check.eq(MPI.UNDEFINED, status.Get_count(pair), "Get_count of one and a half");
		Check.eq(3, status.Get_elements(pair), "Get_elements of one and a half");
	}

	private static void nullRequests() {
		Request[] none = {null, MPI.REQUEST_NULL, comm.Isend(null, 0, 0, MPI.INT, MPI.PROC_NULL, 0)};
		none[2].Wait();
		Check.eq(MPI.UNDEFINED, Request.Waitany(none).index, "index of Waitany without active requests");
		Check.eq(0, Request.Waitsome(none).length, "Waitsome without active requests");
		Check.eq(3, Request.Testall(none).length, "Testall without active requests");
		Check.eq(MPI.ANY_SOURCE, none[2].Wait().source, "source of an empty status");
		int[] in = new int[1];
		Request[] two = {comm.Irecv(in, 0, 1, MPI.INT, left(), 3), null};
		Check.that(Request.Testall(two) == null, "Testall of a receive without a message");
		comm.Barrier();
		comm.Send(new int[] {rank}, 0, 1, MPI.INT, right(), 3);
		Check.eq(0, Request.Waitany(two).index, "index of Waitany");
		Check.eq(left(), in[0], "message of Waitany");
	}

	private static void cancel() {
		int[] in = new int[1];
		Request receive = comm.Irecv(in, 0, 1, MPI.INT, left(), 4);
		receive.Cancel();
		Check.that(receive.Wait().Test_cancelled(), "a cancelled receive");
		comm.Barrier();
		receive = comm.Irecv(in, 0, 1, MPI.INT, left(), 4);
		comm.Send(new int[] {rank}, 0, 1, MPI.INT, right(), 4);
		Check.that(!receive.Wait().Test_cancelled(), "a receive that was not cancelled");
		Check.eq(left(), in[0], "the message after a cancelled receive");
	}

	private static void communicators() {
		Intracomm copy = (Intracomm) comm.clone();
		Check.eq(MPI.CONGRUENT, Comm.Compare(comm, copy), "Compare with a duplicate");
		Check.that(!copy.Is_null() && MPI.COMM_NULL.Is_null(), "Is_null");
		copy.Free();
		Check.that(copy.Is_null(), "Is_null after Free");
		refused("freed", () -> copy.clone());
		refused("COMM_NULL", () -> MPI.COMM_NULL.Size());
		Intracomm first = comm.Create(comm.Group().Incl(new int[] {0}));
		Check.that((rank == 0) == (first != null), "Create at ranks outside the group");
		int[] alone = new int[1];
		((Intracomm) MPI.COMM_SELF).Allreduce(new int[] {rank}, 0, alone, 0, 1, MPI.INT, MPI.SUM);
		Check.eq(rank, alone[0], "COMM_SELF");
		Check.that(MPI.Errorhandler_get() == MPI.ERRORS_RETURN, "the error handler at first");
		MPI.Errorhandler_set(MPI.ERRORS_ARE_FATAL);
		Check.that(MPI.Errorhandler_get() == MPI.ERRORS_ARE_FATAL, "the error handler that was set");
		MPI.Errorhandler_set(MPI.ERRORS_RETURN);
	}

	private static void attributes() {
		Check.eq(Integer.MAX_VALUE, (Integer) comm.Attr_get(MPI.TAG_UB), "TAG_UB");
		Check.eq(MPI.PROC_NULL, (Integer) comm.Attr_get(MPI.HOST), "HOST");
		Check.that(comm.Attr_get(MPI.IO) != null && comm.Attr_get(4711) == null, "IO, and none");
		refused("predefined", () -> comm.Attr_delete(MPI.TAG_UB));
	}

	private static void grids() {
		dims(6, new int[2], 3, 2);
		dims(7, new int[2], 7, 1);
		dims(12, new int[] {0, 2, 0}, 3, 2, 2);
		dims(16, new int[4], 2, 2, 2, 2);
		dims(12, new int[3], 3, 2, 2);
		refused("divided", () -> Cartcomm.Dims_create(7, new int[] {2, 0}));
		Cartcomm line = comm.Create_cart(new int[] {size}, new boolean[] {false}, false);
		ShiftParms shift = line.Shift(0, 1);
		Check.eq(rank == size - 1 ? MPI.PROC_NULL : rank + 1, shift.rank_dest, "right end");
		int[] in = {-5};
		line.Sendrecv(new int[] {rank}, 0, 1, MPI.INT, shift.rank_dest, 5, in, 0, 1, MPI.INT, shift.rank_source, 5);
		Check.eq(rank == 0 ? -5 : rank - 1, in[0], "message along a line");
		Cartcomm none = comm.Create_cart(new int[] {1}, new boolean[] {true}, false);
		Check.that((rank == 0) == (none != null), "a grid of one");
		refused("more than", () -> comm.Create_cart(new int[] {size, 2}, new boolean[2], false));
	}

	private static void dims(int nodes, int[] dims, int... want) {
		Cartcomm.Dims_create(nodes, dims);
		Check.same(want, dims, "Dims_create of %d", nodes);
	}

	/** A struct of several basic types describes bytes. */
	private static void structs() {
		Datatype record = Datatype.Struct(new int[] {1, 2, 1}, new int[] {0, 8, 24}, new Datatype[] {MPI.INT, MPI.DOUBLE, MPI.UB});
		record.Commit();
		Check.eq(24, record.Extent(), "extent of a struct");
		Check.eq(20, record.Size(), "size of a struct of several types");
		ByteBuffer out = ByteBuffer.allocateDirect(48).order(ByteOrder.nativeOrder());
		out.putInt(0, rank).putDouble(8, 1.5).putInt(24, rank + 1).putDouble(40, 2.5);
		ByteBuffer in = ByteBuffer.allocate(48).order(ByteOrder.nativeOrder());
		Status status = comm.Sendrecv(out, 0, 2, record, right(), 6, in, 0, 2, record, left(), 6);
		Check.eq(2, status.Get_count(record), "count of a struct");
		Check.that(in.getInt(0) == left() && in.getDouble(8) == 1.5 && in.getInt(24) == left() + 1 && in.getDouble(40) == 2.5, "a struct");
		Datatype resized = Datatype.Struct(new int[] {1, 1}, new int[] {0, 5}, new Datatype[] {MPI.INT, MPI.UB});
		resized.Commit();
		int[] column = new int[2 * size];
		comm.Sendrecv(new int[] {1, 2, 3, 4, 5, 6}, 0, 2, resized, right(), 7, column, 0, 2, MPI.INT, left(), 7);
		Check.that(column[0] == 1 && column[1] == 6, "a type with a bound");
	}

	/** Of a NaN and a number, MAX and MIN give the number, in arrays of any length. */
	private static void notANumber() {
		for (int count : new int[] {1, 600_000}) {
			double[] in = new double[count];
			double[] out = new double[count];
			java.util.Arrays.fill(in, rank == 0 ? Double.NaN : rank);
			comm.Allreduce(in, 0, out, 0, count, MPI.DOUBLE, MPI.MAX);
			Check.that(Double.compare(size == 1 ? Double.NaN : size - 1, out[count - 1]) == 0, "MAX with a NaN: %s", out[count - 1]);
			comm.Allreduce(in, 0, out, 0, count, MPI.DOUBLE, MPI.MIN);
			Check.that(Double.compare(size == 1 ? Double.NaN : 1, out[count - 1]) == 0, "MIN with a NaN: %s", out[count - 1]);
		}
	}

	/** Bad input is an exception that names the value, and the job goes on. */
	private static void badInput() {
		int[] data = new int[4];
		refused("count is -1", () -> comm.Send(data, 0, -1, MPI.INT, 0, 0));
		refused("offset 3, count 2", () -> comm.Recv(data, 3, 2, MPI.INT, 0, 0));
		refused("null", () -> comm.Send(null, 0, 1, MPI.INT, 0, 0));
		refused("int[]", () -> comm.Send(data, 0, 1, MPI.DOUBLE, 0, 0));
		refused("not committed", () -> comm.Send(data, 0, 1, Datatype.Contiguous(2, MPI.INT), 0, 0));
		refused("destination is " + size, () -> comm.Send(data, 0, 1, MPI.INT, size, 0));
		refused("source is -7", () -> comm.Recv(data, 0, 1, MPI.INT, -7, 0));
		refused("root is " + size, () -> comm.Bcast(data, 0, 1, MPI.INT, size));
		refused("not defined", () -> comm.Allreduce(new Object[1], 0, new Object[1], 0, 1, MPI.OBJECT, MPI.SUM));
		refused("MPI.NULL", () -> comm.Send(data, 0, 1, MPI.NULL, 0, 0));
		refused("colour is -5", () -> comm.Split(-5, 0));
		refused("call Finalize first", () -> MPI.Init(new String[0]));
		refused("Waitall: the array of requests is null", () -> Request.Waitall(null));
		refused("Waitany: the array of requests is null", () -> Request.Waitany(null));
		refused("Incl: the array of ranks is null", () -> comm.Group().Incl(null));
		refused("Range_excl: the array of ranks is null", () -> comm.Group().Range_excl(new int[1][]));
		Datatype freed = Datatype.Contiguous(2, MPI.INT);
		freed.Commit();
		freed.free();
		refused("freed", () -> comm.Send(data, 0, 1, freed, 0, 0));
		Request long5 = comm.Isend(new int[5], 0, 5, MPI.INT, right(), 8);
		refused("5 int", () -> comm.Recv(data, 0, 4, MPI.INT, left(), 8));
		long5.Wait();
		comm.Barrier();
	}

	private static void refused(String word, Runnable call) {
		try {
			call.run();
		} catch (MPIException e) {
			Check.that(e.getMessage().contains(word) && e.getMessage().contains(": "), "the text lacks \"%s\": %s", word, e.getMessage());
			return;
		}
		Check.fail("no exception with \"%s\"", word);
	}

	private static void buffers() {
		IntBuffer out = ByteBuffer.allocateDirect(40).order(ByteOrder.nativeOrder()).asIntBuffer();
		out.put(3, rank);
		ByteBuffer in = ByteBuffer.allocate(40).order(ByteOrder.BIG_ENDIAN);
		Status status = comm.Sendrecv(out, 3, 2, MPI.INT, right(), 9, in, 1, 4, MPI.INT, left(), 9);
		Check.eq(2, status.Get_count(MPI.INT), "count of a buffer");
		Check.eq(left(), in.getInt(4), "element of a buffer in another byte order");
		byte[] message = new byte[comm.Pack_size(3, MPI.DOUBLE) + comm.Pack_size(2, MPI.BOOLEAN)];
		int at = comm.Pack(new double[] {0, rank, 2, 3}, 1, 3, MPI.DOUBLE, message, 0);
		at = comm.Pack(new boolean[] {true, false}, 0, 2, MPI.BOOLEAN, message, at);
		byte[] came = new byte[message.length];
		comm.Sendrecv(message, 0, at, MPI.PACKED, right(), 10, came, 0, at, MPI.PACKED, left(), 10);
		double[] doubles = new double[3];
		boolean[] flags = new boolean[2];
		at = comm.Unpack(came, 0, doubles, 0, 3, MPI.DOUBLE);
		comm.Unpack(came, at, flags, 0, 2, MPI.BOOLEAN);
		Check.same(new double[] {left(), 2, 3}, doubles, "unpacked doubles");
		Check.same(new boolean[] {true, false}, flags, "unpacked booleans");
		refused("position", () -> comm.Unpack(came, came.length, doubles, 0, 1, MPI.DOUBLE));
	}

	private static void buffered() {
		refused("no buffer is attached", () -> comm.Bsend(new int[1], 0, 1, MPI.INT, right(), 11));
		MPI.Buffer_attach(new byte[2 * (40 + MPI.BSEND_OVERHEAD)]);
		int[] data = new int[10];
		data[9] = rank;
		comm.Bsend(data, 0, 10, MPI.INT, right(), 11);
		java.util.Arrays.fill(data, -1);
		comm.Barrier();
		int[] in = new int[10];
		comm.Recv(in, 0, 10, MPI.INT, left(), 11);
		Check.eq(left(), in[9], "a buffered message whose array was changed");
		refused("attached", () -> comm.Bsend(new int[100], 0, 100, MPI.INT, right(), 11));
		MPI.Buffer_detach();
		refused("no buffer is attached", MPI::Buffer_detach);
	}

	/** Two threads of each rank make communicators at once; their messages must not meet. */
	private static void overlappingCreations() {
		Intracomm[] parents = {(Intracomm) comm.clone(), (Intracomm) comm.clone()};
		Intracomm[] made = new Intracomm[2];
		Thread[] threads = new Thread[2];
		for (int t = 0; t < 2; t++) {
			int number = t;
			threads[t] = new Thread(() -> {
				for (int i = 0; i < 20; i++) {
					made[number] = (Intracomm) parents[number].clone();
				}
			});
			threads[t].start();
		}
		for (Thread thread : threads) {
			try {
				thread.join();
			} catch (InterruptedException e) {
				throw new IllegalStateException(e);
			}
		}
		Request[] sends = new Request[2];
		for (int t = 0; t < 2; t++) {
			sends[t] = made[t].Isend(new int[] {t}, 0, 1, MPI.INT, right(), 12);
		}
		for (int t = 1; t >= 0; t--) {
			int[] in = new int[1];
			made[t].Recv(in, 0, 1, MPI.INT, MPI.ANY_SOURCE, MPI.ANY_TAG);
			Check.eq(t, in[0], "message of communicator %d", t);
		}
		Request.Waitall(sends);
	}

	/** What only answers, and what has no effect. */
	private static void inquiries() {
		Datatype part = Datatype.Indexed(new int[] {1, 2}, new int[] {4, 1}, MPI.INT);
		Check.eq(1, part.Lb(), "lower bound");
		Check.eq(5, part.Ub(), "upper bound");
		Check.eq(12, part.getByteSize(), "bytes of an item");
		Check.eq(MPI.INT.baseType, part.getType(), "basic type");
		Check.that(MPI.isMainThread() && MPI.queryThread() == MPI.THREAD_MULTIPLE, "threads");
		Check.that(!MPI.Get_processor_name().isEmpty(), "the name of the processor");
		comm.Group().free();
		Check.eq(size, comm.Group().Size(), "a group after free");
		Check.eq(0, new Status().Get_count(MPI.INT), "an empty status");
		Check.that(new MPIException().getMessage() == null, "an exception without a text");
		Check.that("why".equals(new MPIException("why").getMessage()), "the text of an exception");
		Check.that(new MPIException(new Error("cause")).getCause() instanceof Error, "the cause of an exception");
		Check.that(new MPI() != null&& new GraphParms().index == null, "constructors");
		new Status().free();
		topologies();
		userFunction();
	}

	/** Where a process would be in a topology, and the other side of an inter-communicator. */
	private static void topologies() {
		Cartcomm line = comm.Create_cart(new int[] {size}, new boolean[] {false}, false);
		Check.eq(rank, line.Map(new int[] {size}, new boolean[] {false}), "place in a grid of all");
		Check.eq(rank == 0 ? 0 : MPI.UNDEFINED, line.Map(new int[] {1}, new boolean[] {false}), "place in a grid of one");
		Graphcomm apart = comm.Create_graph(new int[size], new int[0], false);
		Check.eq(rank, apart.Map(new int[size], new int[0]), "place in a graph of all");
		Check.eq(rank == 0 ? 0 : MPI.UNDEFINED, apart.Map(new int[1], new int[0]), "place in a graph of one");
		if (size > 1) {
			boolean first = rank == 0;
			Intercomm inter = comm.Create_intercomm(comm.Split(first ? 0 : 1, rank), 0, first ? 1 : 0, 31);
			Check.eq(first ? size - 1 : 1, inter.Remote_group().Size(), "size of the remote group");
		}
	}

	private static void userFunction() {
		User_function last = new User_function() {
			@Override
			public void Call(Object in, int inOffset, Object inOut, int inOutOffset, int count, Datatype type) {
				System.arraycopy(in, inOffset, inOut, inOutOffset, count);
			}
		};
		int[] to = {1, 2};
		last.Call(new int[] {7}, 0, to, 1, 1, MPI.INT);
		Check.eq(7, to[1], "a direct call");
		int[] sum = new int[1];
		comm.Allreduce(new int[] {3}, 0, sum, 0, 1, MPI.INT, new Op(last, true, 1));
		Check.eq(3, sum[0], "an operation with a code");
	}
}
