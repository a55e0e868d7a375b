// SPDX-License-Identifier: MIT
package mpitest;

import java.lang.reflect.Array;
import java.util.Arrays;
import java.util.Random;
import mpi.Datatype;
import mpi.Intracomm;
import mpi.MPI;
import mpi.Op;

/**
 * A random program of collective operations and derived types of our package mpi against a trivial reference: every rank knows the inputs of all, and computes what it has to get. Arguments: the seed, the
 * number of operations. Any number of ranks.
 */
public final class RandomCollectives {
	private static final int ROOM = 4;
	/** In some operations: so long parts go from array to array. */
	private static final int LONG_ROOM = 6000;
	private static final Datatype[] BASIC = {MPI.BYTE, MPI.CHAR, MPI.SHORT, MPI.INT, MPI.LONG, MPI.FLOAT, MPI.DOUBLE};
	private static final Class<?>[] ELEMENTS = {byte.class, char.class, short.class, int.class, long.class, float.class, double.class};
	private static final Op[] OPS = {MPI.SUM, MPI.MAX, MPI.MIN};

	/** A datatype as the standard has it: where its elements lie, in the order of a message. */
	private static final class Shape {
		final Datatype type;
		final int[] map;
		final int extent;

		Shape(Datatype type, int[] map, int extent) {
			this.type = type;
			this.map = map;
			this.extent = extent;
		}

		int reach(int items) {
			return items == 0 ? 0 : (items - 1) * extent + Arrays.stream(map).max().orElse(0) + 1;
		}
	}

	private final Random random;
	private final Intracomm comm;
	private final int rank;
	private final int size;
	private int step;
	private int basic;
	private boolean isLong;
	private int offset;

	private RandomCollectives(long seed, Intracomm comm) {
		random = new Random(seed);
		this.comm = comm;
		rank = comm.Rank();
		size = comm.Size();
	}

	public static void main(String[] args) {
		String[] words = MPI.initThread(args.length, MPI.THREAD_MULTIPLE, args);
		long[] seed = {Long.parseLong(words[0])};
		int steps = Integer.parseInt(words[1]);
		RandomCollectives program = new RandomCollectives(seed[0], MPI.COMM_WORLD);
		for (program.step = 0; program.step < steps; program.step++) {
			try {
				program.operation();
			} catch (RuntimeException e) {
				throw new IllegalStateException("seed " + seed[0] + ", operation " + program.step, e);
			}
		}
		MPI.Finalize();
		System.out.println("rank " + program.rank + ": " + steps + " operations of seed " + seed[0] + " passed");
	}

	private Shape shape() {
		Shape shape = new Shape(BASIC[basic], new int[] {0}, 1);
		for (int depth = random.nextInt(3); depth > 0; depth--) {
			shape = random.nextInt(3) == 0 ? indexed(shape) : vector(shape);
		}
		shape.type.Commit();
		return shape;
	}

	/** With one block: Contiguous. */
	private Shape vector(Shape of) {
		int count = 1 + random.nextInt(3);
		int length = 1 + random.nextInt(3);
		int stride = length + random.nextInt(3);
		int[] begin = new int[count];
		int[] lengths = new int[count];
		Arrays.setAll(begin, i -> i * stride);
		Arrays.fill(lengths, length);
		Datatype type;
		if (count == 1) {
			type = Datatype.Contiguous(length, of.type);
		} else if (random.nextBoolean()) {
			type = Datatype.Vector(count, length, stride, of.type);
		} else {
			type = Datatype.Hvector(count, length, stride * of.extent, of.type);
		}
		return blocks(of, type, begin, lengths);
	}

	private Shape indexed(Shape of) {
		int count = 1 + random.nextInt(3);
		int[] begin = new int[count];
		int[] lengths = new int[count];
		int at = random.nextInt(2);
		for (int i = 0; i < count; i++) {
			begin[i] = at;
			lengths[i] = 1 + random.nextInt(2);
			at += lengths[i] + random.nextInt(2);
		}
		if (random.nextBoolean() && count > 1) { // a message may have them in another order than memory
			int first = begin[0];
			begin[0] = begin[1];
			begin[1] = first;
			int length = lengths[0];
			lengths[0] = lengths[1];
			lengths[1] = length;
		}
		return blocks(of, Datatype.Indexed(lengths, begin, of.type), begin, lengths);
	}

	private static Shape blocks(Shape of, Datatype type, int[] begin, int[] lengths) {
		int[] map = new int[Arrays.stream(lengths).sum() * of.map.length];
		int lower = Integer.MAX_VALUE;
		int upper = 0;
		int at = 0;
		for (int block = 0; block < begin.length; block++) {
			for (int item = 0; item < lengths[block]; item++) {
				for (int element : of.map) {
					map[at++] = (begin[block] + item) * of.extent + element;
				}
			}
			lower = Math.min(lower, begin[block]);
			upper = Math.max(upper, begin[block] + lengths[block]);
		}
		return new Shape(type, map, (upper - lower) * of.extent);
	}

	/** The same number of elements, as elements of the basic type or as they are. */
	private Shape other(Shape shape) {
		return random.nextBoolean() ? shape : new Shape(BASIC[basic], new int[] {0}, 1);
	}

	/** What an array of a rank holds before an operation. */
	private Object filled(int of, int length, int salt) {
		Object array = Array.newInstance(ELEMENTS[basic], length);
		for (int i = 0; i < length; i++) {
			set(array, i, Check.mix(((step * 64L + of) * 4 + salt) << 20 | i) & 63);
		}
		return array;
	}

	private void set(Object array, int i, long value) {
		switch (basic) {
		case 0:
			((byte[]) array)[i] = (byte) value;
			break;
		case 1:
			((char[]) array)[i] = (char) value;
			break;
		case 2:
			((short[]) array)[i] = (short) value;
			break;
		case 3:
			((int[]) array)[i] = (int) value;
			break;
		case 4:
			((long[]) array)[i] = value;
			break;
		case 5:
			((float[]) array)[i] = value;
			break;
		default:
			((double[]) array)[i] = value;
		}
	}

	private long get(Object array, int i) {
		return basic == 1 ? ((char[]) array)[i] : ((Number) Array.get(array, i)).longValue();
	}

	private long[] pick(Object array, int first, int items, Shape shape) {
		long[] message = new long[items * shape.map.length];
		for (int i = 0; i < message.length; i++) {
			message[i] = get(array, first + i / shape.map.length * shape.extent + shape.map[i % shape.map.length]);
		}
		return message;
	}

	private void put(Object array, int first, Shape shape, long[] message) {
		for (int i = 0; i < message.length; i++) {
			set(array, first + i / shape.map.length * shape.extent + shape.map[i % shape.map.length], message[i]);
		}
	}

	private void operation() {
		basic = random.nextInt(BASIC.length);
		isLong = random.nextInt(16) == 0;
		offset = random.nextInt(3);
		int kind = random.nextInt(10);
		boolean started = random.nextBoolean();
		int root = random.nextInt(size);
		if (kind == 0) {
			bcast(started, root);
		} else if (kind < 4) {
			gather(started, kind == 1, random.nextBoolean(), root);
		} else if (kind < 6) {
			scatter(started, random.nextBoolean(), root);
		} else if (kind < 8) {
			alltoall(started, random.nextBoolean());
		} else {
			reduce(started, random.nextInt(4), root);
		}
		neighbours();
	}

	/** Items of a rank. */
	private int items() {
		return random.nextInt(isLong && random.nextInt(3) > 0 ? LONG_ROOM : ROOM);
	}

	/** Items of each rank; even: the same number. */
	private int[] counts(boolean even) {
		int[] counts = new int[size];
		int each = items();
		Arrays.setAll(counts, i -> even ? each : items());
		return counts;
	}

	/** Where parts begin, in extents; even: one behind the other. */
	private int[] begins(boolean even, int[] counts) {
		int[] begins = new int[size];
		for (int i = 1; i < size; i++) {
			begins[i] = begins[i - 1] + counts[i - 1] + (even ? 0 : 1 + random.nextInt(2));
		}
		return begins;
	}

	/** Items of a side whose type is the other's or its basic one. */
	private static int[] times(int[] counts, Shape from, Shape to) {
		return Arrays.stream(counts).map(n -> n * from.map.length / to.map.length).toArray();
	}

	/** Parts of a type whose bounds may lie apart from its elements take room for all of them. */
	private int length(int[] begins, int[] counts, Shape shape) {
		int most = 0;
		for (int i = 0; i < size; i++) {
			most = Math.max(most, begins[i] * shape.extent + shape.reach(counts[i]));
		}
		return offset + most + 2;
	}

	private void same(String what, Object want, Object got) {
		Check.same(want, got, "%s of %s, rank %d of %d", what, BASIC[basic], rank, size);
	}

	private void bcast(boolean started, int root) {
		Shape shape = shape();
		Shape mine = rank == root ? shape : other(shape);
		if (rank == root) {
			other(shape); // all draw the same numbers
		}
		int items = items();
		int here = items * shape.map.length / mine.map.length;
		Object buf = filled(rank, offset + mine.reach(here) + 1, 0);
		Object want = filled(rank, Array.getLength(buf), 0);
		put(want, offset, mine, pick(filled(root, offset + shape.reach(items) + 1, 0), offset, items, shape));
		if (started) {
			comm.Ibcast(buf, offset, here, mine.type, root).Wait();
		} else {
			comm.Bcast(buf, offset, here, mine.type, root);
		}
		same("Bcast", want, buf);
	}

	private void gather(boolean started, boolean all, boolean even, int root) {
		Shape from = shape();
		Shape to = other(from);
		int[] counts = counts(even);
		int[] room = times(counts, from, to);
		int[] at = begins(even, room);
		Object out = filled(rank, offset + from.reach(counts[rank]), 0);
		Object in = filled(rank, length(at, room, to), 1);
		Object want = filled(rank, Array.getLength(in), 1);
		for (int i = 0; i < size && (all || rank == root); i++) {
			put(want, offset + at[i] * to.extent, to, pick(filled(i, offset + from.reach(counts[i]), 0), offset, counts[i], from));
		}
		int n = counts[rank];
		if (all && even && started) {
			comm.Iallgather(out, offset, n, from.type, in, offset, room[0], to.type).Wait();
		} else if (all && even) {
			comm.Allgather(out, offset, n, from.type, in, offset, room[0], to.type);
		} else if (all && started) {
			comm.Iallgatherv(out, offset, n, from.type, in, offset, room, at, to.type).Wait();
		} else if (all) {
			comm.Allgatherv(out, offset, n, from.type, in, offset, room, at, to.type);
		} else if (even && started) {
			comm.Igather(out, offset, n, from.type, in, offset, room[0], to.type, root).Wait();
		} else if (even) {
			comm.Gather(out, offset, n, from.type, in, offset, room[0], to.type, root);
		} else if (started) {
			comm.Igatherv(out, offset, n, from.type, in, offset, room, at, to.type, root).Wait();
		} else {
			comm.Gatherv(out, offset, n, from.type, in, offset, room, at, to.type, root);
		}
		same((all ? "Allgather" : "Gather") + (even ? "" : "v"), want, in);
	}

	private void scatter(boolean started, boolean even, int root) {
		Shape from = shape();
		Shape to = other(from);
		int[] counts = counts(even);
		int[] at = begins(even, counts);
		int room = times(counts, from, to)[rank];
		Object out = filled(rank, length(at, counts, from), 0);
		Object in = filled(rank, offset + to.reach(room) + 1, 1);
		Object want = filled(rank, Array.getLength(in), 1);
		put(want, offset, to, pick(filled(root, Array.getLength(out), 0), offset + at[rank] * from.extent, counts[rank], from));
		if (even && started) {
			comm.Iscatter(out, offset, counts[0], from.type, in, offset, room, to.type, root).Wait();
		} else if (even) {
			comm.Scatter(out, offset, counts[0], from.type, in, offset, room, to.type, root);
		} else if (started) {
			comm.Iscatterv(out, offset, counts, at, from.type, in, offset, room, to.type, root).Wait();
		} else {
			comm.Scatterv(out, offset, counts, at, from.type, in, offset, room, to.type, root);
		}
		same("Scatter" + (even ? "" : "v"), want, in);
	}

	private void alltoall(boolean started, boolean even) {
		Shape from = shape();
		Shape to = other(from);
		int[][] counts = new int[size][]; // [sender][receiver]
		int each = items();
		for (int i = 0; i < size; i++) {
			counts[i] = counts(false);
			if (even) {
				Arrays.fill(counts[i], each);
			}
		}
		int[][] sent = new int[size][];
		for (int i = 0; i < size; i++) {
			sent[i] = begins(even, counts[i]);
		}
		int[] column = new int[size];
		Arrays.setAll(column, i -> counts[i][rank]);
		int[] room = times(column, from, to);
		int[] at = new int[size];
		for (int i = 1; i < size; i++) {
			at[i] = at[i - 1] + room[i - 1] + (even ? 0 : 1);
		}
		Object out = filled(rank, length(sent[rank], counts[rank], from), 0);
		Object in = filled(rank, length(at, room, to), 1);
		Object want = filled(rank, Array.getLength(in), 1);
		for (int i = 0; i < size; i++) {
			Object theirs = filled(i, length(sent[i], counts[i], from), 0);
			put(want, offset + at[i] * to.extent, to, pick(theirs, offset + sent[i][rank] * from.extent, counts[i][rank], from));
		}
		if (even && started) {
			comm.Ialltoall(out, offset, each, from.type, in, offset, room[0], to.type).Wait();
		} else if (even) {
			comm.Alltoall(out, offset, each, from.type, in, offset, room[0], to.type);
		} else if (started) {
			comm.Ialltoallv(out, offset, counts[rank], sent[rank], from.type, in, offset, room, at, to.type).Wait();
		} else {
			comm.Alltoallv(out, offset, counts[rank], sent[rank], from.type, in, offset, room, at, to.type);
		}
		same("Alltoall" + (even ? "" : "v"), want, in);
	}

	/** Which: Reduce, Allreduce, Scan, Reduce_scatter. */
	private void reduce(boolean started, int which, int root) {
		Shape shape = shape();
		int[] shares = counts(false);
		int items = which == 3 ? Arrays.stream(shares).sum() : items();
		int op = random.nextInt(OPS.length);
		Object out = filled(rank, offset + shape.reach(items) + 1, 0);
		int length = Array.getLength(out);
		int mine = which == 3 ? shares[rank] : items;
		Object in = filled(rank, offset + shape.reach(mine) + 1, 1);
		Object want = filled(rank, Array.getLength(in), 1);
		long[] result = pick(filled(0, length, 0), offset, items, shape);
		for (int i = 1; i < (which == 2 ? rank + 1 : size); i++) {
			long[] more = pick(filled(i, length, 0), offset, items, shape);
			for (int k = 0; k < result.length; k++) {
				result[k] = op == 0 ? result[k] + more[k] : op == 1 ? Math.max(result[k], more[k]) : Math.min(result[k], more[k]);
			}
		}
		int first = which == 3 ? Arrays.stream(shares, 0, rank).sum() * shape.map.length : 0;
		if (which > 0 || rank == root) {
			put(want, offset, shape, Arrays.copyOfRange(result, first, first + mine * shape.map.length));
		}
		if (which == 0 && started) {
			comm.Ireduce(out, offset, in, offset, items, shape.type, OPS[op], root).Wait();
		} else if (which == 0) {
			comm.Reduce(out, offset, in, offset, items, shape.type, OPS[op], root);
		} else if (which == 1 && started) {
			comm.Iallreduce(out, offset, in, offset, items, shape.type, OPS[op]).Wait();
		} else if (which == 1) {
			comm.Allreduce(out, offset, in, offset, items, shape.type, OPS[op]);
		} else if (which == 2 && started) {
			comm.Iscan(out, offset, in, offset, items, shape.type, OPS[op]).Wait();
		} else if (which == 2) {
			comm.Scan(out, offset, in, offset, items, shape.type, OPS[op]);
		} else if (started) {
			comm.Ireduce_scatter(out, offset, in, offset, shares, shape.type, OPS[op]).Wait();
		} else {
			comm.Reduce_scatter(out, offset, in, offset, shares, shape.type, OPS[op]);
		}
		same("reduction " + which + " by " + OPS[op], want, in);
	}

	/** A message of a derived type around the ring. */
	private void neighbours() {
		Shape from = shape();
		Shape to = other(from);
		int items = items();
		int room = items * from.map.length / to.map.length;
		int left = (rank + size - 1) % size;
		int length = offset + from.reach(items) + 1;
		Object in = filled(rank, offset + to.reach(room) + 1, 3);
		Object want = filled(rank, Array.getLength(in), 3);
		put(want, offset, to, pick(filled(left, length, 2), offset, items, from));
		comm.Sendrecv(filled(rank, length, 2), offset, items, from.type, (rank + 1) % size, step, in, offset, room, to.type, left, step);
		same("Sendrecv", want, in);
	}
}
