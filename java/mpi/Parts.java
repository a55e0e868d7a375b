// SPDX-License-Identifier: MIT
package mpi;

/** Which part of a buffer is whose, in items of a datatype. */
final class Parts {
	private final int each;
	private final int[] counts;
	private final int[] displacements;

	private Parts(int each, int[] counts, int[] displacements) {
		this.each = each;
		this.counts = counts;
		this.displacements = displacements;
	}

	/** Everybody's part has so many items; they follow one another. */
	static Parts even(int each) {
		return new Parts(each, null, null);
	}

	static Parts of(int[] counts, int[] displacements) {
		return new Parts(0, counts, displacements);
	}

	int count(int rank) {
		return counts == null ? each : counts[rank];
	}

	/** The index of the first element of a rank's part in a buffer that begins at offset. */
	int begin(int offset, int rank, Datatype type) {
		return offset + (counts == null ? rank * each : displacements[rank]) * type.extent();
	}
}
