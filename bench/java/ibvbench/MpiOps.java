// SPDX-License-Identifier: MIT
package ibvbench;

import java.util.concurrent.atomic.AtomicReference;
import mpi.Intracomm;
import mpi.MPI;
import mpi.Request;

/** What bench/c/mpi_layer.c does, in Java: everything beyond simple messages between two ranks. */
final class MpiOps {
	private static final int TAG = 1;
	private static final int ANSWER_TAG = 2;
	private static final int THREAD_TAG = 100;
	private static final int EXTRA_TAG = 1000;

	private final Intracomm world = MPI.COMM_WORLD;
	private final int rank = world.Rank();
	private final int size = world.Size();
	private Request[] extra;
	private byte[] out = new byte[0];
	private byte[] in = new byte[0];
	private double[] numbers = new double[0];
	private double[] sums = new double[0];

	static void finish(Request[] requests) {
		for (Request request : requests)
			request.Wait();
	}

	private void makeRoom(Command command) {
		int bytes = command.op.ofAll() ? Math.multiplyExact(command.bytes, size) : command.bytes;
		if (out.length < bytes) {
			out = new byte[bytes];
			in = new byte[bytes];
		}
		int count = command.bytes / Double.BYTES;
		if ((command.op == Op.REDUCE || command.op == Op.ALLREDUCE) && numbers.length < count) {
			numbers = new double[count];
			sums = new double[count];
		}
	}

	void perform(Command command) throws Exception {
		makeRoom(command);
		switch (command.op) {
		case BIBANDWIDTH:
			bothWays(command.iterations, command.bytes, command.param, 0);
			break;
		case EXCHANGE:
		case EXPOSED:
			bothWays(command.iterations, command.bytes, 1, command.workNs);
			break;
		case POSTED:
			posted(command);
			break;
		case UNEXPECTED:
			unexpected(command);
			break;
		case THREADS:
			threads(command);
			break;
		case PAIRS:
			pairs(command);
			break;
		case IDLE:
			idle(command);
			break;
		default:
			collective(command);
			break;
		}
	}

	private void bothWays(long iterations, int bytes, int window, long workNs) {
		Request[] requests = new Request[2 * window];
		for (long i = 0; i < iterations; i++) {
			for (int k = 0; k < window; k++)
				requests[k] = world.Irecv(in, 0, bytes, MPI.BYTE, 1 - rank, TAG);
			for (int k = window; k < 2 * window; k++)
				requests[k] = world.Isend(out, 0, bytes, MPI.BYTE, 1 - rank, TAG);
			Work.compute(workNs);
			finish(requests);
		}
	}

	/** Receives that nothing matches until CLEAR sends for them. */
	private void posted(Command command) {
		int count = command.param - 1;
		if (command.phase == Command.Phase.SETUP) {
			extra = new Request[count];
			for (int i = 0; i < count; i++)
				extra[i] = world.Irecv(in, 0, 0, MPI.BYTE, 1 - rank, EXTRA_TAG + i);
			return;
		}
		for (int i = 0; i < count; i++)
			world.Send(out, 0, 0, MPI.BYTE, 1 - rank, EXTRA_TAG + i);
		finish(extra);
	}

	/** Messages that nobody receives until CLEAR does. */
	private void unexpected(Command command) {
		int count = command.param - 1;
		if (command.phase == Command.Phase.SETUP) {
			extra = new Request[count];
			for (int i = 0; i < count; i++)
				extra[i] = world.Isend(out, 0, command.bytes, MPI.BYTE, 1 - rank, EXTRA_TAG + i);
			return;
		}
		for (int i = 0; i < count; i++)
			world.Recv(in, 0, command.bytes, MPI.BYTE, 1 - rank, EXTRA_TAG + i);
		finish(extra);
	}

	private void threads(Command command) throws Exception {
		Thread[] threads = new Thread[command.param];
		AtomicReference<Throwable> failure = new AtomicReference<>();
		for (int t = 0; t < threads.length; t++) {
			int tag = THREAD_TAG + t;
			threads[t] = new Thread(() -> pingPong(command, tag), "pingpong " + t);
			threads[t].setUncaughtExceptionHandler((thread, e) -> failure.set(e));
			threads[t].start();
		}
		for (Thread thread : threads)
			thread.join();
		if (failure.get() != null)
			throw new IllegalStateException("a thread failed", failure.get());
	}

	private void pingPong(Command command, int tag) {
		byte[] mine = new byte[command.bytes];
		byte[] theirs = new byte[command.bytes];
		for (long i = 0; i < command.iterations; i++) {
			if (rank == 0)
				world.Send(mine, 0, mine.length, MPI.BYTE, 1, tag);
			world.Recv(theirs, 0, theirs.length, MPI.BYTE, 1 - rank, tag);
			if (rank == 1)
				world.Send(mine, 0, mine.length, MPI.BYTE, 0, tag);
		}
	}

	private void pairs(Command command) {
		int other = rank ^ 1;
		Request[] requests = new Request[command.param];
		for (long i = 0; i < command.iterations && other < size; i++) {
			boolean sends = rank % 2 == 0;
			for (int k = 0; k < requests.length; k++)
				requests[k] = sends ? world.Isend(out, 0, command.bytes, MPI.BYTE, other, TAG) : world.Irecv(in, 0, command.bytes, MPI.BYTE, other, TAG);
			finish(requests);
			if (sends)
				world.Recv(in, 0, 0, MPI.BYTE, other, ANSWER_TAG);
			else
				world.Send(out, 0, 0, MPI.BYTE, other, ANSWER_TAG);
		}
	}

	private void idle(Command command) throws InterruptedException {
		if (rank != 0) {
			world.Recv(in, 0, 0, MPI.BYTE, 0, TAG);
			return;
		}
		Thread.sleep(command.param);
		for (int other = 1; other < size; other++)
			world.Send(out, 0, 0, MPI.BYTE, other, TAG);
	}

	private void collective(Command command) {
		for (long i = 0; i < command.iterations; i++)
			collective(command.op, command.bytes, (int) (i % size));
	}

	private void collective(Op op, int bytes, int root) {
		int count = bytes / Double.BYTES;
		switch (op) {
		case BARRIER:
			world.Barrier();
			break;
		case BCAST:
			world.Bcast(out, 0, bytes, MPI.BYTE, root);
			break;
		case REDUCE:
			world.Reduce(numbers, 0, sums, 0, count, MPI.DOUBLE, MPI.SUM, root);
			break;
		case ALLREDUCE:
			world.Allreduce(numbers, 0, sums, 0, count, MPI.DOUBLE, MPI.SUM);
			break;
		case ALLGATHER:
			world.Allgather(out, 0, bytes, MPI.BYTE, in, 0, bytes, MPI.BYTE);
			break;
		case ALLTOALL:
			world.Alltoall(out, 0, bytes, MPI.BYTE, in, 0, bytes, MPI.BYTE);
			break;
		default:
			throw new UnsupportedOperationException(op.toString());
		}
	}
}
