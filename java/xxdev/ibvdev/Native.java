// SPDX-License-Identifier: MIT
package xxdev.ibvdev;

/**
 * The native methods of the device xxdev: one crossing per operation. Results below zero are negative errno values; then
 * {@link #errorText()}, called next on the same thread, reports what happened. Endpoint handles, request handles and the result
 * block are those of xdev.ibvdev; one native function serves both where the signatures are the same.
 *
 * <p><b>An array reference</b> is what a message is read from or written to: four arguments, {@code (Object array, int kind, long offset,
 * long length)}. The caller has checked that the kind is the array's and the range lies in it:
 * <ul>
 * <li>{@link #BOOLEAN} to {@link #DOUBLE}: a primitive array; offset and length in bytes;
 * <li>{@link #MEMORY}: a direct ByteBuffer and a byte offset into it (views: of the buffer below), or null and an address;
 * <li>{@link #ROWS} + one of the first eight: an Object[] of primitive arrays of that kind, none null, that nobody else can
 * change; offset is the first row, length the number of rows. All of them are one message. A receive wants as many rows as the message
 * has, each at least as long as the message's row; what lies behind stays unchanged;
 * <li>{@link #BRIEF}, non-blocking sends only: null and an address, and what is there need not stay when the call returns;
 * <li>{@link #BODY}, receives only: memory of the library, length the most that is accepted; the result
 * block names it ({@code RESULT_BODY}, {@code RESULT_BODY_BYTES}) and the caller frees it: {@code body()} or {@code release()}.
 * </ul>
 *
 * <p><b>A type</b> is the message's user word; its lowest eight bits ({@link #TYPE_MASK}) are compared with those that a
 * receive names, unless these are 0. The word comes back in {@code RESULT_USER}, and so to a probe before any data was transferred.
 *
 * <p><b>The result block</b> ({@code xdev.ibvdev.ResultBlock}) of a receive is filled when the call has brought a message to its end, also by
 * {@code -EMSGSIZE} (longer than the receive) and {@code -EPROTOTYPE} (another type): then the message is consumed, the memory
 * unchanged, and the block reports what it was: {@code bytes()} is the length, of rows without their table where it was received.
 *
 * <p><b>Reachability.</b> Of a send nothing needs to stay reachable but {@code MEMORY}: what the library still reads of arrays it has a reference to. The memory of a receive must, and the
 * same is named again when the request is waited for or tested: that call brings the data to it.
 */
final class Native {
	static final int BOOLEAN = 0;
	static final int BYTE = 1;
	static final int CHAR = 2;
	static final int SHORT = 3;
	static final int INT = 4;
	static final int LONG = 5;
	static final int FLOAT = 6;
	static final int DOUBLE = 7;
	static final int MEMORY = 8;
	static final int BODY = 9;
	static final int BRIEF = 10;
	static final int ROWS = 16;

	/** The part of the type that a receive compares. */
	static final long TYPE_MASK = 0xff;

	/** The errno values that Java distinguishes. */
	static final int ENOENT = 2;
	static final int ENOMEM = 12;
	static final int EBUSY = 16;
	static final int EINVAL = 22;
	static final int EMFILE = 24;
	static final int EFBIG = 27;
	static final int ENOSPC = 28;
	static final int EPIPE = 32;
	static final int EMSGSIZE = 90;
	static final int EPROTOTYPE = 91;
	static final int ECONNRESET = 104;
	static final int ESHUTDOWN = 108;
	static final int ETIMEDOUT = 110;
	static final int ECANCELED = 125;

	private Native() {}

	/** True if a returned handle is an error: errno values are 1 to 4095. */
	static boolean failed(long handle) {
		return handle < 0 && handle >= -4095;
	}

	/**
	 * Opens an endpoint. Texts are UTF-8; each ends with a NUL, lists are just many of them ({@link xdev.ibvdev.Settings}).
	 *
	 * @param rank -1: the launcher knows
	 * @param conf path, ";" string or "auto"; an empty array: as "auto"
	 */
	static native long open(int rank, byte[] conf, byte[] settings, byte[] defaults);

	static native int close(long endpoint);

	static native void abort(long endpoint);

	static native int size(long endpoint);

	static native int rank(long endpoint);

	static native byte[] jobId(long endpoint);

	static native byte[] errorText();

	/** The rank that the error concerns, by the rules of {@link #errorText()}; -1: none. */
	static native int errorRank();

	/** Returns when the memory may be changed. */
	static native int send(long endpoint, Object array, int kind, long offset, long length, int dest, int tag, int context, long type);

	/** The same, and the matching receive has been posted. */
	static native int ssend(long endpoint, Object array, int kind, long offset, long length, int dest, int tag, int context, long type);

	/** 1: the message has left eagerly, in the stream in front of whatever is sent later; 0: not possible now, nothing has happened. */
	static native int sendAtOnce(long endpoint, byte[] message, int dest, int tag, int context, long type);

	/** A request handle. The memory must not change until the request is complete: the library may read it until then, by any thread that calls it. */
	static native long isend(long endpoint, Object array, int kind, long offset, long length, int dest, int tag, int context, long type);

	static native long issend(long endpoint, Object array, int kind, long offset, long length, int dest, int tag, int context, long type);

	static native int recv(long endpoint, Object array, int kind, long offset, long length, int source, int tag, int context, long type, long result);

	/** A request handle. */
	static native long irecv(long endpoint, Object array, int kind, long offset, long length, int source, int tag, int context, long type);

	/**
	 * Completes a request, if that is possible within so many nanoseconds (negative: without limit); the array reference is that of irecv, or (null, MEMORY, 0, 0)
	 * for a send.
	 *
	 * @return as {@link #test}
	 */
	static native int waitFor(long endpoint, long request, long timeoutNs, Object array, int kind, long offset, long length, long result);

	/** 1 complete, 0 not yet, or the operation's error. */
	static native int test(long endpoint, long request, Object array, int kind, long offset, long length, long result);

	/**
	 * Blocks until one of the requests (0: none) is complete. The request is not consumed: {@link #waitFor} does that, at once.
	 *
	 * @return its index
	 */
	static native int waitAny(long endpoint, long[] requests);

	/** 1: the request is complete; 0: {@link #watched} will return it, once, unless {@link #unwatch} comes before; or an error. */
	static native int watch(long endpoint, long request);

	static native void unwatch(long endpoint, long request);

	/** A thread begins (1) or ends (-1) to watch for messages that no receive has matched. */
	static native void watchMessages(long endpoint, int by);

	/**
	 * Blocks until something that is watched has happened; one thread at a time. Fills in the handles of requests that are complete, or 0: a message has come, or
	 * a peer has ended.
	 *
	 * @param requests at least two
	 * @return how many; 0: nothing is watched; or an error
	 */
	static native int watched(long endpoint, long[] requests);

	/**
	 * A probe of a thread that watches for messages: as iprobe, or (take) {@link #improbe}, but an error when none can come any more.
	 *
	 * @return 1 or the message handle, 0 if there is none, or an error
	 */
	static native long look(long endpoint, boolean take, int source, int tag, int context, long result);

	/** Gives a handle up; the operation goes on. What a receive brings is dropped. Not for MEMORY. */
	static native int free(long endpoint, long request);

	/**
	 * Takes a message out of the queue for {@link #mrecv}, and fills the result block as a probe does.
	 *
	 * @return a message handle, 0 if there is none, or an error
	 */
	static native long improbe(long endpoint, int source, int tag, int context, long result);

	/** Waits for a message, then does as {@link #improbe}. */
	static native long mprobe(long endpoint, int source, int tag, int context, long result);

	/** Receives what a matched probe found; the message handle is gone, whatever comes of it. */
	static native int mrecv(long endpoint, long message, Object array, int kind, long offset, long length, long type, long result);

	/** Begins to receive what a matched probe found: a request handle, to be completed as one of {@link #irecv}. The message handle is gone, whatever comes of it. */
	static native long imrecv(long endpoint, long message, Object array, int kind, long offset, long length, long type);

	/** "name value" lines of the endpoint's counters, or of those of one peer; peer -1: the endpoint's. */
	static native byte[] counters(long endpoint, int peer);

	/** Blocks until some request is complete that no call has reported; its handle. It is not consumed. */
	static native long peek(long endpoint);

	static native int cancel(long endpoint, long request);

	static native int probe(long endpoint, int source, int tag, int context, long result);

	static native int iprobe(long endpoint, int source, int tag, int context, long result);

	/** Frees memory of the library: a BODY, once. 0 is allowed. */
	static native void release(long address);

	/** Turns a BODY into an array, and frees it in any case. */
	static native byte[] body(long address, int length);
}
