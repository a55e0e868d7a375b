// SPDX-License-Identifier: MIT
package xxdev.ibvdev;

/**
 * The natives of {@link Communicator}, one crossing for an operation. Results below zero are negative errno values with a text, as in {@link Native}; a communicator's handle is
 * a slot number and a generation. Memory is a direct ByteBuffer and offsets into it, in bytes; the caller has checked them.
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

	/** The operations that bring data from rank to rank; memory is null for the barrier. */
	static native int transfer(long endpoint, long handle, int kind, int root, Object memory, long in, long inBytes, long out, long outBytes);

	/** The reductions of elements of one type. */
	static native int reduce(long endpoint, long handle, int kind, int root, Object memory, long in, long out, long count, int type, int op);
}
