// SPDX-License-Identifier: MIT
package mpi;

import java.util.function.Consumer;
import java.util.function.Supplier;
import xxdev.ibvdev.Communicator;

/**
 * The collective operations of a communicator, by the native library ({@link Engine}) or, of objects, by operations of the user's and where only some processes know how long the parts of a blocking one are, as messages in the
 * communicator's second context. Arguments other than buffers have been checked. Combining keeps
 * the order of ranks, and all get the result of one process.
 */
final class Collectives {
	private static final int BARRIER = 1;
	private static final int BCAST = 2;
	private static final int GATHER = 3;
	private static final int SCATTER = 4;
	private static final int ALLGATHER = 5;
	private static final int ALLTOALL = 6;
	private static final int REDUCE = 7;
	private static final int SCAN = 8;
	/**
	 * Parts of more bytes are sent and received one after the other, by operations that block: where both sides wait, the device copies from array to array, once
	 * (bench/RESULTS.md).
	 */
	private static final int MOST_AT_ONCE = 16 << 10;
	/** Is added to the tags of non-blocking operations that are done by messages. */
	private static final int IN_BACKGROUND = 16;

	/** How an operation is executed. */
	private enum Mode {
		BLOCKING,
		/** It is only begun, by the library if that can do it. */
		BEGIN,
		/** By messages, beside blocking ones. */
		BACKGROUND
	}

	private final Mode mode;
	private final Intracomm comm;
	/** Null: everything is done by messages. */
	final Engine engine;
	private final int context;
	private final int rank;
	private final int size;
	/** In mode BEGIN: what was begun; null: the library cannot do it. */
	private Operation begun;
	private Background background;

	Collectives(Intracomm comm, Engine engine) {
		this(comm, engine, Mode.BLOCKING);
	}

	private Collectives(Intracomm comm, Engine engine, Mode mode) {
		this.mode = mode;
		this.comm = comm;
		this.engine = engine;
		context = comm.collective;
		rank = comm.group.self();
		size = comm.group.ranks.length;
	}

	/** Begins an operation that does not block: a call of one of the methods below. */
	Request begin(Consumer<Collectives> call) {
		Collectives beginning = new Collectives(comm, engine, Mode.BEGIN);
		call.accept(beginning);
		Request request = new Request(comm);
		if (beginning.begun != null) {
			beginning.begun.start();
			request.begin(beginning.begun);
		} else {
			request.begin(background().start(() -> call.accept(new Collectives(comm, null, Mode.BACKGROUND))));
		}
		return request;
	}

	private synchronized Background background() {
		if (background == null)
			background = new Background();
		return background;
	}

	/** True: the operation is executed, or, if it is to be begun only, the caller goes on. False: it is to be done by messages. */
	private boolean byEngine(Supplier<Operation> maker) {
		Operation made = engine == null ? null : maker.get();
		if (mode == Mode.BEGIN)
			begun = made;
		else if (made != null)
			made.run();
		return mode == Mode.BEGIN || made != null;
	}

	private int tag(int operation) {
		return mode == Mode.BACKGROUND ? operation + IN_BACKGROUND : operation;
	}

	private void send(String operation, Object buf, int offset, int count, Datatype type, int to, int tag) {
		comm.send(operation, false, buf, offset, count, type, to, tag(tag), context);
	}

	private Status recv(String operation, Object buf, int offset, int count, Datatype type, int from, int tag) {
		return comm.recv(operation, buf, offset, count, type, from, tag(tag), context);
	}

	private Request isend(String operation, Object buf, int offset, int count, Datatype type, int to, int tag) {
		Request request = new Request(comm);
		comm.startSend(request, operation, false, buf, offset, count, type, to, tag(tag), context);
		return request;
	}

	private Request irecv(String operation, Object buf, int offset, int count, Datatype type, int from, int tag) {
		Request request = new Request(comm);
		comm.startRecv(request, operation, buf, offset, count, type, from, tag(tag), context);
		return request;
	}

	/** That of a communicator whose members are these, for a call of which rank is the own number there; null: not a member. Collective. */
	Engine divided(int[] members) {
		if (engine == null)
			return null;
		int colour = -1;
		int key = 0;
		if (members != null) {
			colour = comm.group.rankOf(members[0]);
			for (int i = 0; i < members.length; i++)
				key = members[i] == Job.rank() ? i : key;
		}
		return engine.split(colour, key, members == null ? 0 : members.length);
	}

	/** Blocks until what a thread of the communicator does is done. */
	synchronized void drain() {
		if (background != null)
			background.drain();
	}

	void free() {
		if (engine != null)
			engine.free();
	}

	/** Dissemination: in round i each notifies the rank 2^i further on. */
	void barrier() {
		if (byEngine(() -> engine.barrier()))
			return;
		byte[] nothing = new byte[0];
		for (int step = 1; step < size; step <<= 1) {
			Request sent = isend("Barrier", nothing, 0, 0, MPI.BYTE, (rank + step) % size, BARRIER);
			recv("Barrier", nothing, 0, 0, MPI.BYTE, (rank - step + size) % size, BARRIER);
			sent.Wait();
		}
	}

	/** A binomial tree. */
	void bcast(Object buf, int offset, int count, Datatype type, int root) {
		verify("Bcast", buf, offset, count, type);
		if (byEngine(() -> engine.bcast(mode == Mode.BLOCKING, type.elementsOf("Bcast", buf, count), offset, count, type, rank == root, root)))
			return;
		int virtual = (rank - root + size) % size;
		int step = 1;
		while (step < size && (virtual & step) == 0)
			step <<= 1;
		MPIException failed = null;
		if (virtual != 0)
			failed = received(null, "Bcast", buf, offset, count, type, (virtual - step + root) % size, BCAST);
		for (step >>= 1; step > 0; step >>= 1)
			if (virtual + step < size)
				send("Bcast", buf, offset, count, type, (virtual + step + root) % size, BCAST);
		if (failed != null)
			throw failed;
	}

	private static void verify(String operation, Object buf, int offset, int count, Datatype type) {
		Datatype.check(operation, type);
		type.checkRange(operation, type.elementsOf(operation, buf, count), offset, count);
	}

	/** The buffer of a part for each rank as elementsOf() has it. */
	private Object verified(String operation, Object buf, int offset, Parts parts, Datatype type) {
		Datatype.check(operation, type);
		int most = parts.isEven() ? size * parts.count(0) : 0;
		for (int i = 0; i < size && !parts.isEven(); i++)
			most = Math.max(most, parts.count(i));
		Object elements = type.elementsOf(operation, buf, most);
		if (parts.isEven())
			type.checkRange(operation, elements, offset, parts.count(0) < 0 ? parts.count(0) : most);
		else
			for (int i = 0; i < size; i++)
				type.checkRange(operation, elements, parts.begin(offset, i, type), parts.count(i));
		return elements;
	}

	/** A message must be as long as the receiver expects. */
	private static void same(String operation, int count, Datatype type, Status status) {
		int came = status.Get_elements(type);
		if (came != count * type.size)
			throw Errors.of(operation + ": rank " + status.source + " sent " + came + " elements, this process expects " + count * type.size
					+ ": name the same count everywhere");
	}

	/** Receives one of several messages. The first error of all is returned and not thrown: other processes wait for what is still to be done. */
	private MPIException received(MPIException before, String operation, Object buf, int offset, int count, Datatype type, int from, int tag) {
		try {
			same(operation, count, type, recv(operation, buf, offset, count, type, from, tag));
			return before;
		} catch (MPIException e) {
			return before == null ? e : before;
		}
	}

	/** Root's own part goes from buffer to buffer. */
	private void own(String operation, Object from, int at, int count, Datatype sent, Object to, int where, int room, Datatype received) {
		verify(operation, from, at, count, sent);
		verify(operation, to, where, room, received);
		int elements = count * sent.size;
		if (sent.kind != received.kind || elements > room * received.size)
			throw Errors.of(operation + ": " + elements + " elements of " + sent.name() + " do not fit in " + room + " of " + received.name()
					+ ": name matching types and counts");
		if (elements == 0)
			return;
		Object source = sent.elementsOf(operation, from, count);
		Object target = received.elementsOf(operation, to, room);
		if (sent.dense && !Datatype.isBuffer(source))
			received.copy(false, target, where, 0, elements, source, at);
		else if (received.dense && !Datatype.isBuffer(target))
			sent.copy(true, source, at, 0, elements, target, where);
		else
			received.copy(false, target, where, 0, elements, sent.pack(source, at, count), 0);
	}

	void gather(Object sendbuf, int sendoffset, int sendcount, Datatype sendtype, Object recvbuf, int recvoffset, Parts parts, Datatype recvtype, int root) {
		verify("Gather", sendbuf, sendoffset, sendcount, sendtype);
		boolean gets = rank == root;
		Object to = gets ? verified("Gather", recvbuf, recvoffset, parts, recvtype) : null;
		if (byEngine(()
							 -> engine.gather(mode == Mode.BLOCKING, sendtype.elementsOf("Gather", sendbuf, sendcount), sendoffset, sendcount, sendtype, to,
									 recvoffset, parts, recvtype, gets, root)))
			return;
		if (!gets) {
			send("Gather", sendbuf, sendoffset, sendcount, sendtype, root, GATHER);
			return;
		}
		own("Gather", sendbuf, sendoffset, sendcount, sendtype, recvbuf, parts.begin(recvoffset, root, recvtype), parts.count(root), recvtype);
		MPIException failed = null;
		for (int from = 0; from < size; from++)
			if (from != root)
				failed = received(failed, "Gather", recvbuf, parts.begin(recvoffset, from, recvtype), parts.count(from), recvtype, from, GATHER);
		if (failed != null)
			throw failed;
	}

	void scatter(Object sendbuf, int sendoffset, Parts parts, Datatype sendtype, Object recvbuf, int recvoffset, int recvcount, Datatype recvtype, int root) {
		verify("Scatter", recvbuf, recvoffset, recvcount, recvtype);
		boolean has = rank == root;
		Object from = has ? verified("Scatter", sendbuf, sendoffset, parts, sendtype) : null;
		if (byEngine(()
							 -> engine.scatter(mode == Mode.BLOCKING, from, sendoffset, parts, sendtype, recvtype.elementsOf("Scatter", recvbuf, recvcount),
									 recvoffset, recvcount, recvtype, has, root)))
			return;
		if (!has) {
			same("Scatter", recvcount, recvtype, recv("Scatter", recvbuf, recvoffset, recvcount, recvtype, root, SCATTER));
			return;
		}
		for (int to = 0; to < size; to++)
			if (to != root)
				send("Scatter", sendbuf, parts.begin(sendoffset, to, sendtype), parts.count(to), sendtype, to, SCATTER);
		own("Scatter", sendbuf, parts.begin(sendoffset, root, sendtype), parts.count(root), sendtype, recvbuf, recvoffset, recvcount, recvtype);
	}

	void allgather(Object sendbuf, int sendoffset, int sendcount, Datatype sendtype, Object recvbuf, int recvoffset, int recvcount, Datatype recvtype) {
		allgather(sendbuf, sendoffset, sendcount, sendtype, recvbuf, recvoffset, Parts.even(recvcount), recvtype);
	}

	void allgather(Object sendbuf, int sendoffset, int sendcount, Datatype sendtype, Object recvbuf, int recvoffset, Parts parts, Datatype recvtype) {
		verify("Allgather", sendbuf, sendoffset, sendcount, sendtype);
		Object to = verified("Allgather", recvbuf, recvoffset, parts, recvtype);
		if (byEngine(()
							 -> engine.gather(mode == Mode.BLOCKING, sendtype.elementsOf("Allgather", sendbuf, sendcount), sendoffset, sendcount, sendtype, to,
									 recvoffset, parts, recvtype, true, -1)))
			return;
		exchange("Allgather", ALLGATHER, sendbuf, sendoffset, Parts.same(sendcount), sendtype, recvbuf, recvoffset, parts, recvtype);
	}

	void alltoall(Object sendbuf, int sendoffset, Parts sent, Datatype sendtype, Object recvbuf, int recvoffset, Parts received, Datatype recvtype) {
		Object out = verified("Alltoall", sendbuf, sendoffset, sent, sendtype);
		Object in = verified("Alltoall", recvbuf, recvoffset, received, recvtype);
		if (byEngine(() -> engine.alltoall(mode == Mode.BLOCKING, out, sendoffset, sent, sendtype, in, recvoffset, received, recvtype)))
			return;
		exchange("Alltoall", ALLTOALL, sendbuf, sendoffset, sent, sendtype, recvbuf, recvoffset, received, recvtype);
	}

	private static boolean isLong(Parts parts, int of, Datatype type) {
		return (long) parts.count(of) * type.size * type.unitBytes() > MOST_AT_ONCE;
	}

	/** Each process sends a part to each and receives one from each. In the rounds for long parts a process has another partner each time, and once none. */
	private void exchange(String operation, int tag, Object sendbuf, int sendoffset, Parts sent, Datatype sendtype, Object recvbuf, int recvoffset,
			Parts received, Datatype recvtype) {
		Request[] requests = new Request[2 * size];
		for (int i = 1; i < size; i++) {
			int from = (rank - i + size) % size;
			if (!isLong(received, from, recvtype))
				requests[i] = irecv(operation, recvbuf, received.begin(recvoffset, from, recvtype), received.count(from), recvtype, from, tag);
		}
		for (int i = 1; i < size; i++) {
			int to = (rank + i) % size;
			if (!isLong(sent, to, sendtype))
				requests[size + i] = isend(operation, sendbuf, sent.begin(sendoffset, to, sendtype), sent.count(to), sendtype, to, tag);
		}
		own(operation, sendbuf, sent.begin(sendoffset, rank, sendtype), sent.count(rank), sendtype, recvbuf, received.begin(recvoffset, rank, recvtype),
				received.count(rank), recvtype);
		MPIException failed = null;
		for (int round = 0; round < size; round++) {
			int partner = (round - rank + size) % size;
			if (partner == rank)
				continue;
			Request out = null;
			if (isLong(sent, partner, sendtype))
				out = isend(operation, sendbuf, sent.begin(sendoffset, partner, sendtype), sent.count(partner), sendtype, partner, tag);
			if (isLong(received, partner, recvtype))
				failed = received(failed, operation, recvbuf, received.begin(recvoffset, partner, recvtype), received.count(partner), recvtype, partner, tag);
			if (out != null)
				out.Wait();
		}
		Request.Waitall(requests);
		if (failed != null)
			throw failed;
	}

	/** The highest number of all processes. */
	void highest(long[] number) {
		allreduce(number.clone(), 0, number, 0, 1, MPI.LONG, MPI.MAX);
	}

	private static void checkOperands(String operation, Object buf, int offset, int count, Datatype type, Op op) {
		Datatype.check(operation, type);
		Op.check(operation, op, type);
		verify(operation, buf, offset, count, type);
	}

	private static Object operands(String operation, Object buf, int offset, int count, Datatype type) {
		return type.pack(type.elementsOf(operation, buf, count), offset, count);
	}

	/** By the library: true, or nothing was done. */
	private boolean reduced(
			String name, int kind, Object sendbuf, int sendoffset, Object recvbuf, int recvoffset, int count, Datatype type, Op op, boolean gets, int root) {
		checkOperands(name, sendbuf, sendoffset, count, type, op);
		return byEngine(()
								-> engine.reduce(mode == Mode.BLOCKING, name, kind, type.elementsOf(name, sendbuf, count), sendoffset,
										gets ? type.elementsOf(name, recvbuf, count) : null, recvoffset, count, type, op, gets, root));
	}

	/** A binomial tree that keeps the order of ranks. The result at the root of the tree; elsewhere null. */
	private Object combine(String operation, Object mine, int count, Datatype type, Op op, int root) {
		int elements = count * type.size;
		Datatype basic = Messages.basic(type);
		Object result = mine;
		Object other = size > 1 ? Kinds.array(type.kind, elements) : null;
		int virtual = (rank - root + size) % size;
		for (int step = 1; step < size; step <<= 1) {
			if ((virtual & step) != 0) {
				send(operation, result, 0, elements, basic, (virtual - step + root) % size, REDUCE);
				return null;
			}
			if (virtual + step < size) {
				same(operation, elements, basic, recv(operation, other, 0, elements, basic, (virtual + step + root) % size, REDUCE));
				op.combine(result, other, count, type);
				Object free = result;
				result = other;
				other = free;
			}
		}
		return result;
	}

	/** Only a commutative operation may begin with another rank than 0. */
	void reduce(Object sendbuf, int sendoffset, Object recvbuf, int recvoffset, int count, Datatype type, Op op, int root) {
		if (rank == root)
			verify("Reduce", recvbuf, recvoffset, count, type);
		if (reduced("Reduce", Communicator.REDUCE, sendbuf, sendoffset, recvbuf, recvoffset, count, type, op, rank == root, root))
			return;
		Object mine = operands("Reduce", sendbuf, sendoffset, count, type);
		int top = op.commutes() ? root : 0;
		Object result = combine("Reduce", mine, count, type, op, top);
		int elements = count * type.size;
		Datatype basic = Messages.basic(type);
		if (top != root && rank == top)
			send("Reduce", result, 0, elements, basic, root, REDUCE);
		if (top != root && rank == root) {
			result = Kinds.array(type.kind, elements);
			recv("Reduce", result, 0, elements, basic, top, REDUCE);
		}
		if (rank == root)
			type.copy(false, type.elementsOf("Reduce", recvbuf, count), recvoffset, 0, elements, result, 0);
	}

	void allreduce(Object sendbuf, int sendoffset, Object recvbuf, int recvoffset, int count, Datatype type, Op op) {
		verify("Allreduce", recvbuf, recvoffset, count, type);
		if (reduced("Allreduce", Communicator.ALLREDUCE, sendbuf, sendoffset, recvbuf, recvoffset, count, type, op, true, 0))
			return;
		Object result = combine("Allreduce", operands("Allreduce", sendbuf, sendoffset, count, type), count, type, op, 0);
		int elements = count * type.size;
		if (result == null)
			result = Kinds.array(type.kind, elements);
		bcast(result, 0, elements, Messages.basic(type), 0);
		type.copy(false, type.elementsOf("Allreduce", recvbuf, count), recvoffset, 0, elements, result, 0);
	}

	void reduceScatter(Object sendbuf, int sendoffset, Object recvbuf, int recvoffset, int[] counts, Datatype type, Op op) {
		int total = 0;
		int[] begin = new int[size];
		for (int i = 0; i < size; i++) {
			begin[i] = total;
			total = Math.addExact(total, counts[i]);
		}
		verify("Reduce_scatter", recvbuf, recvoffset, counts[rank], type);
		checkOperands("Reduce_scatter", sendbuf, sendoffset, total, type, op);
		int elements = total;
		if (byEngine(()
							 -> engine.reduceScatter(mode == Mode.BLOCKING, type.elementsOf("Reduce_scatter", sendbuf, elements), sendoffset,
									 type.elementsOf("Reduce_scatter", recvbuf, counts[rank]), recvoffset, counts, elements, counts[rank], type, op)))
			return;
		Object result = combine("Reduce_scatter", operands("Reduce_scatter", sendbuf, sendoffset, total, type), total, type, op, 0);
		Datatype basic = Messages.basic(type);
		int[] lengths = new int[size];
		for (int i = 0; i < size; i++) {
			lengths[i] = counts[i] * type.size;
			begin[i] *= type.size;
		}
		Object part = Kinds.array(type.kind, lengths[rank]);
		scatter(result, 0, Parts.of(lengths, begin), basic, part, 0, lengths[rank], basic, 0);
		type.copy(false, type.elementsOf("Reduce_scatter", recvbuf, counts[rank]), recvoffset, 0, lengths[rank], part, 0);
	}

	/** A chain: each gets the result of the ranks before it. */
	void scan(Object sendbuf, int sendoffset, Object recvbuf, int recvoffset, int count, Datatype type, Op op) {
		verify("Scan", recvbuf, recvoffset, count, type);
		if (reduced("Scan", Communicator.SCAN, sendbuf, sendoffset, recvbuf, recvoffset, count, type, op, true, 0))
			return;
		Object result = operands("Scan", sendbuf, sendoffset, count, type);
		int elements = count * type.size;
		Datatype basic = Messages.basic(type);
		if (rank > 0) {
			Object before = Kinds.array(type.kind, elements);
			same("Scan", elements, basic, recv("Scan", before, 0, elements, basic, rank - 1, SCAN));
			op.combine(before, result, count, type);
		}
		if (rank < size - 1)
			send("Scan", result, 0, elements, basic, rank + 1, SCAN);
		type.copy(false, type.elementsOf("Scan", recvbuf, count), recvoffset, 0, elements, result, 0);
	}
}
