// SPDX-License-Identifier: MIT
package ibvbench;

import mpi.Comm;
import mpi.MPI;
import mpi.Request;

/** The mpi.* API of MPJ Express with byte[] messages, on any device: messages between two ranks; MpiOps has the rest. */
final class MpiLayer implements Layer {
	private static final int TAG = 1;
	private static final int ANSWER_TAG = 2;

	private final Comm world;
	private final int rank;
	private final int size;
	private final MpiOps ops;
	private byte[] out;
	private byte[] in;
	private byte[][] outs;
	private byte[][] ins;
	private int bytes;
	private Request[] requests;

	MpiLayer() {
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
	public void prepare(int messageBytes, int window) {
		bytes = messageBytes;
		outs = new byte[window][bytes];
		ins = new byte[window][bytes];
		out = outs[0];
		in = ins[0];
		requests = new Request[window];
	}

	@Override
	public void send() {
		world.Send(out, 0, bytes, MPI.BYTE, 1 - rank, TAG);
	}

	@Override
	public void recv() {
		world.Recv(in, 0, bytes, MPI.BYTE, 1 - rank, TAG);
	}

	@Override
	public void sendMany() {
		for (int i = 0; i < requests.length; i++)
			requests[i] = world.Isend(outs[i], 0, bytes, MPI.BYTE, 1 - rank, TAG);
		MpiOps.finish(requests);
		world.Recv(in, 0, 0, MPI.BYTE, 1 - rank, ANSWER_TAG);
	}

	@Override
	public void recvMany() {
		for (int i = 0; i < requests.length; i++)
			requests[i] = world.Irecv(ins[i], 0, bytes, MPI.BYTE, 1 - rank, TAG);
		MpiOps.finish(requests);
		world.Send(out, 0, 0, MPI.BYTE, 1 - rank, ANSWER_TAG);
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
