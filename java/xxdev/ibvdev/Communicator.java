// SPDX-License-Identifier: MIT
package xxdev.ibvdev;

import java.nio.ByteBuffer;
import xxdev.XXDevException;

/**
 * A group of ranks with collective operations of the native library, for layers of this library above the device. All members call the same ones in the same
 * order; each blocks until its part is done. Errors are {@link XXDevException}.
 */
public final class Communicator {
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
	/** A reduction: of the ranks up to each. */
	public static final int SCAN = CollNative.SCAN;
	/** The first context that the library uses for them: to be left alone. */
	public static final int FIRST_CONTEXT = 1 << 30;

	private final long endpoint;
	private final long handle;

	private Communicator(long endpoint, long handle) {
		this.endpoint = endpoint;
		this.handle = handle;
	}

	/**
	 * All ranks of a device's job; once for a device.
	 *
	 * @param device that is open
	 * @return the communicator
	 */
	public static Communicator world(IBVDevice device) {
		long endpoint = device.endpointHandle();
		return made("the communicator of all ranks", endpoint, CollNative.world(endpoint, FIRST_CONTEXT));
	}

	private static Communicator made(String operation, long endpoint, long handle) {
		if (Native.failed(handle))
			throw new XXDevException(operation + ": " + Texts.last());
		return handle == 0 ? null : new Communicator(endpoint, handle);
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
		return made == -CollNative.ENOSPC ? null : made("split", endpoint, made);
	}

	/** Gives the communicator up. */
	public void free() {
		CollNative.free(endpoint, handle);
	}

	/** Blocks until all members have come to it. */
	public void barrier() {
		done("Barrier", CollNative.transfer(endpoint, handle, CollNative.BARRIER, 0, null, 0, 0, 0, 0));
	}

	private static void done(String operation, int rc) {
		if (rc < 0)
			throw new XXDevException(operation + ": " + Texts.last());
	}

	/**
	 * Brings data from rank to rank. Where a part is each rank's, the parts follow one another.
	 *
	 * @param name     for texts
	 * @param kind     BCAST to ALLTOALL
	 * @param root     the rank that has or gets everything
	 * @param memory   direct
	 * @param in       offset of what is sent; of BCAST of what is received, too
	 * @param inBytes  of one part
	 * @param out      offset of what is received
	 * @param outBytes of one part
	 */
	public void transfer(String name, int kind, int root, ByteBuffer memory, int in, int inBytes, int out, int outBytes) {
		done(name, CollNative.transfer(endpoint, handle, kind, root, memory, in, inBytes, out, outBytes));
	}

	/**
	 * Combines elements of all ranks, in their order.
	 *
	 * @param name   for texts
	 * @param kind   REDUCE to SCAN
	 * @param root   the rank that gets the result
	 * @param memory direct
	 * @param in     offset of the operands
	 * @param out    offset of the result
	 * @param count  elements; of MINLOC and MAXLOC pairs
	 * @param type   as ibvx_coll.h numbers them
	 * @param op     as ibvx_coll.h numbers them
	 */
	public void reduce(String name, int kind, int root, ByteBuffer memory, int in, int out, int count, int type, int op) {
		done(name, CollNative.reduce(endpoint, handle, kind, root, memory, in, out, count, type, op));
	}
}
