// SPDX-License-Identifier: MIT
package xdev.ibvdev;

import java.nio.ByteBuffer;

/**
 * The native methods: one crossing per operation. Results below zero are negative errno values; then
 * {@link #errorText()}, called next on the same thread, reports what happened.
 *
 * <p>Memory is named by a pair: a direct buffer and a byte offset into it, or null and an address that
 * {@link #allocate} gave. The caller has checked the range.
 *
 * <p>An endpoint handle is a slot and a generation; a stale one gets an error. Request handles are those of
 * ibvx.h. {@code user} is what {@link Envelope} makes of a message, and {@code result} is the address of a {@link ResultBlock}; 0 where the status is not wanted.
 */
final class Native {
	/** The jar's version; the library compares it with its own in JNI_OnLoad. */
	static final String VERSION = "0.1.0";
	/** The number of the interface between the jar and the library; raised when a native method changes. */
	static final int ABI = 6;

	/** Offsets in the result block. */
	static final int RESULT_SOURCE = 0;
	static final int RESULT_TAG = 4;
	static final int RESULT_HEAD_BYTES = 8;
	static final int RESULT_BODY_BYTES = 16;
	static final int RESULT_USER = 24;
	static final int RESULT_BODY = 32;
	static final int RESULT_BYTES = 40;

	/** The errno values that Java distinguishes. */
	static final int ENOMEM = 12;
	static final int EBUSY = 16;
	static final int EINVAL = 22;
	static final int ELIBACC = 79;
	static final int ESHUTDOWN = 108;
	static final int ETIMEDOUT = 110;
	static final int ECANCELED = 125;

	private Native() {}

	/** True if a returned handle is an error: errno values are 1 to 4095. */
	static boolean failed(long handle) {
		return handle < 0 && handle >= -4095;
	}

	/**
	 * Opens an endpoint. Texts are UTF-8; each ends with a NUL, lists are just many of them.
	 *
	 * @param rank -1: the launcher knows
	 * @param conf path, ";" string or "auto"; an empty array: as "auto"
	 */
	static native long open(int rank, byte[] conf, byte[] settings, byte[] defaults);

	static native int close(long endpoint);

	static native void abort(long endpoint);

	/** Of all endpoints of this copy of the library. */
	static native void abortAll();

	static native int size(long endpoint);

	static native int rank(long endpoint);

	static native byte[] jobId(long endpoint);

	static native byte[] describe(int rank, byte[] conf, byte[] settings, byte[] defaults);

	/**
	 * The launcher that was found, and a meeting of all ranks as a test.
	 *
	 * @param status one element, set to 0 or the negative errno of the meeting
	 * @return the report, empty on ranks other than 0 if all is well; null: there is only the error's text
	 */
	static native byte[] describeLauncher(int[] status, byte[] settings, byte[] defaults);

	static native byte[] errorText();

	/** The rank that the error concerns, by the rules of {@link #errorText()}; -1: none. */
	static native int errorRank();

	static native int send(long endpoint, ByteBuffer head, long offset, int length, long user, byte[] body, int dest, int tag, int context);

	static native int ssend(long endpoint, ByteBuffer head, long offset, int length, long user, byte[] body, int dest, int tag, int context);

	static native long isend(long endpoint, ByteBuffer head, long offset, int length, long user, long body, int bodyLength, int dest, int tag, int context);

	static native long issend(long endpoint, ByteBuffer head, long offset, int length, long user, long body, int bodyLength, int dest, int tag, int context);

	static native int recv(long endpoint, ByteBuffer base, long offset, int capacity, int source, int tag, int context, long result);

	static native long irecv(long endpoint, ByteBuffer base, long offset, int capacity, int source, int tag, int context);

	/** Matched probe and receive in one: 1, or 0 if no message is there. */
	static native int fetch(long endpoint, ByteBuffer base, long offset, int capacity, int source, int tag, int context, long result);

	static native int waitFor(long endpoint, long request, long result);

	static native int test(long endpoint, long request, long result);

	static native long peek(long endpoint);

	static native int cancel(long endpoint, long request);

	static native int probe(long endpoint, int source, int tag, int context, long result);

	static native int iprobe(long endpoint, int source, int tag, int context, long result);

	/**
	 * Lets adapters keep their registration of this memory between messages: the caller promises that it stays mapped until {@link #unregister}.
	 *
	 * @return 1; 0: there is no adapter, and nothing to unregister; or an error
	 */
	static native int register(long endpoint, long address, long bytes);

	/** Ends {@link #register} with the same arguments, once for each call of it. */
	static native int unregister(long endpoint, long address, long bytes);

	/** The address of a direct buffer's byte 0. */
	static native long address(ByteBuffer buffer);

	/** Native memory for a bounce buffer; release() it. */
	static native long allocate(int length);

	/** 0 is allowed. */
	static native void release(long address);

	static native void copyIn(byte[] array, int offset, int length, long address);

	static native void copyOut(long address, byte[] array, int offset, int length);

	/** Turns a received body into an array, and frees it in any case. */
	static native byte[] body(long address, int length);
}
