// SPDX-License-Identifier: MIT
package ibvbench;

import mpi.Comm;
import mpi.Datatype;
import mpi.MPI;
import mpi.Request;

/** The mpi.* API of MPJ Express, on any device: messages between two ranks, as {@link Messages} has them; MpiOps has the rest. */
final class MpiLayer implements Layer {
	private static final int TAG = 1;
	private static final int ANSWER_TAG = 2;

	private final Comm world;
	private final int rank;
	private final int size;
	private final MpiOps ops;
	private final String kind;
	private final byte[] answer = {};
	private Object out;
	private Object in;
	private Object[] outs;
	private Object[] ins;
	private int count;
	private Datatype type;
	private Request[] requests;

	MpiLayer(String message) {
		kind = message;
		world = MPI.COMM_WORLD;
		rank = world.Rank();
		size = world.Size();
		if (size < 2)
			throw new IllegalStateException("the job has one rank; this needs two or more");
		ops = new MpiOps();
	}

	@Override
	public int rank() {
		return rank;
	}

	@Override
	public int size() {
		return size;
	}

	@Override
	public boolean offers(Op op) {
		return true;
	}

	@Override
	public void perform(Command command) throws Exception {
		ops.perform(command);
	}

	@Override
	public void prepare(int bytes, int window) {
		outs = new Object[window];
		ins = new Object[window];
		for (int i = 0; i < window; i++) {
			outs[i] = Messages.buffer(kind, bytes);
			ins[i] = Messages.buffer(kind, bytes);
		}
		count = Messages.count(kind, bytes);
		type = Messages.type(kind, bytes);
		out = outs[0];
		in = ins[0];
		requests = new Request[window];
	}

	@Override
	public void send() {
		world.Send(out, 0, count, type, 1 - rank, TAG);
	}

	@Override
	public void recv() {
		world.Recv(in, 0, count, type, 1 - rank, TAG);
	}

	@Override
	public void sendMany() {
		for (int i = 0; i < requests.length; i++)
			requests[i] = world.Isend(outs[i], 0, count, type, 1 - rank, TAG);
		MpiOps.finish(requests);
		world.Recv(answer, 0, 0, MPI.BYTE, 1 - rank, ANSWER_TAG);
	}

	@Override
	public void recvMany() {
		for (int i = 0; i < requests.length; i++)
			requests[i] = world.Irecv(ins[i], 0, count, type, 1 - rank, TAG);
		MpiOps.finish(requests);
		world.Send(answer, 0, 0, MPI.BYTE, 1 - rank, ANSWER_TAG);
	}

	@Override
	public void broadcast(byte[] text) {
		for (int other = 1; other < size && rank == 0; other++)
			world.Send(text, 0, text.length, MPI.BYTE, other, TAG);
		if (rank != 0)
			world.Recv(text, 0, text.length, MPI.BYTE, 0, TAG);
	}

	@Override
	public void close() {
		MPI.Finalize();
	}
}
