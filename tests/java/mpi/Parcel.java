// SPDX-License-Identifier: MIT
package mpitest;

import java.io.Serializable;
import java.util.Arrays;

/** What object messages carry here: a value class with contents of a chosen length. */
final class Parcel implements Serializable {
	private static final long serialVersionUID = 1L;

	final long seed;
	final long index;
	final byte[] contents;

	Parcel(long seed, long index, int length) {
		this.seed = seed;
		this.index = index;
		this.contents = Bytes.of(seed ^ index, length);
	}

	@Override
	public boolean equals(Object other) {
		return other instanceof Parcel && ((Parcel) other).seed == seed && ((Parcel) other).index == index
				&& Arrays.equals(((Parcel) other).contents, contents);
	}

	@Override
	public int hashCode() {
		return (int) Check.mix(seed + index);
	}

	@Override
	public String toString() {
		return "Parcel(" + seed + "," + index + "," + contents.length + " bytes)";
	}
}
