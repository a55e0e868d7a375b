// SPDX-License-Identifier: MIT
package mpi;

/** What is known of a message that was received or probed (MPI 4.0, section 3.2.5). */
public class Status {
	/** The sender's rank in the communicator; of an inter-communicator in the remote group. */
	public int source;
	/** The message's tag. */
	public int tag;
	/** Which request of an array this belongs to: Waitany, Testany, Waitsome, Testsome; MPI.UNDEFINED if none was active. */
	public int index = MPI.UNDEFINED;

	private final long bytes;
	/** Of objects: their number. */
	private final long elements;
	/** Of objects, or of elements of a basic type. */
	private final boolean objects;
	private boolean cancelled;

	/** Empty: source MPI.ANY_SOURCE, tag MPI.ANY_TAG, no elements. */
	public Status() {
		this(MPI.ANY_SOURCE, MPI.ANY_TAG, 0, 0, false);
	}

	Status(int source, int tag, long bytes, long elements, boolean objects) {
		this.source = source;
		this.tag = tag;
		this.bytes = bytes;
		this.elements = elements;
		this.objects = objects;
	}

	static Status ofNull() {
		return new Status(MPI.PROC_NULL, MPI.ANY_TAG, 0, 0, false);
	}

	static Status ofCancelled() {
		Status status = new Status();
		status.cancelled = true;
		return status;
	}

	Status at(int index) {
		this.index = index;
		return this;
	}

	/**
	 * How many items the message has.
	 *
	 * @param datatype of what
	 * @return the number; MPI.UNDEFINED if it is no whole number of them
	 */
	public int Get_count(Datatype datatype) {
		int basic = Get_elements(datatype);
		if (basic == MPI.UNDEFINED || basic == 0)
			return basic;
		return datatype.size != 0 && basic % datatype.size == 0 ? basic / datatype.size : MPI.UNDEFINED;
	}

	/**
	 * How many elements of the datatype's basic type the message has.
	 *
	 * @param datatype whose
	 * @return the number; MPI.UNDEFINED if it is no whole number of them
	 */
	public int Get_elements(Datatype datatype) {
		if (datatype == null || datatype.kind < 0)
			throw Errors.of("Get_count: the datatype is " + datatype + ": name one such as MPI.INT");
		if (bytes == 0 && elements == 0)
			return 0;
		if (objects != (datatype.kind == Kinds.OBJECT))
			return MPI.UNDEFINED;
		if (objects)
			return (int) elements;
		int shift = Kinds.shift(datatype.kind);
		return (bytes & (1L << shift) - 1) == 0 && bytes >> shift <= Integer.MAX_VALUE ? (int) (bytes >> shift) : MPI.UNDEFINED;
	}

	/**
	 * Was the operation cancelled?
	 *
	 * @return true: no message was received
	 */
	public boolean Test_cancelled() {
		return cancelled;
	}

	/** Nothing is held. */
	public void free() {}
}
