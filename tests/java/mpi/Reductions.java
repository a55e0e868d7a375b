// SPDX-License-Identifier: MIT
package mpitest;

import java.lang.reflect.Array;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.function.LongBinaryOperator;
import mpi.Datatype;
import mpi.MPI;
import mpi.Op;
import mpi.User_function;

/**
 * Reduce, Allreduce, Reduce_scatter and Scan with all predefined operations, the types each takes, and a user's.
 *
 * <p>All at offset 0, because the predefined operations of MPJ Express take the offset for the start and the count
 * for the end of their loop; no user's operation on BOOLEAN, because it gets a byte[];
 * not BOR and BXOR, whose workers override nothing (their perform has another signature) and combine nothing.
 */
final class Reductions {
	private Reductions() {}

	/** An operation and what it does, computed apart from MPJ Express. */
	private static final class Case {
		final String name;
		final Op op;
		final LongBinaryOperator model;
		final Kind[] kinds;

		Case(String name, Op op, LongBinaryOperator model, Kind... kinds) {
			this.name = name;
			this.op = op;
			this.model = model;
			this.kinds = kinds;
		}
	}

	private static final Kind[] NUMBERS = {Kind.BYTE, Kind.CHAR, Kind.SHORT, Kind.INT, Kind.LONG, Kind.FLOAT, Kind.DOUBLE};
	private static final Kind[] WHOLE = {Kind.BYTE, Kind.CHAR, Kind.SHORT, Kind.INT, Kind.LONG};

	private static Case[] cases() {
		return new Case[] {new Case("MAX", MPI.MAX, Math::max, NUMBERS), new Case("MIN", MPI.MIN, Math::min, NUMBERS),
				new Case("SUM", MPI.SUM, Long::sum, NUMBERS), new Case("PROD", MPI.PROD, (a, b) -> a * b, NUMBERS),
				new Case("LAND", MPI.LAND, (a, b) -> a & b, Kind.BOOLEAN), new Case("LOR", MPI.LOR, (a, b) -> a | b, Kind.BOOLEAN),
				new Case("LXOR", MPI.LXOR, (a, b) -> a ^ b, Kind.BOOLEAN), new Case("BAND", MPI.BAND, (a, b) -> a & b, WHOLE)};
	}

	/** Small whole numbers, so that no type overflows or rounds: 1..2 for a product of 8, else 0..11. */
	private static long value(Case c, Kind kind, int rank, int i) {
		long v = Check.mix(rank * 7919L + i);
		if (kind == Kind.BOOLEAN) {
			return v & 1;
		}
		return c.name.equals("PROD") ? (rank < 6 ? 1 + (v & 1) : 1) : Math.floorMod(v, 12L);
	}

	private static Object boxed(Kind kind, long v) {
		switch (kind) {
		case BYTE:
			return (byte) v;
		case CHAR:
			return (char) v;
		case SHORT:
			return (short) v;
		case BOOLEAN:
			return v != 0;
		case INT:
			return (int) v;
		case LONG:
			return v;
		case FLOAT:
			return (float) v;
		case DOUBLE:
			return (double) v;
		default:
			throw new IllegalArgumentException(kind.name());
		}
	}

	private static Object input(Case c, Kind kind, int rank, int count) {
		Object array = kind.array(count);
		for (int i = 0; i < count; i++) {
			Array.set(array, i, boxed(kind, value(c, kind, rank, i)));
		}
		return array;
	}

	/** The result over ranks 0..last at index i. */
	private static Object want(Case c, Kind kind, int last, int i) {
		long result = value(c, kind, 0, i);
		for (int rank = 1; rank <= last; rank++) {
			result = c.model.applyAsLong(result, value(c, kind, rank, i));
		}
		return boxed(kind, result);
	}

	private static void check(Case c, Kind kind, int last, int from, int count, Object array, String what) {
		for (int i = 0; i < count; i++) {
			Object want = want(c, kind, last, from + i);
			Object got = Array.get(array, i);
			if (!want.equals(got)) {
				Check.fail("%s %s of %s, element %d of %d: expected %s, got %s", what, c.name, kind, i, count, want, got);
			}
		}
	}

	static void predefined(Place p) {
		for (Case c : cases()) {
			for (Kind kind : c.kinds) {
				int[] counts = kind == Kind.INT || kind == Kind.DOUBLE ? new int[] {1, 10, 20_000} : new int[] {7};
				for (int count : counts) {
					one(p, c, kind, p.crowded() ? Math.min(count, 2000) : count);
				}
			}
		}
	}

	private static void one(Place p, Case c, Kind kind, int count) {
		Object mine = input(c, kind, p.rank, count);
		for (int root = 0; root<p.size; root += count> 1000 ? 3 : 1) {
			Object result = kind.array(count);
			p.comm.Reduce(mine, 0, result, 0, count, kind.type(), c.op, root);
			if (p.rank == root) {
				check(c, kind, p.size - 1, 0, count, result, "Reduce");
			}
		}
		Object result = kind.array(count);
		p.comm.Allreduce(mine, 0, result, 0, count, kind.type(), c.op);
		check(c, kind, p.size - 1, 0, count, result, "Allreduce");
		result = kind.array(count);
		p.comm.Scan(mine, 0, result, 0, count, kind.type(), c.op);
		check(c, kind, p.rank, 0, count, result, "Scan");
		for (int i = 0; i < count; i++) {
			Check.same(boxed(kind, value(c, kind, p.rank, i)), Array.get(mine, i), "the input of a reduction");
		}
		reduceScatter(p, c, kind, count);
	}

	/**
	 * The bucket algorithm of MPJ Express sends one block again and again, which is right for two ranks only, and takes
	 * booleans for bytes; its flat one scatters equal blocks whatever the counts.
	 */
	private static void reduceScatter(Place p, Case c, Kind kind, int each) {
		if (Place.EXPRESS && !MPI.isOldSelected && (p.size > 2 || kind == Kind.BOOLEAN)) {
			return;
		}
		int[] counts = new int[p.size];
		int before = 0;
		int total = 0;
		for (int i = 0; i < p.size; i++) {
			counts[i] = Place.EXPRESS && MPI.isOldSelected ? each : each + i;
			before += i < p.rank ? counts[i] : 0;
			total += counts[i];
		}
		Object result = kind.array(total);
		p.comm.Reduce_scatter(input(c, kind, p.rank, total), 0, result, 0, counts, kind.type(), c.op);
		check(c, kind, p.size - 1, before, counts[p.rank], result, "Reduce_scatter");
	}

	/** MAXLOC and MINLOC on pairs of every type that has them; equal values give the lower index. */
	static void located(Place p) {
		Map<Kind, Datatype> pairs = new LinkedHashMap<>();
		pairs.put(Kind.SHORT, MPI.SHORT2);
		pairs.put(Kind.INT, MPI.INT2);
		pairs.put(Kind.LONG, MPI.LONG2);
		pairs.put(Kind.FLOAT, MPI.FLOAT2);
		pairs.put(Kind.DOUBLE, MPI.DOUBLE2);
		int count = 9;
		for (Map.Entry<Kind, Datatype> pair : pairs.entrySet()) {
			for (boolean max : new boolean[] {true, false}) {
				Kind kind = pair.getKey();
				Op op = max ? MPI.MAXLOC : MPI.MINLOC;
				Object mine = kind.array(2 * count);
				for (int i = 0; i < count; i++) {
					Array.set(mine, 2 * i, boxed(kind, located(p.rank, i)));
					Array.set(mine, 2 * i + 1, boxed(kind, p.rank));
				}
				Object result = kind.array(2 * count);
				int root = p.size - 1;
				p.comm.Reduce(mine, 0, result, 0, count, pair.getValue(), op, root);
				if (p.rank == root) {
					checkLocated(p, kind, max, count, result, "Reduce");
				}
				result = kind.array(2 * count);
				p.comm.Allreduce(mine, 0, result, 0, count, pair.getValue(), op);
				checkLocated(p, kind, max, count, result, "Allreduce");
			}
		}
	}

	private static long located(int rank, int i) {
		return Math.floorMod(Check.mix(rank * 31L + i), 4L);
	}

	private static void checkLocated(Place p, Kind kind, boolean max, int count, Object result, String what) {
		for (int i = 0; i < count; i++) {
			int best = 0;
			for (int rank = 1; rank < p.size; rank++) {
				long v = located(rank, i);
				long b = located(best, i);
				if (max ? v > b : v < b) {
					best = rank;
				}
			}
			String name = what + (max ? " MAXLOC" : " MINLOC") + " of pairs of " + kind;
			Check.same(boxed(kind, located(best, i)), Array.get(result, 2 * i), "%s: value %d", name, i);
			Check.same(boxed(kind, best), Array.get(result, 2 * i + 1), "%s: place %d", name, i);
		}
	}

	/** A user's operation: saturating addition of ints, and one on objects. */
	static void userDefined(Place p) {
		Op saturating = new Op(new User_function() {
			@Override
			public void Call(Object in, int inOffset, Object inOut, int inOutOffset, int count, Datatype type) {
				for (int i = 0; i < count; i++) {
					int sum = ((int[]) in)[inOffset + i] + ((int[]) inOut)[inOutOffset + i];
					((int[]) inOut)[inOutOffset + i] = Math.min(sum, 100);
				}
			}
		}, true);
		Op longest = new Op(new User_function() {
			@Override
			public void Call(Object in, int inOffset, Object inOut, int inOutOffset, int count, Datatype type) {
				for (int i = 0; i < count; i++) {
					String a = (String) ((Object[]) in)[inOffset + i];
					String b = (String) ((Object[]) inOut)[inOutOffset + i];
					((Object[]) inOut)[inOutOffset + i] = a.length() > b.length() ? a : b;
				}
			}
		}, true);
		int[] result = new int[5];
		int[] mine = {p.rank, 1, 30, 100, 0};
		int sum = p.size * (p.size - 1) / 2;
		int[] want = {sum, p.size, Math.min(100, 30 * p.size), 100, 0};
		for (int root = 0; root < p.size; root++) {
			p.comm.Reduce(mine, 0, result, 0, 5, MPI.INT, saturating, root);
			if (p.rank == root) {
				Check.same(want, result, "Reduce with a user's operation");
			}
		}
		p.comm.Allreduce(mine, 0, result, 0, 5, MPI.INT, saturating);
		Check.same(want, result, "Allreduce with a user's operation");
		p.comm.Scan(mine, 0, result, 0, 5, MPI.INT, saturating);
		Check.eq(p.rank * (p.rank + 1) / 2, result[0], "Scan with a user's operation");
		Check.eq(Math.min(100, 30 * (p.rank + 1)), result[2], "Scan with a user's operation");
		Object[] longestOf = new Object[1];
		p.comm.Allreduce(new Object[] {"x".repeat(p.rank + 1)}, 0, longestOf, 0, 1, MPI.OBJECT, longest);
		Check.same("x".repeat(p.size), longestOf[0], "Allreduce of objects");
		saturating.free();
		longest.free();
	}
}
