// SPDX-License-Identifier: MIT
package mpi;

/** Which part of a buffer is whose, in items of a datatype. */
final class Parts {
	private final boolean even;
	/** Of even parts: from one to the next, in items. */
	private final int distance;
	private final int each;
	private final int[] counts;
	private final int[] displacements;

	private Parts(boolean even, int distance, int each, int[] counts, int[] displacements) {
		this.even = even;
		this.distance = distance;
		this.each = each;
		this.counts = counts;
		this.displacements = displacements;
	}

	/** Everybody's part has so many items; they follow one another. */
	static Parts even(int each) {
		return new Parts(true, each, each, null, null);
	}

	/** Everybody's part is the same. */
	static Parts same(int each) {
		return new Parts(true, 0, each, null, null);
	}

	static Parts of(int[] counts, int[] displacements) {
		return new Parts(false, 0, 0, counts, displacements);
	}

	/** All have the same length. */
	boolean isEven() {
		return even;
	}

	int count(int rank) {
		return even ? each : counts[rank];
	}

	/** How many items so many parts have together. */
	long items(int number) {
		long items = 0;
		for (int i = 0; i < number; i++)
			items += count(i);
		return items;
	}

	/** The index of the first element of a rank's part in a buffer that begins at offset. */
	int begin(int offset, int rank, Datatype type) {
		return offset + (even ? rank * distance : displacements[rank]) * type.extent();
	}
}
