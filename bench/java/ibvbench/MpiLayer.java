// SPDX-License-Identifier: MIT
package ibvbench;

import mpi.Comm;
import mpi.MPI;
import mpi.Request;

/** The mpi.* API of MPJ Express with byte[] messages, on any device. */
final class MpiLayer implements Layer {
	private static final int TAG = 1;

	private final Comm world;
	private final int rank;
	private byte[] out;
	private byte[] in;
	private int bytes;
	private Request[] requests;

	MpiLayer() {
		world = MPI.COMM_WORLD;
		rank = world.Rank();
		if (world.Size() != 2)
			throw new IllegalStateException("the job has " + world.Size() + " ranks; this needs 2");
	}

	@Override
	public int rank() {
		return rank;
	}

	@Override
	public void prepare(int messageBytes, int window) {
		bytes = messageBytes;
		out = new byte[bytes];
		in = new byte[bytes];
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
			requests[i] = world.Isend(out, 0, bytes, MPI.BYTE, 1 - rank, TAG);
		finishAll();
		world.Recv(in, 0, 0, MPI.BYTE, 1 - rank, TAG);
	}

	@Override
	public void recvMany() {
		for (int i = 0; i < requests.length; i++)
			requests[i] = world.Irecv(in, 0, bytes, MPI.BYTE, 1 - rank, TAG);
		finishAll();
		world.Send(out, 0, 0, MPI.BYTE, 1 - rank, TAG);
	}

	private void finishAll() {
		for (Request request : requests)
			request.Wait();
	}

	@Override
	public void tell(byte[] text) {
		if (rank == 0)
			world.Send(text, 0, text.length, MPI.BYTE, 1, TAG);
		else
			world.Recv(text, 0, text.length, MPI.BYTE, 0, TAG);
	}

	@Override
	public void close() {
		MPI.Finalize();
	}
}
