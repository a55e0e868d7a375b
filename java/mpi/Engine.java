// SPDX-License-Identifier: MIT
package mpi;

import java.util.ArrayDeque;
import java.util.concurrent.atomic.AtomicReference;
import xxdev.XXDevException;
import xxdev.ibvdev.Communicator;

/**
 * The collective operations of the native library, for elements of basic types: they pass through direct memory, and each operation is one call. Arguments have been
 * checked. What a method returns is to be run or started; null: the library cannot do it, and nothing was done.
 */
final class Engine {
	/*
	 * The most bytes that a blocking operation brings through direct memory: a part from or to a root; all parts; a reduction's operands. What is longer goes as
	 * messages from array to array: the two copies that this saves then cost more than a schedule of the library saves (bench/RESULTS.md). A reduction needs the
	 * memory anyway.
	 */
	private static final int MOST_ROOTED = (16 << 10) - 1;
	private static final int MOST_PARTS = 4 << 20;
	private static final int MOST_REDUCED = 4 << 20;
	/** Bounce buffers that are kept. */
	private static final int KEPT = 4;
	/** By kind: the number of the type in ibvx_coll.h. */
	private static final int[] TYPES = {7, 0, 1, 2, 3, 4, 5, 6};
	/** By Op.opCode: the number of the operation in ibvx_coll.h. */
	private static final int[] OPS = {-1, 3, 2, 0, 1, 4, 7, 5, 8, 6, 9, 11, 10};

	final Communicator communicator;
	final int size;
	/** One that is free: all that a thread at a time needs. */
	private final AtomicReference<Bounce> first = new AtomicReference<>();
	private final ArrayDeque<Bounce> free = new ArrayDeque<>();

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

	Bounce bounce() {
		Bounce bounce = first.getAndSet(null);
		if (bounce != null)
			return bounce;
		synchronized (free) {
			return free.isEmpty() ? new Bounce() : free.pop();
		}
	}

	void release(Bounce bounce) {
		if (first.compareAndSet(null, bounce))
			return;
		synchronized (free) {
			if (free.size() < KEPT)
				free.push(bounce);
		}
	}

	/** Does the library do it with parts of so many elements of this type? All ranks decide the same. */
	private static boolean serves(boolean blocking, Datatype type, long elements, int mostBytes) {
		return type.kind != Kinds.OBJECT && (!blocking || elements * type.unitBytes() <= mostBytes);
	}

	/** Parts of different lengths: with a root they are not known everywhere, nor in Alltoall. */
	private boolean serves(boolean blocking, Datatype type, int count, Parts parts, int mostBytes) {
		return blocking ? parts.isEven() && serves(true, type, (long) count * type.size, Math.min(mostBytes, MOST_PARTS / size)) : serves(false, type, 0, 0);
	}

	/** Allgather: all ranks know the lengths of all parts. */
	private boolean serves(boolean blocking, Datatype type, Parts parts) {
		return serves(blocking, type, parts.items(size) * type.size / size, mostOfAll());
	}

	/** A part of each for each: messages need a round for each rank, in which it waits for another one. */
	private int mostOfAll() {
		return (int) Math.min((4L << 10) * size * size - 1, MOST_PARTS / size);
	}

	private static long room(Parts parts, int number, Datatype type) {
		return Bounce.room(Operation.bytes(parts, number, type));
	}

	Operation barrier() {
		return new Operation(this, "Barrier", Communicator.BARRIER, 0, 0);
	}

	Operation bcast(boolean blocking, Object buf, int offset, int count, Datatype type, boolean isRoot, int root) {
		if (!serves(blocking, type, (long) count * type.size, MOST_ROOTED))
			return null;
		Parts part = Parts.even(count);
		Operation operation = new Operation(this, "Bcast", Communicator.BCAST, root, room(part, 1, type));
		operation.in(buf, offset, part, 1, type, isRoot);
		return operation;
	}

	/** Gather, Allgather (root is -1). */
	Operation gather(boolean blocking, Object sendbuf, int sendoffset, int sendcount, Datatype sendtype, Object recvbuf, int recvoffset, Parts parts,
			Datatype recvtype, boolean gets, int root) {
		if (!(root < 0 ? serves(blocking, recvtype, parts) : serves(blocking, sendtype, sendcount, parts, MOST_ROOTED)))
			return null;
		Parts part = Parts.even(sendcount);
		Operation operation = new Operation(this, root < 0 ? "Allgather" : "Gather", root < 0 ? Communicator.ALLGATHER : Communicator.GATHER, Math.max(root, 0),
				room(part, 1, sendtype) + (gets ? room(parts, size, recvtype) : 0));
		operation.in(sendbuf, sendoffset, part, 1, sendtype, true);
		if (gets)
			operation.out(recvbuf, recvoffset, parts, size, recvtype);
		if (!parts.isEven())
			operation.uneven();
		return operation;
	}

	Operation scatter(boolean blocking, Object sendbuf, int sendoffset, Parts parts, Datatype sendtype, Object recvbuf, int recvoffset, int recvcount,
			Datatype recvtype, boolean isRoot, int root) {
		if (!serves(blocking, recvtype, recvcount, parts, MOST_ROOTED))
			return null;
		Parts part = Parts.even(recvcount);
		Operation operation = new Operation(this, "Scatter", Communicator.SCATTER, root, room(part, 1, recvtype) + (isRoot ? room(parts, size, sendtype) : 0));
		if (isRoot)
			operation.in(sendbuf, sendoffset, parts, size, sendtype, true);
		operation.out(recvbuf, recvoffset, part, 1, recvtype);
		if (!parts.isEven())
			operation.uneven();
		return operation;
	}

	Operation alltoall(boolean blocking, Object sendbuf, int sendoffset, Parts sent, Datatype sendtype, Object recvbuf, int recvoffset, Parts received,
			Datatype recvtype) {
		if (!serves(blocking, sendtype, sent.isEven() ? sent.count(0) : 0, sent, mostOfAll()))
			return null;
		Operation operation = new Operation(this, "Alltoall", Communicator.ALLTOALL, 0, room(sent, size, sendtype) + room(received, size, recvtype));
		operation.in(sendbuf, sendoffset, sent, size, sendtype, true);
		operation.out(recvbuf, recvoffset, received, size, recvtype);
		return operation;
	}

	/** Reduce, Allreduce, Scan by a predefined operation. */
	Operation reduce(boolean blocking, String name, int kind, Object sendbuf, int sendoffset, Object recvbuf, int recvoffset, int count, Datatype type, Op op,
			boolean gets, int root) {
		if (op.isUsers() || !serves(blocking, type, (long) count * type.size, MOST_REDUCED))
			return null;
		Parts part = Parts.even(count);
		Operation operation = new Operation(this, name, kind, root, 2 * room(part, 1, type));
		operation.operands(sendbuf, sendoffset, count, type, TYPES[type.kind], OPS[op.opCode], isOfPairs(op));
		operation.out(gets ? recvbuf : null, recvoffset, part, 1, type);
		return operation;
	}

	Operation reduceScatter(
			boolean blocking, Object sendbuf, int sendoffset, Object recvbuf, int recvoffset, int[] counts, int total, int mine, Datatype type, Op op) {
		if (op.isUsers() || !serves(blocking, type, (long) total * type.size, MOST_REDUCED))
			return null;
		Parts part = Parts.even(mine);
		Operation operation = new Operation(this, "Reduce_scatter", Communicator.REDUCE_SCATTER, 0, room(Parts.even(total), 1, type) + room(part, 1, type));
		operation.operands(sendbuf, sendoffset, total, type, TYPES[type.kind], OPS[op.opCode], isOfPairs(op));
		operation.shares(java.util.Arrays.copyOf(counts, size), type, isOfPairs(op));
		operation.out(recvbuf, recvoffset, part, 1, type);
		return operation;
	}

	private static boolean isOfPairs(Op op) {
		return op.opCode >= Op.CODE_MAXLOC;
	}
}
