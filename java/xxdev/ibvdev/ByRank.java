// SPDX-License-Identifier: MIT
package xxdev.ibvdev;

import java.lang.ref.Reference;
import xdev.ibvdev.ResultBlock;
import xxdev.Request;
import xxdev.Status;

/**
 * An open device whose peers are numbers, for layers of this library above it (mpi.*). Arguments are not looked at twice: ranks, kinds and
 * contexts must be right. Any thread; blocking as in {@link xxdev.Device}; errors are {@link xxdev.XXDevException}.
 */
public final class ByRank {
	/** As the source of a receive or probe: any rank. */
	public static final int ANY_SOURCE = Peers.ANY;

	private final IBVDevice device;

	/**
	 * The same device.
	 *
	 * @param device that has been opened
	 */
	public ByRank(IBVDevice device) {
		this.device = device;
	}

	/**
	 * Sends an array of a basic type or a java.nio buffer; allocates nothing for an array.
	 *
	 * @param operation for texts
	 * @param sync      synchronous mode
	 * @param buf       array or buffer
	 * @param offset    first element
	 * @param count     how many elements
	 * @param rank      the receiver
	 * @param tag       any
	 * @param context   any that is not negative
	 */
	public void send(String operation, boolean sync, Object buf, int offset, int count, int rank, int tag, int context) {
		device.sendTo(operation, sync, buf, offset, count, rank, tag, context);
	}

	/**
	 * Sends objects, serialized, whatever their class.
	 *
	 * @param operation for texts
	 * @param sync      synchronous mode
	 * @param buf       the objects
	 * @param offset    first element
	 * @param count     how many elements
	 * @param rank      the receiver
	 * @param tag       any
	 * @param context   any that is not negative
	 */
	public void sendObjects(String operation, boolean sync, Object[] buf, int offset, int count, int rank, int tag, int context) {
		device.sendAny(operation, sync, Message.objects(device.codec(), operation, buf, offset, count), rank, tag, context);
	}

	/**
	 * Starts a send of an array of a basic type or a java.nio buffer.
	 *
	 * @param operation for texts
	 * @param sync      synchronous mode
	 * @param buf       array or buffer
	 * @param offset    first element
	 * @param count     how many elements
	 * @param rank      the receiver
	 * @param tag       any
	 * @param context   any that is not negative
	 * @return the operation
	 */
	public Request isend(String operation, boolean sync, Object buf, int offset, int count, int rank, int tag, int context) {
		return device.startTo(operation, sync, buf, offset, count, rank, tag, context);
	}

	/**
	 * Starts a send of objects, which are serialized at once.
	 *
	 * @param operation for texts
	 * @param sync      synchronous mode
	 * @param buf       the objects
	 * @param offset    first element
	 * @param count     how many elements
	 * @param rank      the receiver
	 * @param tag       any
	 * @param context   any that is not negative
	 * @return the operation
	 */
	public Request isendObjects(String operation, boolean sync, Object[] buf, int offset, int count, int rank, int tag, int context) {
		return device.startAny(operation, sync, Message.objects(device.codec(), operation, buf, offset, count), rank, tag, context);
	}

	/**
	 * Receives in an array of a basic type; allocates nothing.
	 *
	 * @param kind    of the array, 0 to 7: boolean, byte, char, short, int, long, float, double
	 * @param buf     the array
	 * @param offset  first element
	 * @param count   room for so many elements
	 * @param rank    the sender, or {@link #ANY_SOURCE}
	 * @param tag     which, or Device.ANY_TAG
	 * @param context any that is not negative
	 * @return the calling thread's result block: source, tag and length of the message
	 */
	public ResultBlock recvArray(int kind, Object buf, int offset, int count, int rank, int tag, int context) {
		return device.receiveArray(kind, buf, offset, count, rank, tag, context);
	}

	/**
	 * Receives in a java.nio buffer.
	 *
	 * @param buf     the buffer
	 * @param offset  first element
	 * @param count   room for so many elements
	 * @param rank    the sender, or {@link #ANY_SOURCE}
	 * @param tag     which, or Device.ANY_TAG
	 * @param context any that is not negative
	 * @return what came
	 */
	public Status recvBuffer(java.nio.Buffer buf, int offset, int count, int rank, int tag, int context) {
		Status status = device.receiveAny(Message.target(device.codec(), "recv", buf, offset, count), rank, tag, context);
		Reference.reachabilityFence(buf);
		return status;
	}

	/**
	 * Receives objects.
	 *
	 * @param buf     where they go
	 * @param offset  first element
	 * @param count   room for so many
	 * @param rank    the sender, or {@link #ANY_SOURCE}
	 * @param tag     which, or Device.ANY_TAG
	 * @param context any that is not negative
	 * @return what came
	 */
	public Status recvObjects(Object[] buf, int offset, int count, int rank, int tag, int context) {
		return device.receiveAny(Message.objectTarget(device.codec(), "recv", buf, offset, count), rank, tag, context);
	}

	/**
	 * Starts a receive in an array of a basic type or a java.nio buffer.
	 *
	 * @param buf     array or buffer
	 * @param offset  first element
	 * @param count   room for so many elements
	 * @param rank    the sender, or {@link #ANY_SOURCE}
	 * @param tag     which, or Device.ANY_TAG
	 * @param context any that is not negative
	 * @return the operation
	 */
	public Request irecv(Object buf, int offset, int count, int rank, int tag, int context) {
		return device.postFrom(Message.target(device.codec(), "irecv", buf, offset, count), rank, tag, context);
	}

	/**
	 * Starts a receive of objects.
	 *
	 * @param buf     where they go
	 * @param offset  first element
	 * @param count   room for so many
	 * @param rank    the sender, or {@link #ANY_SOURCE}
	 * @param tag     which, or Device.ANY_TAG
	 * @param context any that is not negative
	 * @return the operation
	 */
	public Request irecvObjects(Object[] buf, int offset, int count, int rank, int tag, int context) {
		return device.postFrom(Message.objectTarget(device.codec(), "irecv", buf, offset, count), rank, tag, context);
	}

	/**
	 * Blocks until a message is there; it stays there.
	 *
	 * @param rank    the sender, or {@link #ANY_SOURCE}
	 * @param tag     which, or Device.ANY_TAG
	 * @param context any that is not negative
	 * @return what is there
	 */
	public Status probe(int rank, int tag, int context) {
		return Probes.wait(device, rank, tag, context);
	}

	/**
	 * As probe, but does not block.
	 *
	 * @param rank    the sender, or {@link #ANY_SOURCE}
	 * @param tag     which, or Device.ANY_TAG
	 * @param context any that is not negative
	 * @return what is there; null if nothing is
	 */
	public Status iprobe(int rank, int tag, int context) {
		return Probes.look(device, rank, tag, context);
	}

	/**
	 * Takes a message out of the queue, so that no other receive gets it.
	 *
	 * @param block   waits for one
	 * @param rank    the sender, or {@link #ANY_SOURCE}
	 * @param tag     which, or Device.ANY_TAG
	 * @param context any that is not negative
	 * @return the message, which must be received; null if none is there
	 */
	public MatchedMessage match(boolean block, int rank, int tag, int context) {
		return block ? MatchedMessage.await(device, rank, tag, context) : MatchedMessage.look(device, rank, tag, context);
	}
}
