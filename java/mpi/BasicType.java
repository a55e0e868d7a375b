// SPDX-License-Identifier: MIT
package mpi;

/** One element of an array, or nothing (NULL, LB, UB). */
final class BasicType extends Datatype {
	private final String name;

	BasicType(String name, int number, int kind) {
		this.name = name;
		baseType = number;
		this.kind = kind;
		size = number < 0 ? 0 : 1;
		ub = size;
		highest = size;
		dense = true;
		committed = true;
	}

	@Override
	void copy(boolean out, Object buf, int offset, int first, int elements, Object packed, int at) {
		if (out)
			Kinds.copy(buf, offset + first, packed, at, elements);
		else
			Kinds.copy(packed, at, buf, offset + first, elements);
	}

	@Override
	void addTo(Layout.Builder builder, int origin, int unit) {
		builder.run(origin, unit);
	}

	@Override
	String name() {
		return "MPI." + name;
	}
}
