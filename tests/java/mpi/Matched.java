// SPDX-License-Identifier: MIT
package mpitest;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.IntBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicIntegerArray;
import mpi.Datatype;
import mpi.Intracomm;
import mpi.MPI;
import mpi.MPIException;
import mpi.Message;
import mpi.Request;
import mpi.Status;

/** The matched probe of our package mpi (MPI 3.1, sections 3.8.2 and 3.8.3). Any number of ranks; each sends to the next one. */
public final class Matched {
	private static final int SEED = 4711;
	private static final int LARGE = 60_000;

	private static Intracomm comm;
	private static int rank;
	private static int size;

	private Matched() {}

	public static void main(String[] args) throws Exception {
		MPI.Init(args);
		comm = MPI.COMM_WORLD;
		rank = comm.Rank();
		size = comm.Size();
		noProcess();
		everyKind();
		derivedTypesAndBuffers();
		isReceivedByNobodyElse();
		isReceivedOnce();
		refusedArgumentsLeaveIt();
		tooLong();
		synchronousSend();
		isNotCancelled();
		outlivesItsCommunicator();
		for (int threads : new int[] {2, 4}) {
			threads(threads, true);
			threads(threads, false);
		}
		MPI.Finalize();
		System.out.println("rank " + rank + ": matched messages are received once");
	}

	private static int right() {
		return (rank + 1) % size;
	}

	private static int left() {
		return (rank + size - 1) % size;
	}

	private static Request isend(Kind kind, int count, int tag) {
		return comm.Isend(kind.filled(count, 0, count, SEED + rank), 0, count, kind.type(), right(), tag);
	}

	/** Improbe until a message is there. */
	private static Message found(int source, int tag) {
		Message message;
		while ((message = comm.Improbe(source, tag)) == null) {
			Thread.yield();
		}
		return message;
	}

	private static void noProcess() {
		int[] data = {1, 2};
		Check.that(comm.Mprobe(MPI.PROC_NULL, 5) == MPI.MESSAGE_NO_PROC, "Mprobe of PROC_NULL");
		Check.that(comm.Improbe(MPI.PROC_NULL, MPI.ANY_TAG) == MPI.MESSAGE_NO_PROC, "Improbe of PROC_NULL");
		Message none = MPI.MESSAGE_NO_PROC;
		for (Status status :
				new Status[] {none.Status(), none.Mrecv(data, 0, 2, MPI.INT), none.Imrecv(data, 0, 2, MPI.INT).Wait(), none.Mrecv(null, 0, 0, MPI.INT)}) {
			Check.eq(MPI.PROC_NULL, status.source, "source of PROC_NULL");
			Check.eq(MPI.ANY_TAG, status.tag, "tag of PROC_NULL");
			Check.eq(0, status.Get_count(MPI.INT), "count of PROC_NULL");
		}
		Check.that(!none.Is_null(), "MESSAGE_NO_PROC is null");
		Check.same(new int[] {1, 2}, data, "data of PROC_NULL");
		Check.that(comm.Improbe(left(), 5) == null, "Improbe found a message that nobody has sent");
		refused("source is " + size, () -> comm.Mprobe(size, 5));
		refused("source is -7", () -> comm.Improbe(-7, 5));
	}

	/** Any kind, any protocol, exact and by wildcards, blocking and not. */
	private static void everyKind() {
		int tag = 100; // each message another one: the sender may be ahead
		for (Kind kind : Kind.values()) {
			for (int count : new int[] {0, 5, 2000, kind == Kind.OBJECT ? 20 : LARGE}) {
				Request send = isend(kind, count, ++tag);
				receive(comm.Mprobe(left(), tag), kind, count, tag, false);
				send.Wait();
				send = isend(kind, count, ++tag);
				receive(found(MPI.ANY_SOURCE, MPI.ANY_TAG), kind, count, tag, true);
				send.Wait();
			}
		}
	}

	private static void receive(Message message, Kind kind, int count, int tag, boolean started) {
		Statuses.check(message.Status(), left(), tag, kind, count, "matched probe");
		Check.that(comm.Iprobe(left(), tag) == null, "a matched message was found again");
		Check.that(!message.Is_null(), "a message is null before it is received");
		Object in = kind.blank(count + 3, SEED + left());
		Status status = started ? message.Imrecv(in, 1, count + 1, kind.type()).Wait() : message.Mrecv(in, 1, count + 1, kind.type());
		Statuses.check(status, left(), tag, kind, count, "receive of a matched message");
		kind.check(in, 1, count, SEED + left(), "receive of a matched message");
		Check.that(message.Is_null(), "a message is not null after it was received");
	}

	private static void derivedTypesAndBuffers() {
		Datatype every = Datatype.Vector(3, 1, 2, MPI.INT);
		every.Commit();
		Request send = comm.Isend(new int[] {rank, 7, 8}, 0, 3, MPI.INT, right(), 43);
		int[] in = {-1, -1, -1, -1, -1, -1};
		Message message = comm.Mprobe(left(), 43);
		Check.eq(1, message.Status().Get_count(every), "count of a derived type");
		Check.eq(1, message.Mrecv(in, 1, 1, every).Get_count(every), "count of a derived type that was received");
		Check.same(new int[] {-1, left(), -1, 7, -1, 8}, in, "a matched message of a derived type");
		send.Wait();
		for (IntBuffer buffer : new IntBuffer[] {IntBuffer.allocate(5), ByteBuffer.allocateDirect(20).order(ByteOrder.nativeOrder()).asIntBuffer()}) {
			send = comm.Isend(new int[] {rank, 7, 8}, 0, 3, MPI.INT, right(), 44);
			Check.eq(3, comm.Mprobe(left(), 44).Mrecv(buffer, 1, 4, MPI.INT).Get_count(MPI.INT), "count in a buffer");
			Check.that(buffer.get(0) == 0 && buffer.get(1) == left() && buffer.get(3) == 8 && buffer.get(4) == 0, "a matched message in a buffer");
			send.Wait();
		}
	}

	/** Later probes and receives, and receives that were posted before, get other messages; the order in which matched messages are received is free. */
	private static void isReceivedByNobodyElse() {
		int each = 4;
		Request[] sends = new Request[each];
		for (int i = 0; i < each; i++) {
			int[] out = new int[i % 2 == 0 ? 1 : LARGE];
			out[0] = rank * 100 + i;
			sends[i] = comm.Isend(out, 0, out.length, MPI.INT, right(), 45);
		}
		Message first = comm.Mprobe(left(), 45);
		Message second = found(left(), MPI.ANY_TAG);
		int[] in = new int[LARGE];
		Request posted = comm.Irecv(in, 0, LARGE, MPI.INT, MPI.ANY_SOURCE, 45);
		posted.Wait();
		Check.eq(left() * 100 + 2, in[0], "what a receive behind two matched messages gets");
		comm.Recv(in, 0, LARGE, MPI.INT, left(), 45);
		Check.eq(left() * 100 + 3, in[0], "what the next receive gets");
		Check.eq(LARGE, second.Mrecv(in, 0, LARGE, MPI.INT).Get_count(MPI.INT), "count of the second message");
		Check.eq(left() * 100 + 1, in[0], "the second message");
		first.Mrecv(in, 0, LARGE, MPI.INT);
		Check.eq(left() * 100, in[0], "the first message");
		Request.Waitall(sends);
	}

	private static void isReceivedOnce() {
		Request send = isend(Kind.INT, 3, 46);
		Message message = comm.Mprobe(left(), 46);
		message.Mrecv(new int[3], 0, 3, MPI.INT);
		refused("has been received", () -> message.Mrecv(new int[3], 0, 3, MPI.INT));
		refused("has been received", () -> message.Imrecv(new int[3], 0, 3, MPI.INT));
		send.Wait();
	}

	private static void refusedArgumentsLeaveIt() {
		Request send = isend(Kind.INT, 3, 47);
		Message message = comm.Mprobe(left(), 47);
		int[] in = new int[3];
		refused("the buffer is null", () -> message.Mrecv(null, 0, 3, MPI.INT));
		refused("offset 1, count 3", () -> message.Imrecv(in, 1, 3, MPI.INT));
		refused("-1", () -> message.Mrecv(in, 0, -1, MPI.INT));
		refused("the buffer is a int[]", () -> message.Mrecv(in, 0, 3, MPI.DOUBLE));
		refused("the datatype is null", () -> message.Imrecv(in, 0, 3, null));
		refused("not committed", () -> message.Imrecv(in, 0, 1, Datatype.Contiguous(2, MPI.INT)));
		message.Mrecv(in, 0, 3, MPI.INT);
		Kind.INT.check(in, 0, 3, SEED + left(), "a message after refused arguments");
		send.Wait();
	}

	/** An error: the message is gone, the buffer unchanged. */
	private static void tooLong() {
		for (int count : new int[] {5, 2000, LARGE}) {
			Request[] sends = {isend(Kind.INT, count, 48), isend(Kind.INT, count, 48), isend(Kind.INT, 1, 48)};
			int[] in = new int[4];
			Message blocking = comm.Mprobe(left(), 48);
			refused(String.valueOf(4L * count), () -> blocking.Mrecv(in, 0, 4, MPI.INT));
			Request started = comm.Mprobe(left(), 48).Imrecv(in, 0, 4, MPI.INT);
			refused(String.valueOf(4L * count), () -> started.Wait());
			Check.same(new int[4], in, "the buffer of a message that is too long");
			Check.that(blocking.Is_null(), "a message that was too long is still there");
			Check.eq(1, comm.Mprobe(left(), 48).Mrecv(in, 0, 4, MPI.INT).Get_count(MPI.INT), "the message behind");
			Request.Waitall(sends);
		}
	}

	/** A synchronous send is not complete before the receive begins. */
	private static void synchronousSend() {
		Request send = comm.Issend(new int[] {rank}, 0, 1, MPI.INT, right(), 49);
		Message message = comm.Mprobe(left(), 49);
		comm.Barrier();
		Check.that(send.Test() == null, "a synchronous send completed with the probe");
		comm.Barrier();
		int[] in = new int[1];
		message.Mrecv(in, 0, 1, MPI.INT);
		Check.eq(left(), in[0], "a message that was sent synchronously");
		send.Wait();
	}

	/** It has matched: Cancel comes too late. */
	private static void isNotCancelled() {
		for (int count : new int[] {5, LARGE}) {
			Request send = isend(Kind.INT, count, 50);
			int[] in = (int[]) Kind.INT.blank(count, SEED + left());
			Request receive = comm.Mprobe(left(), 50).Imrecv(in, 0, count, MPI.INT);
			receive.Cancel();
			Status status = receive.Wait();
			Check.that(!status.Test_cancelled(), "the receive of a matched message was cancelled");
			Kind.INT.check(in, 0, count, SEED + left(), "a message that was not cancelled");
			send.Wait();
		}
	}

	private static void outlivesItsCommunicator() {
		Intracomm brief = (Intracomm) comm.clone();
		Request send = brief.Isend(new int[] {rank}, 0, 1, MPI.INT, right(), 51);
		Message message = brief.Mprobe(left(), 51);
		brief.Free();
		refused("has been freed", () -> brief.Mprobe(left(), 51));
		int[] in = new int[1];
		Check.eq(left(), message.Mrecv(in, 0, 1, MPI.INT).source, "source of a message of a freed communicator");
		Check.eq(left(), in[0], "a message of a freed communicator");
		send.Wait();
	}

	/** Threads probe and receive from one source; each message has another length, its number and its contents. */
	private static void threads(int threads, boolean blocking) throws Exception {
		int count = 60 * threads;
		Request[] sends = new Request[count];
		for (int i = 0; i < count; i++) {
			int[] out = (int[]) Kind.INT.filled(length(i), 1, length(i) - 1, SEED + i);
			out[0] = i;
			sends[i] = comm.Isend(out, 0, out.length, MPI.INT, right(), 52);
		}
		AtomicInteger left = new AtomicInteger(count);
		AtomicIntegerArray seen = new AtomicIntegerArray(count);
		ExecutorService pool = Executors.newFixedThreadPool(threads);
		List<Future<?>> ends = new ArrayList<>();
		for (int t = 0; t < threads; t++) {
			ends.add(pool.submit(() -> {
				while (left.getAndDecrement() > 0) {
					receiveOne(blocking, seen);
				}
			}));
		}
		for (Future<?> end : ends) {
			try {
				end.get();
			} catch (ExecutionException e) {
				throw new IllegalStateException("a thread of rank " + rank, e.getCause());
			}
		}
		pool.shutdown();
		Request.Waitall(sends);
		for (int i = 0; i < count; i++) {
			Check.eq(1, seen.get(i), "how often message %d was received", i);
		}
		comm.Barrier();
		Check.that(comm.Improbe(MPI.ANY_SOURCE, MPI.ANY_TAG) == null, "a message is left over");
		comm.Barrier();
	}

	private static int length(int i) {
		return 1 + (i % 9 == 8 ? 20_000 + i : i * i % 1000);
	}

	private static void receiveOne(boolean blocking, AtomicIntegerArray seen) {
		Message message = blocking ? comm.Mprobe(left(), 52) : found(left(), 52);
		int[] in = new int[message.Status().Get_count(MPI.INT)];
		Status status = blocking ? message.Mrecv(in, 0, in.length, MPI.INT) : message.Imrecv(in, 0, in.length, MPI.INT).Wait();
		int i = in[0];
		Check.eq(length(i), status.Get_count(MPI.INT), "length of message %d", i);
		int[] want = (int[]) Kind.INT.filled(in.length, 1, in.length - 1, SEED + i);
		want[0] = i;
		Check.same(want, in, "message %d", i);
		seen.incrementAndGet(i);
	}

	private static void refused(String text, Runnable call) {
		try {
			call.run();
		} catch (MPIException e) {
			Check.that(e.getMessage().contains(text), "the text lacks \"%s\": %s", text, e.getMessage());
			return;
		}
		Check.fail("no exception with \"%s\"", text);
	}
}
