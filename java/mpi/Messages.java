// SPDX-License-Identifier: MIT
package mpi;

import xdev.ibvdev.ResultBlock;
import xxdev.XXDevException;
import xxdev.ibvdev.ByRank;
import xxdev.ibvdev.MatchedMessage;

/** The messages of a communicator: between the arguments of the API and the device. */
abstract class Messages {
	private static final Datatype[] BASIC = {MPI.BOOLEAN, MPI.BYTE, MPI.CHAR, MPI.SHORT, MPI.INT, MPI.LONG, MPI.FLOAT, MPI.DOUBLE, MPI.OBJECT};

	/** Of the calling process: of an inter-communicator, the local one. */
	public Group group;

	/** The group that messages go to and come from: of an inter-communicator the remote one. */
	final Group peers;
	/** Of messages; that of collective operations is the next one. */
	final int context;
	final int collective;
	final ByRank device;
	boolean freed;

	/** COMM_NULL. */
	Messages() {
		peers = null;
		context = -1;
		collective = -1;
		device = null;
		freed = true;
	}

	Messages(Group group, Group peers, long number) {
		this.group = group;
		this.peers = peers;
		context = Job.context(number);
		collective = context + 1;
		device = Job.current().device;
	}

	/** Refuses a communicator that does not exist any more. */
	final void check(String operation) {
		if (freed)
			throw Errors.of(operation + ": the communicator " + (group == null ? "is MPI.COMM_NULL" : "has been freed") + ": use another");
	}

	/** The rank in the job of a rank here. */
	final int world(String operation, String role, int rank) {
		if (freed)
			check(operation);
		int[] ranks = peers.ranks;
		if (rank < 0 || rank >= ranks.length)
			throw Errors.of(operation + ": the " + role + " is " + rank + ": use 0 to " + (ranks.length - 1) + " or MPI.PROC_NULL"
					+ (role.equals("source") ? " or MPI.ANY_SOURCE" : ""));
		return ranks[rank];
	}

	/** The rank in the job that a receive or probe names. */
	final int from(String operation, int source) {
		return source == MPI.ANY_SOURCE ? ByRank.ANY_SOURCE : world(operation, "source", source);
	}

	/** The elements that a message of a basic type consists of. */
	static Datatype basic(Datatype type) {
		return BASIC[type.kind];
	}

	/** The status of what the device has reported. */
	final Status status(xxdev.Status found) {
		boolean objects = found.type() == null ? false : found.type().bytes() == 0;
		return new Status(peers.rankOf(found.source().rank()), found.tag(), found.bytes(), found.count(), objects);
	}

	private Status status(ResultBlock found) {
		return new Status(peers.rankOf(found.source()), found.tag(), found.bytes(), 0, false);
	}

	/** Sends; blocks until buf may be changed again. */
	final void send(String operation, boolean sync, Object buf, int offset, int count, Datatype type, int dest, int tag, int context) {
		Datatype.check(operation, type);
		if (type == MPI.PACKED && PackedBuffers.isExpress(buf)) {
			java.nio.ByteBuffer message = ExpressBuffers.readable(operation, (mpjbuf.Buffer) buf);
			send(operation, sync, message, 0, message.capacity(), MPI.BYTE, dest, tag, context);
			return;
		}
		Object from = type.elementsOf(operation, buf, count);
		type.checkRange(operation, from, offset, count);
		if (dest == MPI.PROC_NULL)
			return;
		int to = world(operation, "destination", dest);
		int elements = count * type.size;
		try {
			if (type.kind == Kinds.OBJECT)
				device.sendObjects(
						operation, sync, (Object[]) (type.dense ? from : type.pack(from, offset, count)), type.dense ? offset : 0, elements, to, tag, context);
			else if (type.dense)
				device.send(operation, sync, from, offset, elements, to, tag, context);
			else
				device.send(operation, sync, type.pack(from, offset, count), 0, elements, to, tag, context);
		} catch (XXDevException e) {
			throw Errors.of(e);
		}
	}

	final Request isend(String operation, boolean sync, Object buf, int offset, int count, Datatype type, int dest, int tag) {
		Request request = new Request(this);
		startSend(request, operation, sync, buf, offset, count, type, dest, tag, context);
		return request;
	}

	/** Begins a send as this request. */
	final void startSend(Request request, String operation, boolean sync, Object buf, int offset, int count, Datatype type, int dest, int tag, int context) {
		Datatype.check(operation, type);
		if (type == MPI.PACKED && PackedBuffers.isExpress(buf)) {
			java.nio.ByteBuffer message = ExpressBuffers.readable(operation, (mpjbuf.Buffer) buf);
			startSend(request, operation, sync, message, 0, message.capacity(), MPI.BYTE, dest, tag, context);
			return;
		}
		Object from = type.elementsOf(operation, buf, count);
		type.checkRange(operation, from, offset, count);
		if (dest == MPI.PROC_NULL) {
			request.begin(new Status());
			return;
		}
		int to = world(operation, "destination", dest);
		Object data = type.dense ? from : type.pack(from, offset, count);
		int first = type.dense ? offset : 0;
		try {
			if (type.kind == Kinds.OBJECT)
				request.begin(device.isendObjects(operation, sync, (Object[]) data, first, count * type.size, to, tag, context));
			else
				request.begin(device.isend(operation, sync, data, first, count * type.size, to, tag, context));
		} catch (XXDevException e) {
			throw Errors.of(e);
		}
	}

	final void bsend(String operation, Object buf, int offset, int count, Datatype type, int dest, int tag) {
		check(operation);
		Attached.send(operation, this, buf, offset, count, type, dest, tag);
	}

	/** Receives; blocks. */
	final Status recv(String operation, Object buf, int offset, int count, Datatype type, int source, int tag, int context) {
		Datatype.check(operation, type);
		if (type == MPI.PACKED && PackedBuffers.isExpress(buf)) {
			java.nio.ByteBuffer message = ExpressBuffers.writable(operation, (mpjbuf.Buffer) buf);
			Status status = recv(operation, message, 0, message.capacity(), MPI.BYTE, source, tag, context);
			ExpressBuffers.received((mpjbuf.Buffer) buf, status.Get_count(MPI.BYTE));
			return status;
		}
		Object to = type.elementsOf(operation, buf, count);
		type.checkRange(operation, to, offset, count);
		if (source == MPI.PROC_NULL)
			return Status.ofNull();
		if (freed)
			check(operation);
		int from = from(operation, source);
		int elements = count * type.size;
		boolean direct = type.dense;
		Object target = direct ? to : Kinds.array(type.kind, elements);
		int first = direct ? offset : 0;
		try {
			Status status;
			if (type.kind == Kinds.OBJECT)
				status = status(device.recvObjects((Object[]) target, first, elements, from, tag, context));
			else if (target instanceof java.nio.Buffer)
				status = status(device.recvBuffer((java.nio.Buffer) target, first, elements, from, tag, context));
			else
				status = status(device.recvArray(type.kind, target, first, elements, from, tag, context));
			if (!direct)
				type.copy(false, to, offset, 0, status.Get_elements(type), target, 0);
			return status;
		} catch (XXDevException e) {
			throw Errors.of(e);
		}
	}

	/** Begins a receive as this request. */
	final void startRecv(Request request, String operation, Object buf, int offset, int count, Datatype type, int source, int tag, int context) {
		startRecv(request, operation, null, buf, offset, count, type, source, tag, context);
	}

	/** Begins to receive what a matched probe found, null: from PROC_NULL. The communicator may have been freed. */
	final void startMatched(Request request, String operation, MatchedMessage matched, Object buf, int offset, int count, Datatype type) {
		startRecv(request, operation, matched, buf, offset, count, type, matched == null ? MPI.PROC_NULL : MPI.ANY_SOURCE, MPI.ANY_TAG, context);
	}

	private void startRecv(
			Request request, String operation, MatchedMessage matched, Object buf, int offset, int count, Datatype type, int source, int tag, int context) {
		Datatype.check(operation, type);
		if (type == MPI.PACKED && PackedBuffers.isExpress(buf)) {
			java.nio.ByteBuffer message = ExpressBuffers.writable(operation, (mpjbuf.Buffer) buf);
			startRecv(request, operation, matched, message, 0, message.capacity(), MPI.BYTE, source, tag, context);
			request.unpack(null, buf, 0, MPI.BYTE);
			return;
		}
		Object to = type.elementsOf(operation, buf, count);
		type.checkRange(operation, to, offset, count);
		if (source == MPI.PROC_NULL) {
			request.begin(Status.ofNull());
			return;
		}
		if (matched == null)
			check(operation);
		int from = from(operation, source);
		int elements = count * type.size;
		Object target = type.dense ? to : Kinds.array(type.kind, elements);
		int first = type.dense ? offset : 0;
		boolean objects = type.kind == Kinds.OBJECT;
		try {
			if (matched != null)
				request.begin(
						objects ? matched.irecvObjects(operation, (Object[]) target, first, elements) : matched.irecv(operation, target, first, elements));
			else
				request.begin(objects ? device.irecvObjects((Object[]) target, first, elements, from, tag, context)
									  : device.irecv(target, first, elements, from, tag, context));
			if (!type.dense)
				request.unpack(target, to, offset, type);
		} catch (XXDevException e) {
			throw Errors.of(e);
		}
	}
}
