// SPDX-License-Identifier: MIT
package xxdev.ibvdev;

import java.nio.ByteBuffer;
import xxdev.XXDevException;

/**
 * A group of ranks with collective operations of the native library, for layers of this library above the device. All members call the same ones in the same
 * order. Errors are {@link XXDevException}.
 */
public final class Communicator {
	/** An operation: all wait for each other. */
	public static final int BARRIER = CollNative.BARRIER;
	/** An operation: brings a part of root's memory to all. */
	public static final int BCAST = CollNative.BCAST;
	/** An operation: brings a part of each to root. */
	public static final int GATHER = CollNative.GATHER;
	/** An operation: brings a part of root's memory to each. */
	public static final int SCATTER = CollNative.SCATTER;
	/** An operation: brings a part of each to all. */
	public static final int ALLGATHER = CollNative.ALLGATHER;
	/** An operation: brings a part of each to each. */
	public static final int ALLTOALL = CollNative.ALLTOALL;
	/** A reduction: the result is at root. */
	public static final int REDUCE = CollNative.REDUCE;
	/** A reduction: the result is everywhere. */
	public static final int ALLREDUCE = CollNative.ALLREDUCE;
	/** A reduction: each gets a part of the result. */
	public static final int REDUCE_SCATTER = CollNative.REDUCE_SCATTER;
	/** A reduction: of the ranks up to each. */
	public static final int SCAN = CollNative.SCAN;
	/** The first context that the library uses for them: to be left alone. */
	public static final int FIRST_CONTEXT = 1 << 30;

	private final long endpoint;
	private final long handle;
	/** The handle of the communicator of all ranks. */
	private final long world;

	private Communicator(long endpoint, long handle, long world) {
		this.endpoint = endpoint;
		this.handle = handle;
		this.world = world == 0 ? handle : world;
	}

	/**
	 * All ranks of a device's job; once for a device.
	 *
	 * @param device that is open
	 * @return the communicator
	 */
	public static Communicator world(IBVDevice device) {
		long endpoint = device.endpointHandle();
		return made("the communicator of all ranks", endpoint, CollNative.world(endpoint, FIRST_CONTEXT), 0);
	}

	private static Communicator made(String operation, long endpoint, long handle, long world) {
		if (Native.failed(handle))
			throw Errors.of(handle, operation);
		return handle == 0 ? null : new Communicator(endpoint, handle, world);
	}

	/**
	 * Divides the members; collective.
	 *
	 * @param colour members with the same one come together; negative: into none
	 * @param key    their order, then that of ranks
	 * @return the new communicator; null for a negative colour, or, at all members, if one of them has as many as there can be
	 */
	public Communicator split(int colour, int key) {
		long made = CollNative.split(endpoint, handle, colour, key);
		return made == -CollNative.ENOSPC ? null : made("split", endpoint, made, world);
	}

	/** Gives the communicator up. */
	public void free() {
		CollNative.free(endpoint, handle);
	}

	/**
	 * Executes an operation.
	 *
	 * @param name   for texts
	 * @param memory direct; begins with a {@link Description}
	 */
	public void run(String name, ByteBuffer memory) {
		done(name, CollNative.run(endpoint, handle, memory));
	}

	/**
	 * Begins an operation. The memory belongs to the library, and must stay reachable, until it is complete.
	 *
	 * @param name   for texts
	 * @param memory direct; begins with a {@link Description}
	 * @return a handle of the operation
	 */
	public long start(String name, ByteBuffer memory) {
		long operation = CollNative.start(endpoint, handle, memory);
		if (Native.failed(operation))
			done(name, (int) operation);
		return operation;
	}

	/**
	 * Completes an operation, or tries to. An exception: it is complete, and has failed.
	 *
	 * @param name      for texts
	 * @param operation of start
	 * @param block     waits for it
	 * @return is it complete?
	 */
	public boolean complete(String name, long operation, boolean block) {
		int rc = CollNative.complete(endpoint, world, operation, block);
		done(name, rc);
		return rc == 1;
	}

	private static void done(String operation, int rc) {
		if (rc < 0)
			throw Errors.of(rc, operation);
	}

	/**
	 * Writes what an operation does to the beginning of its memory. Memory is named by offsets in it. Parts of ranks follow one another; a table has for each its size and
	 * then for each the offset from the first, in bytes, as numbers of 64 bits.
	 */
	public static final class Description {
		/** The beginning of the memory that it takes. */
		public static final int BYTES = CollNative.DESCRIPTION_BYTES;

		private static final int KIND = 0;
		private static final int ROOT = 8;
		private static final int UNEVEN = 16;
		private static final int IN = 24;
		private static final int OUT = 48;
		private static final int COUNT = 72;
		private static final int SHARES = 96;

		private final ByteBuffer memory;

		/**
		 * Of an operation that moves nothing yet.
		 *
		 * @param memory direct, in native order
		 * @param kind   BARRIER to SCAN
		 * @param root   the rank that has or gets everything
		 */
		public Description(ByteBuffer memory, int kind, int root) {
			this.memory = memory;
			for (int at = UNEVEN; at <= SHARES; at += Long.BYTES)
				memory.putLong(at, 0);
			memory.putLong(KIND, kind).putLong(ROOT, root);
		}

		/** Root of a GATHER or SCATTER has a table. To be named at all ranks. */
		public void uneven() {
			memory.putLong(UNEVEN, 1);
		}

		/**
		 * What is sent, of a reduction the operands; of BCAST what is received, too.
		 *
		 * @param offset where it begins
		 * @param bytes  of one part
		 * @param table  offset of the table of the parts; 0: none, they are equally long
		 */
		public void in(int offset, long bytes, int table) {
			memory.putLong(IN, offset).putLong(IN + 8, bytes).putLong(IN + 16, table);
		}

		/**
		 * What is received, of a reduction the result.
		 *
		 * @param offset where it begins
		 * @param bytes  of one part
		 * @param table  offset of the table of the parts; 0: none, they are equally long
		 */
		public void out(int offset, long bytes, int table) {
			memory.putLong(OUT, offset).putLong(OUT + 8, bytes).putLong(OUT + 16, table);
		}

		/**
		 * How elements are combined.
		 *
		 * @param count elements; of MINLOC and MAXLOC pairs
		 * @param type  as ibvx_coll.h numbers them
		 * @param op    as ibvx_coll.h numbers them
		 */
		public void reduction(long count, int type, int op) {
			memory.putLong(COUNT, count).putLong(COUNT + 8, type).putLong(COUNT + 16, op);
		}

		/**
		 * How much of the result of a REDUCE_SCATTER each rank gets.
		 *
		 * @param table offset of the counts, numbers of 64 bits
		 */
		public void shares(int table) {
			memory.putLong(SHARES, table);
		}
	}
}
