// SPDX-License-Identifier: MIT
package mpi;

import xxdev.XXDevException;
import xxdev.ibvdev.MatchedMessage;

/** The point-to-point part of {@link Comm}: modes, requests, probes, packed messages. */
abstract class PointToPoint extends Messages {
	PointToPoint() {}

	PointToPoint(Group group, Group peers, long number) {
		super(group, peers, number);
	}

	/**
	 * Sends, standard mode (MPI 4.0, section 3.2); blocks until buf may be changed again.
	 *
	 * @param buf      an array or java.nio buffer of the datatype's elements, or an Object[]
	 * @param offset   index of the first element
	 * @param count    how many of datatype
	 * @param datatype what
	 * @param dest     the receiver's rank, or MPI.PROC_NULL
	 * @param tag      any number but MPI.ANY_TAG
	 */
	public void Send(Object buf, int offset, int count, Datatype datatype, int dest, int tag) {
		send("Send", false, buf, offset, count, datatype, dest, tag, context);
	}

	/**
	 * Sends, synchronous mode; blocks until the matching receive has begun, too.
	 *
	 * @param buf      an array or java.nio buffer of the datatype's elements, or an Object[]
	 * @param offset   index of the first element
	 * @param count    how many of datatype
	 * @param datatype what
	 * @param dest     the receiver's rank, or MPI.PROC_NULL
	 * @param tag      any number but MPI.ANY_TAG
	 */
	public void Ssend(Object buf, int offset, int count, Datatype datatype, int dest, int tag) {
		send("Ssend", true, buf, offset, count, datatype, dest, tag, context);
	}

	/**
	 * Sends, ready mode: the matching receive has begun, or this is an error of the program.
	 *
	 * @param buf      an array or java.nio buffer of the datatype's elements, or an Object[]
	 * @param offset   index of the first element
	 * @param count    how many of datatype
	 * @param datatype what
	 * @param dest     the receiver's rank, or MPI.PROC_NULL
	 * @param tag      any number but MPI.ANY_TAG
	 */
	public void Rsend(Object buf, int offset, int count, Datatype datatype, int dest, int tag) {
		send("Rsend", false, buf, offset, count, datatype, dest, tag, context);
	}

	/**
	 * Sends, buffered mode; does not block. There must be room in the buffer of MPI.Buffer_attach.
	 *
	 * @param buf      an array or java.nio buffer of the datatype's elements, or an Object[]
	 * @param offset   index of the first element
	 * @param count    how many of datatype
	 * @param datatype what
	 * @param dest     the receiver's rank, or MPI.PROC_NULL
	 * @param tag      any number but MPI.ANY_TAG
	 */
	public void Bsend(Object buf, int offset, int count, Datatype datatype, int dest, int tag) {
		bsend("Bsend", buf, offset, count, datatype, dest, tag);
	}

	/**
	 * Starts a standard send (MPI 4.0, section 3.7); does not block. buf must not change before the request is complete.
	 *
	 * @param buf      an array or java.nio buffer of the datatype's elements, or an Object[]
	 * @param offset   index of the first element
	 * @param count    how many of datatype
	 * @param datatype what
	 * @param dest     the receiver's rank, or MPI.PROC_NULL
	 * @param tag      any number but MPI.ANY_TAG
	 * @return the operation
	 */
	public Request Isend(Object buf, int offset, int count, Datatype datatype, int dest, int tag) {
		return isend("Isend", false, buf, offset, count, datatype, dest, tag);
	}

	/**
	 * Starts a synchronous send; does not block. Complete means: the matching receive has begun.
	 *
	 * @param buf      an array or java.nio buffer of the datatype's elements, or an Object[]
	 * @param offset   index of the first element
	 * @param count    how many of datatype
	 * @param datatype what
	 * @param dest     the receiver's rank, or MPI.PROC_NULL
	 * @param tag      any number but MPI.ANY_TAG
	 * @return the operation
	 */
	public Request Issend(Object buf, int offset, int count, Datatype datatype, int dest, int tag) {
		return isend("Issend", true, buf, offset, count, datatype, dest, tag);
	}

	/**
	 * Starts a ready send; does not block.
	 *
	 * @param buf      an array or java.nio buffer of the datatype's elements, or an Object[]
	 * @param offset   index of the first element
	 * @param count    how many of datatype
	 * @param datatype what
	 * @param dest     the receiver's rank, or MPI.PROC_NULL
	 * @param tag      any number but MPI.ANY_TAG
	 * @return the operation
	 */
	public Request Irsend(Object buf, int offset, int count, Datatype datatype, int dest, int tag) {
		return isend("Irsend", false, buf, offset, count, datatype, dest, tag);
	}

	/**
	 * Starts a buffered send; does not block, and is complete at once.
	 *
	 * @param buf      an array or java.nio buffer of the datatype's elements, or an Object[]
	 * @param offset   index of the first element
	 * @param count    how many of datatype
	 * @param datatype what
	 * @param dest     the receiver's rank, or MPI.PROC_NULL
	 * @param tag      any number but MPI.ANY_TAG
	 * @return the operation
	 */
	public Request Ibsend(Object buf, int offset, int count, Datatype datatype, int dest, int tag) {
		bsend("Ibsend", buf, offset, count, datatype, dest, tag);
		Request request = new Request(this);
		request.begin(new Status());
		return request;
	}

	/**
	 * Receives (MPI 4.0, section 3.2); blocks until the message is there. A message that is longer than buf is an error; it is gone, buf is unchanged.
	 *
	 * @param buf      an array or java.nio buffer of the datatype's elements, or an Object[]
	 * @param offset   index of the first element
	 * @param count    how many of datatype
	 * @param datatype what
	 * @param source   the sender's rank, MPI.ANY_SOURCE or MPI.PROC_NULL
	 * @param tag      which, or MPI.ANY_TAG
	 * @return what came
	 */
	public Status Recv(Object buf, int offset, int count, Datatype datatype, int source, int tag) {
		return recv("Recv", buf, offset, count, datatype, source, tag, context);
	}

	/**
	 * Starts a receive (MPI 4.0, section 3.7); does not block. buf belongs to it until the request is complete.
	 *
	 * @param buf      an array or java.nio buffer of the datatype's elements, or an Object[]
	 * @param offset   index of the first element
	 * @param count    how many of datatype
	 * @param datatype what
	 * @param source   the sender's rank, MPI.ANY_SOURCE or MPI.PROC_NULL
	 * @param tag      which, or MPI.ANY_TAG
	 * @return the operation
	 */
	public Request Irecv(Object buf, int offset, int count, Datatype datatype, int source, int tag) {
		Request request = new Request(this);
		startRecv(request, "Irecv", buf, offset, count, datatype, source, tag, context);
		return request;
	}

	/**
	 * Prepares a standard send to be started again and again (MPI 4.0, section 3.9).
	 *
	 * @param buf      an array or java.nio buffer of the datatype's elements, or an Object[]
	 * @param offset   index of the first element
	 * @param count    how many of datatype
	 * @param datatype what
	 * @param dest     the receiver's rank, or MPI.PROC_NULL
	 * @param tag      any number but MPI.ANY_TAG
	 * @return the operation, inactive
	 */
	public Prequest Send_init(Object buf, int offset, int count, Datatype datatype, int dest, int tag) {
		return new Prequest(this, request -> startSend(request, "Send_init", false, buf, offset, count, datatype, dest, tag, context));
	}

	/**
	 * Prepares a synchronous send to be started again and again (MPI 4.0, section 3.9).
	 *
	 * @param buf      an array or java.nio buffer of the datatype's elements, or an Object[]
	 * @param offset   index of the first element
	 * @param count    how many of datatype
	 * @param datatype what
	 * @param dest     the receiver's rank, or MPI.PROC_NULL
	 * @param tag      any number but MPI.ANY_TAG
	 * @return the operation, inactive
	 */
	public Prequest Ssend_init(Object buf, int offset, int count, Datatype datatype, int dest, int tag) {
		return new Prequest(this, request -> startSend(request, "Ssend_init", true, buf, offset, count, datatype, dest, tag, context));
	}

	/**
	 * Prepares a ready send to be started again and again (MPI 4.0, section 3.9).
	 *
	 * @param buf      an array or java.nio buffer of the datatype's elements, or an Object[]
	 * @param offset   index of the first element
	 * @param count    how many of datatype
	 * @param datatype what
	 * @param dest     the receiver's rank, or MPI.PROC_NULL
	 * @param tag      any number but MPI.ANY_TAG
	 * @return the operation, inactive
	 */
	public Prequest Rsend_init(Object buf, int offset, int count, Datatype datatype, int dest, int tag) {
		return new Prequest(this, request -> startSend(request, "Rsend_init", false, buf, offset, count, datatype, dest, tag, context));
	}

	/**
	 * Prepares a buffered send to be started again and again.
	 *
	 * @param buf      an array or java.nio buffer of the datatype's elements, or an Object[]
	 * @param offset   index of the first element
	 * @param count    how many of datatype
	 * @param datatype what
	 * @param dest     the receiver's rank, or MPI.PROC_NULL
	 * @param tag      any number but MPI.ANY_TAG
	 * @return the operation, inactive
	 */
	public Prequest Bsend_init(Object buf, int offset, int count, Datatype datatype, int dest, int tag) {
		return new Prequest(this, request -> {
			bsend("Bsend_init", buf, offset, count, datatype, dest, tag);
			request.begin(new Status());
		});
	}

	/**
	 * Prepares a receive to be started again and again.
	 *
	 * @param buf      an array or java.nio buffer of the datatype's elements, or an Object[]
	 * @param offset   index of the first element
	 * @param count    how many of datatype
	 * @param datatype what
	 * @param source   the sender's rank, MPI.ANY_SOURCE or MPI.PROC_NULL
	 * @param tag      which, or MPI.ANY_TAG
	 * @return the operation, inactive
	 */
	public Prequest Recv_init(Object buf, int offset, int count, Datatype datatype, int source, int tag) {
		return new Prequest(this, request -> startRecv(request, "Recv_init", buf, offset, count, datatype, source, tag, context));
	}

	/**
	 * Asks for a message that a receive with these arguments would get; it stays there. Does not block.
	 *
	 * @param source the sender's rank, MPI.ANY_SOURCE or MPI.PROC_NULL
	 * @param tag    which, or MPI.ANY_TAG
	 * @return what is there; null if nothing is
	 */
	public Status Iprobe(int source, int tag) {
		return probe("Iprobe", false, source, tag);
	}

	/**
	 * Blocks until a message is there that a receive with these arguments would get; it stays there.
	 *
	 * @param source the sender's rank, MPI.ANY_SOURCE or MPI.PROC_NULL
	 * @param tag    which, or MPI.ANY_TAG
	 * @return what is there
	 */
	public Status Probe(int source, int tag) {
		return probe("Probe", true, source, tag);
	}

	private Status probe(String operation, boolean block, int source, int tag) {
		check(operation);
		if (source == MPI.PROC_NULL)
			return Status.ofNull();
		int from = from(operation, source);
		try {
			xxdev.Status found = block ? device.probe(from, tag, context) : device.iprobe(from, tag, context);
			return found == null ? null : status(found);
		} catch (XXDevException e) {
			throw Errors.of(e);
		}
	}

	/**
	 * Matches a message that a receive with these arguments would get (MPI 4.0, section 3.8.2): it is left to {@link Message#Mrecv} alone. Does not block.
	 *
	 * @param source the sender's rank, MPI.ANY_SOURCE or MPI.PROC_NULL
	 * @param tag    which, or MPI.ANY_TAG
	 * @return the message; null if none is there; of MPI.PROC_NULL {@link MPI#MESSAGE_NO_PROC}
	 */
	public Message Improbe(int source, int tag) {
		return match("Improbe", false, source, tag);
	}

	/**
	 * Blocks until a message is there that a receive with these arguments would get, and matches it (MPI 4.0, section 3.8.2): it is left to {@link Message#Mrecv} alone. Several threads
	 * that probe at the same time get a message each.
	 *
	 * @param source the sender's rank, MPI.ANY_SOURCE or MPI.PROC_NULL
	 * @param tag    which, or MPI.ANY_TAG
	 * @return the message; of MPI.PROC_NULL {@link MPI#MESSAGE_NO_PROC}
	 */
	public Message Mprobe(int source, int tag) {
		return match("Mprobe", true, source, tag);
	}

	private Message match(String operation, boolean block, int source, int tag) {
		check(operation);
		if (source == MPI.PROC_NULL)
			return MPI.MESSAGE_NO_PROC;
		try {
			MatchedMessage found = device.match(block, from(operation, source), tag, context);
			return found == null ? null : new Message(this, found, status(found.status()));
		} catch (XXDevException e) {
			throw Errors.of(e);
		}
	}

	/**
	 * Sends and receives at the same time; blocks until both are complete (MPI 4.0, section 3.10).
	 *
	 * @param sendbuf    what is sent
	 * @param sendoffset index of its first element
	 * @param sendcount  how many of sendtype
	 * @param sendtype   what
	 * @param dest       the receiver's rank, or MPI.PROC_NULL
	 * @param sendtag    any number but MPI.ANY_TAG
	 * @param recvbuf    where the other message goes, apart from what is sent
	 * @param recvoffset index of its first element
	 * @param recvcount  room for so many of recvtype
	 * @param recvtype   what
	 * @param source     the sender's rank, MPI.ANY_SOURCE or MPI.PROC_NULL
	 * @param recvtag    which, or MPI.ANY_TAG
	 * @return what came
	 */
	public Status Sendrecv(Object sendbuf, int sendoffset, int sendcount, Datatype sendtype, int dest, int sendtag, Object recvbuf, int recvoffset,
			int recvcount, Datatype recvtype, int source, int recvtag) {
		Request receive = Irecv(recvbuf, recvoffset, recvcount, recvtype, source, recvtag);
		Request send;
		try {
			send = isend("Sendrecv", false, sendbuf, sendoffset, sendcount, sendtype, dest, sendtag);
		} catch (MPIException e) {
			receive.Cancel();
			receive.Wait();
			throw e;
		}
		return Request.Waitall(new Request[] {receive, send})[0];
	}

	/**
	 * Sends what is in buf and receives in it; blocks until both are complete.
	 *
	 * @param buf      an array or java.nio buffer of the datatype's elements, or an Object[]
	 * @param offset   index of the first element
	 * @param count    how many of datatype
	 * @param datatype what
	 * @param dest     the receiver's rank, or MPI.PROC_NULL
	 * @param sendtag  any number but MPI.ANY_TAG
	 * @param source   the sender's rank, MPI.ANY_SOURCE or MPI.PROC_NULL
	 * @param recvtag  which, or MPI.ANY_TAG
	 * @return what came
	 */
	public Status Sendrecv_replace(Object buf, int offset, int count, Datatype datatype, int dest, int sendtag, int source, int recvtag) {
		Datatype.check("Sendrecv_replace", datatype);
		Object from = datatype.elementsOf("Sendrecv_replace", buf, count);
		datatype.checkRange("Sendrecv_replace", from, offset, count);
		return Sendrecv(
				datatype.pack(from, offset, count), 0, count * datatype.size, basic(datatype), dest, sendtag, buf, offset, count, datatype, source, recvtag);
	}

	/**
	 * How many bytes Pack needs at most.
	 *
	 * @param incount  how many of datatype
	 * @param datatype what
	 * @return bytes
	 */
	public int Pack_size(int incount, Datatype datatype) {
		Datatype.check("Pack_size", datatype);
		return incount * datatype.getByteSize() + PackedBuffers.SECTION_BYTES;
	}

	/**
	 * Appends elements to a message that is put together (MPI 4.0, section 5.2).
	 *
	 * @param inbuf    an array or java.nio buffer of the datatype's elements
	 * @param offset   index of the first element
	 * @param incount  how many of datatype
	 * @param datatype what; no objects
	 * @param outbuf   the message, to be sent as MPI.PACKED
	 * @param position where to append, in bytes
	 * @return the position behind
	 */
	public int Pack(Object inbuf, int offset, int incount, Datatype datatype, byte[] outbuf, int position) {
		return PackedBuffers.pack(inbuf, offset, incount, datatype, outbuf, position);
	}

	/**
	 * Takes elements out of a message that was put together.
	 *
	 * @param inbuf    the message, received as MPI.PACKED
	 * @param position where to go on, in bytes
	 * @param outbuf   an array or java.nio buffer of the datatype's elements
	 * @param offset   index of the first element
	 * @param outcount how many of datatype
	 * @param datatype what; no objects
	 * @return the position behind
	 */
	public int Unpack(byte[] inbuf, int position, Object outbuf, int offset, int outcount, Datatype datatype) {
		return PackedBuffers.unpack(inbuf, position, outbuf, offset, outcount, datatype);
	}

	/**
	 * As Pack, for programs that name MPJ Express's buffer; mpj.jar must be on the class path behind this one.
	 *
	 * @param inbuf    an array of the datatype's elements
	 * @param offset   index of the first element
	 * @param incount  how many of datatype
	 * @param datatype what; no objects
	 * @param outbuf   the message, to be sent as MPI.PACKED
	 * @param position where to append, in bytes
	 * @return the position behind
	 */
	public int Pack(Object inbuf, int offset, int incount, Datatype datatype, mpjbuf.Buffer outbuf, int position) {
		return PackedBuffers.pack(inbuf, offset, incount, datatype, outbuf, position);
	}

	/**
	 * As Unpack, for programs that name MPJ Express's buffer; mpj.jar must be on the class path behind this one.
	 *
	 * @param inbuf    the message, received as MPI.PACKED
	 * @param position where to go on, in bytes
	 * @param outbuf   an array of the datatype's elements
	 * @param offset   index of the first element
	 * @param outcount how many of datatype
	 * @param datatype what; no objects
	 * @return the position behind
	 */
	public int Unpack(mpjbuf.Buffer inbuf, int position, Object outbuf, int offset, int outcount, Datatype datatype) {
		return PackedBuffers.unpack(inbuf, position, outbuf, offset, outcount, datatype);
	}
}
