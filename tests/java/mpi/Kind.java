// SPDX-License-Identifier: MIT
package mpitest;

import java.lang.reflect.Array;
import mpi.Datatype;
import mpi.MPI;

/** The basic types of mpi.*, each with arrays whose contents follow from a seed. */
enum Kind {
	BYTE(byte.class),
	CHAR(char.class),
	SHORT(short.class),
	BOOLEAN(boolean.class),
	INT(int.class),
	LONG(long.class),
	FLOAT(float.class),
	DOUBLE(double.class),
	OBJECT(Object.class);

	/** All kinds but OBJECT: those whose elements have a fixed size. */
	static final Kind[] PRIMITIVE = {BYTE, CHAR, SHORT, BOOLEAN, INT, LONG, FLOAT, DOUBLE};

	private final Class<?> element;

	Kind(Class<?> element) {
		this.element = element;
	}

	/** The datatype; looked up late because MPI.Init creates the datatypes anew. */
	Datatype type() {
		switch (this) {
		case BYTE:
			return MPI.BYTE;
		case CHAR:
			return MPI.CHAR;
		case SHORT:
			return MPI.SHORT;
		case BOOLEAN:
			return MPI.BOOLEAN;
		case INT:
			return MPI.INT;
		case LONG:
			return MPI.LONG;
		case FLOAT:
			return MPI.FLOAT;
		case DOUBLE:
			return MPI.DOUBLE;
		case OBJECT:
			return MPI.OBJECT;
		}
		throw new IllegalStateException(name());
	}

	Object array(int length) {
		return Array.newInstance(element, length);
	}

	/** Element i of the sequence that seed names. */
	Object value(long seed, long i) {
		long v = Check.mix(seed * 1_000_003L + i);
		switch (this) {
		case BYTE:
			return (byte) v;
		case CHAR:
			return (char) v;
		case SHORT:
			return (short) v;
		case BOOLEAN:
			return (v & 1) != 0;
		case INT:
			return (int) v;
		case LONG:
			return v;
		case FLOAT:
			return real(v).floatValue();
		case DOUBLE:
			return real(v);
		case OBJECT:
			return v % 7 == 0 ? null : new Parcel(seed, i, (int) (v & 31));
		}
		throw new IllegalStateException(name());
	}

	/** The corners of floating point now and then; one NaN only, as payloads of others may be quieted. */
	private static Double real(long v) {
		switch ((int) (v & 15)) {
		case 0:
			return -0.0;
		case 1:
			return Double.NaN;
		case 2:
			return Double.NEGATIVE_INFINITY;
		case 3:
			return (double) Float.MIN_VALUE;
		default:
			return (double) (float) (v >> 20);
		}
	}

	/** An array of length elements with the sequence in [offset, offset+count) and the sequence of ~seed elsewhere. */
	Object filled(int length, int offset, int count, long seed) {
		Object array = array(length);
		for (int i = 0; i < length; i++) {
			boolean inside = i >= offset && i < offset + count;
			Array.set(array, i, inside ? value(seed, i - offset) : value(~seed, i));
		}
		return array;
	}

	/** An array of length elements, all of them the sequence of ~seed: what a receive must leave outside its range. */
	Object blank(int length, long seed) {
		return filled(length, 0, 0, seed);
	}

	/** Fails unless [offset, offset+count) holds the sequence of seed and the rest is as blank() made it. */
	void check(Object array, int offset, int count, long seed, String what) {
		int length = Array.getLength(array);
		for (int i = 0; i < length; i++) {
			boolean inside = i >= offset && i < offset + count;
			Object want = inside ? value(seed, i - offset) : value(~seed, i);
			Object got = Array.get(array, i);
			if (!java.util.Objects.equals(want, got)) {
				Check.fail("%s: %s element %d (%s the message of %d elements at %d): expected %s, got %s", what, this, i, inside ? "in" : "outside", count,
						offset, want, got);
			}
		}
	}
}
