// SPDX-License-Identifier: MIT
package mpi;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import xxdev.XXDevException;
import xxdev.ibvdev.Communicator;

/**
 * The collective operations of the native library, for elements of basic types: they pass through direct memory, and each operation is one call. Arguments have been
 * checked. One operation of a communicator at a time.
 */
final class Engine {
	/** What takes more direct memory than this is sent as messages from where it lies. */
	private static final int MOST_BYTES = 4 << 20;
	private static final int ALIGN = 64;
	/** By kind: the number of the type in ibvx_coll.h. */
	private static final int[] TYPES = {7, 0, 1, 2, 3, 4, 5, 6};
	/** By Op.opCode: the number of the operation in ibvx_coll.h. */
	private static final int[] OPS = {-1, 3, 2, 0, 1, 4, 7, 5, 8, 6, 9, 11, 10};

	private final Communicator communicator;
	private final int size;
	private ByteBuffer memory = ByteBuffer.allocateDirect(0);
	/** By kind: the memory as elements. */
	private Object[] views = new Object[Kinds.OBJECT];

	private Engine(Communicator communicator, int size) {
		this.communicator = communicator;
		this.size = size;
		Job.current().add(this);
	}

	/** Null: there is none, messages do it. */
	static Engine of(Communicator communicator, int size) {
		return communicator == null ? null : new Engine(communicator, size);
	}

	/** Collective. A negative colour: null. */
	Engine split(int colour, int key, int members) {
		try {
			return of(communicator.split(colour, key), members);
		} catch (XXDevException e) {
			throw Errors.of(e);
		}
	}

	void free() {
		Job.current().remove(this);
		communicator.free();
	}

	/** Can so many elements of this type, at each rank, be given to the library? All ranks decide the same. */
	private boolean serves(Datatype type, long elements) {
		return type.kind != Kinds.OBJECT && elements * type.unitBytes() <= MOST_BYTES;
	}

	private static int aligned(int bytes) {
		return bytes + ALIGN - 1 & -ALIGN;
	}

	/** Memory for so many bytes. */
	private void reserve(int bytes) {
		if (bytes <= memory.capacity())
			return;
		memory = ByteBuffer.allocateDirect(Math.max(4096, Integer.highestOneBit(bytes - 1) << 1)).order(ByteOrder.nativeOrder());
		views = new Object[Kinds.OBJECT];
	}

	private Object view(int kind) {
		if (views[kind] == null)
			views[kind] = Kinds.view(kind, memory);
		return views[kind];
	}

	private void put(Object buf, int offset, int count, Datatype type, int at) {
		Object from = buf;
		int first = offset;
		if (!type.dense || Datatype.isBuffer(buf)) {
			from = type.pack(buf, offset, count);
			first = 0;
		}
		int elements = count * type.size;
		if (type.kind == Kinds.BOOLEAN)
			for (int i = 0; i < elements; i++)
				memory.put(at + i, (byte) (((boolean[]) from)[first + i] ? 1 : 0));
		else
			Kinds.copy(from, first, view(type.kind), at >> Kinds.shift(type.kind), elements);
	}

	private void get(int at, Object buf, int offset, int count, Datatype type) {
		int elements = count * type.size;
		boolean direct = type.dense && !Datatype.isBuffer(buf);
		Object to = direct ? buf : Kinds.array(type.kind, elements);
		int first = direct ? offset : 0;
		if (type.kind == Kinds.BOOLEAN)
			for (int i = 0; i < elements; i++)
				((boolean[]) to)[first + i] = memory.get(at + i) != 0;
		else
			Kinds.copy(view(type.kind), at >> Kinds.shift(type.kind), to, first, elements);
		if (!direct)
			type.copy(false, buf, offset, 0, elements, to, 0);
	}

	void barrier() {
		try {
			communicator.barrier();
		} catch (XXDevException e) {
			throw Errors.of(e);
		}
	}

	private void move(String name, int kind, int root, int in, int inBytes, int out, int outBytes) {
		try {
			communicator.transfer(name, kind, root, memory, in, inBytes, out, outBytes);
		} catch (XXDevException e) {
			throw Errors.of(e);
		}
	}

	/** False: nothing was done. */
	synchronized boolean bcast(Object buf, int offset, int count, Datatype type, boolean isRoot, int root) {
		if (!serves(type, (long) count * type.size))
			return false;
		int bytes = count * type.size * type.unitBytes();
		reserve(bytes);
		if (isRoot)
			put(buf, offset, count, type, 0);
		move("Bcast", Communicator.BCAST, root, 0, bytes, 0, 0);
		if (!isRoot)
			get(0, buf, offset, count, type);
		return true;
	}

	/** Gather, Allgather (root is -1), of parts of one length. */
	synchronized boolean gather(Object sendbuf, int sendoffset, int sendcount, Datatype sendtype, Object recvbuf, int recvoffset, int recvcount,
			Datatype recvtype, boolean gets, int root) {
		if (!serves(sendtype, (long) sendcount * sendtype.size * size))
			return false;
		int bytes = sendcount * sendtype.size * sendtype.unitBytes();
		int out = aligned(bytes);
		int outBytes = gets ? recvcount * recvtype.size * recvtype.unitBytes() : 0;
		reserve(out + size * outBytes);
		put(sendbuf, sendoffset, sendcount, sendtype, 0);
		move(root < 0 ? "Allgather" : "Gather", root < 0 ? Communicator.ALLGATHER : Communicator.GATHER, Math.max(root, 0), 0, bytes, out, outBytes);
		if (gets)
			get(out, recvbuf, recvoffset, size * recvcount, recvtype);
		return true;
	}

	synchronized boolean scatter(Object sendbuf, int sendoffset, int sendcount, Datatype sendtype, Object recvbuf, int recvoffset, int recvcount,
			Datatype recvtype, boolean isRoot, int root) {
		if (!serves(recvtype, (long) recvcount * recvtype.size * size))
			return false;
		int bytes = recvcount * recvtype.size * recvtype.unitBytes();
		int in = aligned(bytes);
		int inBytes = isRoot ? sendcount * sendtype.size * sendtype.unitBytes() : 0;
		reserve(in + size * inBytes);
		if (isRoot)
			put(sendbuf, sendoffset, size * sendcount, sendtype, in);
		move("Scatter", Communicator.SCATTER, root, in, inBytes, 0, bytes);
		get(0, recvbuf, recvoffset, recvcount, recvtype);
		return true;
	}

	synchronized boolean alltoall(
			Object sendbuf, int sendoffset, int sendcount, Datatype sendtype, Object recvbuf, int recvoffset, int recvcount, Datatype recvtype) {
		if (!serves(sendtype, (long) sendcount * sendtype.size * size))
			return false;
		int inBytes = sendcount * sendtype.size * sendtype.unitBytes();
		int outBytes = recvcount * recvtype.size * recvtype.unitBytes();
		int out = aligned(size * inBytes);
		reserve(out + size * outBytes);
		put(sendbuf, sendoffset, size * sendcount, sendtype, 0);
		move("Alltoall", Communicator.ALLTOALL, 0, 0, inBytes, out, outBytes);
		get(out, recvbuf, recvoffset, size * recvcount, recvtype);
		return true;
	}

	/** Reduce, Allreduce, Scan by a predefined operation. */
	synchronized boolean reduce(
			String name, int kind, Object sendbuf, int sendoffset, Object recvbuf, int recvoffset, int count, Datatype type, Op op, boolean gets, int root) {
		if (op.isUsers() || !serves(type, (long) count * type.size))
			return false;
		int elements = count * type.size;
		int bytes = elements * type.unitBytes();
		int out = aligned(bytes);
		reserve(out + bytes);
		put(sendbuf, sendoffset, count, type, 0);
		boolean pairs = op.opCode >= Op.CODE_MAXLOC;
		try {
			communicator.reduce(name, kind, root, memory, 0, out, pairs ? elements / 2 : elements, TYPES[type.kind], OPS[op.opCode]);
		} catch (XXDevException e) {
			throw Errors.of(e);
		}
		if (gets)
			get(out, recvbuf, recvoffset, count, type);
		return true;
	}
}
