// SPDX-License-Identifier: MIT
package xxdev.ibvdev;

/**
 * The natives of {@link Communicator}, one crossing for an operation. Results below zero are negative errno values with a text, as in {@link Native}; a communicator's handle is
 * a slot number and a generation. Memory is a direct ByteBuffer that begins with a description; the caller has checked what stands there.
 */
final class CollNative {
	static final int BARRIER = 0;
	static final int BCAST = 1;
	static final int GATHER = 2;
	static final int SCATTER = 3;
	static final int ALLGATHER = 4;
	static final int ALLTOALL = 5;
	static final int REDUCE = 6;
	static final int ALLREDUCE = 7;
	static final int REDUCE_SCATTER = 8;
	static final int SCAN = 9;

	static final int SUM = 0;
	static final int MAXLOC = 11;

	static final int INT8 = 0;
	static final int BOOLEAN = 7;

	static final int ENOSPC = 28;

	private CollNative() {}

	/** The communicator of all ranks, which uses contexts from this one on. */
	static native long world(long endpoint, int context);

	/** Collective. A negative colour: 0, no communicator. */
	static native long split(long endpoint, long parent, int colour, int key);

	/** Operations under way end as they would. */
	static native void free(long endpoint, long handle);

	/** The bytes of a description: numbers of 64 bits at the beginning of the memory, in the order of struct description of coll.c; offsets are bytes from there. */
	static final int DESCRIPTION_BYTES = 128;

	/** Executes what the memory describes. */
	static native int run(long endpoint, long handle, Object memory);

	/** Begins what the memory describes, which must stay until it is complete: a handle of the operation. */
	static native long start(long endpoint, long handle, Object memory);

	/** Is the operation complete? block: waits for it. 1: yes; 0: not yet. The communicator is any of the job. */
	static native int complete(long endpoint, long handle, long operation, boolean block);
}
