// SPDX-License-Identifier: MIT
package xxdev.ibvdev;

import java.util.concurrent.atomic.AtomicLong;
import xdev.ibvdev.ResultBlock;
import xdev.ibvdev.VirtualThreads;
import xxdev.Request;
import xxdev.Status;

/** A message that a matched probe has taken out of the queue (MPI 4.0, section 3.8.2), for layers of this library above the device. It is received by this object alone, and once. Any thread. */
public final class MatchedMessage {
	private final IBVDevice device;
	private final long endpoint;
	/** 0: its receive has begun. */
	private final AtomicLong handle;
	private final Status status;
	private final int context;

	private MatchedMessage(IBVDevice device, long endpoint, long handle, Status status, int context) {
		this.device = device;
		this.endpoint = endpoint;
		this.handle = new AtomicLong(handle);
		this.status = status;
		this.context = context;
	}

	/** Takes a message of a rank of the job, or ANY, out of the queue; waits for it. */
	static MatchedMessage await(IBVDevice device, int rank, int tag, int context) {
		long ep = device.endpointHandle();
		if (VirtualThreads.current())
			return device.watcher().awaitMessage(
					result -> found(device, "mprobe", ep, Native.look(ep, true, rank, tag, context, result.address), result, rank, tag, context));
		ResultBlock result = ResultBlock.own();
		return found(device, "mprobe", ep, Native.mprobe(ep, rank, tag, context, result.address), result, rank, tag, context);
	}

	/** Null: none is there. */
	static MatchedMessage look(IBVDevice device, int rank, int tag, int context) {
		long ep = device.endpointHandle();
		ResultBlock result = ResultBlock.take();
		try {
			return found(device, "improbe", ep, Native.improbe(ep, rank, tag, context, result.address), result, rank, tag, context);
		} finally {
			result.giveBack();
		}
	}

	private static MatchedMessage found(IBVDevice device, String operation, long ep, long message, ResultBlock result, int rank, int tag, int context) {
		if (Native.failed(message))
			throw Errors.receiving(message, operation, rank, tag, context);
		if (message == 0)
			return null;
		return new MatchedMessage(device, ep, message, device.status(result.source(), result.tag(), result.user(), result.bytes()), context);
	}

	/**
	 * What the probe found.
	 *
	 * @return sender, tag, type and length
	 */
	public Status status() {
		return status;
	}

	/**
	 * Has its receive begun?
	 *
	 * @return true: nothing is left to receive
	 */
	public boolean isReceived() {
		return handle.get() == 0;
	}

	/**
	 * Starts to receive it in an array of a basic type or a java.nio buffer.
	 *
	 * @param operation for texts
	 * @param buf       array or buffer
	 * @param offset    first element
	 * @param count     room for so many elements
	 * @return the operation
	 */
	public Request irecv(String operation, Object buf, int offset, int count) {
		return post(operation, Message.target(device.codec(), operation, buf, offset, count));
	}

	/**
	 * Starts to receive it as objects.
	 *
	 * @param operation for texts
	 * @param buf       where they go
	 * @param offset    first element
	 * @param count     room for so many
	 * @return the operation
	 */
	public Request irecvObjects(String operation, Object[] buf, int offset, int count) {
		return post(operation, Message.objectTarget(device.codec(), operation, buf, offset, count));
	}

	private Request post(String operation, ArrayRef ref) {
		long message = handle.getAndSet(0);
		if (message == 0)
			throw Errors.argument(operation + ": the message from rank " + status.source().rank() + ", tag " + status.tag()
					+ ", has been received: a matched probe finds the next one");
		int rank = status.source().rank();
		IBVRequest request = IBVRequest.receive(device, endpoint, operation, rank, status.tag(), context, ref, null);
		request.handle = Native.imrecv(endpoint, message, ref.memory, ref.nativeKind, ref.offset, ref.length, ref.word);
		return device.begun(request, rank, status.tag(), context);
	}
}
