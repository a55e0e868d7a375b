// SPDX-License-Identifier: MIT
package mpi;

import java.util.Arrays;

/** A derived type: runs of elements, in the order in which a message has them. */
final class Layout extends Datatype {
	private final String name;
	/** Where each run begins, from the offset of the item, and how many elements it has. */
	private final int[] begin;
	private final int[] length;
	/** The distance of all neighbouring runs of one element each; 0: something else. */
	private final int stride;

	private Layout(String name, Builder from) {
		this.name = name + " of " + from.of;
		kind = from.kind;
		baseType = from.baseType;
		begin = Arrays.copyOf(from.begin, from.runs);
		length = Arrays.copyOf(from.length, from.runs);
		for (int i = 0; i < begin.length; i++) {
			size = Math.addExact(size, length[i]);
			lowest = i == 0 ? begin[i] : Math.min(lowest, begin[i]);
			highest = i == 0 ? begin[i] + length[i] : Math.max(highest, begin[i] + length[i]);
		}
		lb = from.lbSet ? from.lbMark : from.runs == 0 ? 0 : from.lb;
		ub = from.ubSet ? from.ubMark : from.runs == 0 ? 0 : from.ub;
		dense = size == 0 || begin.length == 1 && begin[0] == 0 && length[0] == extent();
		stride = commonStride();
	}

	private int commonStride() {
		if (begin.length < 2 || length[0] != 1)
			return 0;
		int step = begin[1] - begin[0];
		for (int i = 1; i < begin.length; i++)
			if (length[i] != 1 || begin[i] - begin[i - 1] != step)
				return 0;
		return step;
	}

	@Override
	String name() {
		return name;
	}

	@Override
	void copy(boolean out, Object buf, int offset, int first, int elements, Object packed, int at) {
		if (elements == 0)
			return;
		if (dense) {
			copyRun(out, buf, offset + first, packed, at, elements);
			return;
		}
		int item = first / size;
		int within = first % size;
		for (int left = elements; left > 0; item++) {
			int now = Math.min(left, size - within);
			copyItem(out, buf, offset + item * extent(), within, now, packed, at);
			at += now;
			left -= now;
			within = 0;
		}
	}

	private void copyItem(boolean out, Object buf, int origin, int within, int elements, Object packed, int at) {
		if (stride != 0 && !isBuffer(buf)) {
			Kinds.strided(kind, out, buf, origin + begin[0] + within * stride, stride, packed, at, elements);
			return;
		}
		int run = 0;
		for (; within >= length[run]; run++)
			within -= length[run];
		for (int left = elements; left > 0; run++) {
			int now = Math.min(left, length[run] - within);
			copyRun(out, buf, origin + begin[run] + within, packed, at, now);
			at += now;
			left -= now;
			within = 0;
		}
	}

	private static void copyRun(boolean out, Object buf, int where, Object packed, int at, int elements) {
		if (out)
			Kinds.copy(buf, where, packed, at, elements);
		else
			Kinds.copy(packed, at, buf, where, elements);
	}

	@Override
	void addTo(Builder builder, int origin, int unit) {
		for (int i = 0; i < begin.length; i++)
			builder.run(Math.addExact(origin, begin[i] * unit), length[i] * unit);
	}

	static Builder builder(String operation, Datatype... types) {
		Builder builder = new Builder();
		for (Datatype type : types == null ? new Datatype[] {null} : types)
			builder.admit(operation, type);
		return builder;
	}

	/** Collects the runs of a new type. */
	static final class Builder {
		private int kind = -1;
		private int baseType = -1;
		private String of = "nothing";
		/** Of several basic types: everything is counted in bytes. */
		private boolean mixed;
		private int[] begin = new int[4];
		private int[] length = new int[4];
		private int runs;
		private int lb = Integer.MAX_VALUE;
		private int ub = Integer.MIN_VALUE;
		private boolean lbSet;
		private boolean ubSet;
		private int lbMark;
		private int ubMark;

		private void admit(String operation, Datatype type) {
			if (type == null || type == MPI.NULL || type.freed)
				throw Errors.of(operation + ": the old datatype is "
						+ (type == null                    ? "null"
										: type == MPI.NULL ? "MPI.NULL"
														   : "freed")
						+ ": name one such as MPI.INT");
			if (type.kind < 0 || type.kind == kind)
				return;
			if (kind >= 0) {
				if (type.kind == Kinds.OBJECT || kind == Kinds.OBJECT)
					throw Errors.of(operation + ": objects and basic types do not share a buffer: describe them by two datatypes");
				mixed = true;
				kind = Kinds.BYTE;
				baseType = MPI.BYTE.baseType;
				of = "several basic types";
				return;
			}
			kind = type.kind;
			baseType = type.baseType;
			of = type.name();
		}

		/** count items of a type, the first one at this displacement. */
		void block(String operation, int displacement, int count, Datatype type) {
			if (count < 0)
				throw Errors.of(operation + ": the block length is " + count + ": it must not be negative");
			if (type == MPI.LB || type == MPI.UB) {
				mark(displacement, type == MPI.LB);
				return;
			}
			int unit = mixed ? type.unitBytes() : 1;
			for (int i = 0; i < count; i++) {
				int origin = Math.addExact(displacement, Math.multiplyExact(i, type.extent() * unit));
				type.addTo(this, origin, unit);
				lb = Math.min(lb, Math.addExact(origin, type.lb * unit));
				ub = Math.max(ub, Math.addExact(origin, type.ub * unit));
			}
		}

		private void mark(int displacement, boolean lower) {
			if (lower) {
				lbMark = lbSet ? Math.min(lbMark, displacement) : displacement;
				lbSet = true;
			} else {
				ubMark = ubSet ? Math.max(ubMark, displacement) : displacement;
				ubSet = true;
			}
		}

		/** So many elements from here on. */
		void run(int from, int elements) {
			if (elements == 0)
				return;
			if (runs > 0 && begin[runs - 1] + length[runs - 1] == from) {
				length[runs - 1] += elements;
				return;
			}
			if (runs == begin.length) {
				begin = Arrays.copyOf(begin, 2 * runs);
				length = Arrays.copyOf(length, 2 * runs);
			}
			begin[runs] = from;
			length[runs++] = elements;
		}

		Datatype build(String name) {
			return new Layout(name, this);
		}
	}
}
