// SPDX-License-Identifier: MIT
package mpitest;

import java.lang.reflect.Array;
import java.lang.reflect.Field;
import java.util.Arrays;
import mpi.Datatype;
import mpi.MPI;
import mpi.Op;

/**
 * Reductions that are too long for the native library and are computed in Java: the result must have the bits of the same reduction in pieces, which the library
 * computes. All predefined operations on all types, with overflow, not-a-numbers, infinities and zeros of both signs.
 */
public final class LongReductions {
	/** Longer than what goes to the library (4 MB), in pieces that are not. */
	private static final int BYTES = (4 << 20) + 4096;
	private static final int PIECE_BYTES = 1 << 20;

	private LongReductions() {}

	public static void main(String[] args) throws Exception {
		MPI.Init(args);
		Place p = new Place(MPI.COMM_WORLD, "ibvdev", -1, 0);
		Kind[] numbers = {Kind.BYTE, Kind.CHAR, Kind.SHORT, Kind.INT, Kind.LONG, Kind.FLOAT, Kind.DOUBLE};
		Kind[] bits = {Kind.BOOLEAN, Kind.BYTE, Kind.CHAR, Kind.SHORT, Kind.INT, Kind.LONG};
		for (Kind kind : numbers) {
			one(p, kind, kind.type(), MPI.MAX, MPI.MIN, MPI.SUM, MPI.PROD);
			one(p, kind, Datatype.Contiguous(2, kind.type()), MPI.MAXLOC, MPI.MINLOC);
		}
		for (Kind kind : bits)
			one(p, kind, kind.type(), MPI.LAND, MPI.LOR, MPI.LXOR, MPI.BAND, MPI.BOR, MPI.BXOR);
		System.out.println("rank " + p.rank + ": long reductions are as short ones");
		MPI.Finalize();
	}

	private static int unit(Kind kind) {
		return kind == Kind.BOOLEAN || kind == Kind.BYTE ? 1 : kind == Kind.CHAR || kind == Kind.SHORT ? 2 : kind == Kind.INT || kind == Kind.FLOAT ? 4 : 8;
	}

	/** The second of a pair is an index; equal values are frequent. */
	private static Object input(Kind kind, int rank, int count, boolean pairs) {
		Object array = kind.array(count);
		for (int i = 0; i < count; i++)
			if (!pairs)
				Array.set(array, i, kind.value(rank, i));
			else if (i % 2 == 0)
				Array.set(array, i, kind.value((rank + i) % 5 < 3 ? 0 : rank, i % 64));
			else if (kind == Kind.CHAR)
				Array.setChar(array, i, (char) (i % 97));
			else
				Array.setByte(array, i, (byte) (i % 97));
		return array;
	}

	private static void one(Place p, Kind kind, Datatype type, Op... ops) throws Exception {
		type.Commit();
		int each = type == kind.type() ? 1 : 2;
		Object in = input(kind, p.rank, BYTES / unit(kind), each == 2);
		for (Op op : ops)
			one(p, kind, in, each, type, op);
	}

	private static void one(Place p, Kind kind, Object in, int each, Datatype type, Op op) throws Exception {
		int elements = Array.getLength(in);
		int piece = PIECE_BYTES / unit(kind);
		Object whole = kind.array(elements);
		Object pieces = kind.array(elements);
		p.comm.Allreduce(in, 0, whole, 0, elements / each, type, op);
		for (int at = 0; at < elements; at += piece)
			p.comm.Allreduce(in, at, pieces, at, Math.min(piece, elements - at) / each, type, op);
		same(p, kind, op, whole, pieces);
		Object onRoot = kind.array(elements);
		p.comm.Reduce(in, 0, onRoot, 0, elements / each, type, op, p.size - 1);
		if (p.rank == p.size - 1)
			same(p, kind, op, onRoot, pieces);
	}

	private static void same(Place p, Kind kind, Op op, Object whole, Object pieces) throws ReflectiveOperationException {
		if ((Boolean) Arrays.class.getMethod("equals", whole.getClass(), whole.getClass()).invoke(null, whole, pieces))
			return;
		int count = Array.getLength(whole);
		for (int i = 0; i < count; i++)
			if (!Array.get(whole, i).equals(Array.get(pieces, i)))
				Check.fail("rank %d, %s, operation %s: element %d of %d is %s in a long reduction and %s in a short one", p.rank, kind, name(op), i, count,
						Array.get(whole, i), Array.get(pieces, i));
	}

	private static String name(Op op) throws ReflectiveOperationException {
		for (Field field : MPI.class.getFields())
			if (field.getType() == Op.class && field.get(null) == op)
				return field.getName();
		return "?";
	}
}
