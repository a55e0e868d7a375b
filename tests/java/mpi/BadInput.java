// SPDX-License-Identifier: MIT
package mpitest;

import java.util.LinkedHashMap;
import java.util.Map;
import mpi.Datatype;
import mpi.Intracomm;
import mpi.MPI;
import mpi.MPIException;
import mpi.Op;

/** Each method of our package mpi that takes a buffer gets each kind of bad input: an exception names the value and the remedy, and the job goes on. Any number of ranks. */
public final class BadInput {
	/** A call whose buffer, offset, count, datatype and peer or root are to be looked at. */
	private interface Call {
		void with(Intracomm comm, Object buf, int offset, int count, Datatype type, int peer);
	}

	private static final Map<String, Call> MESSAGES = new LinkedHashMap<>();
	private static final Map<String, Call> ROOTED = new LinkedHashMap<>();
	private static final Map<String, Call> COLLECTIVE = new LinkedHashMap<>();

	static {
		MESSAGES.put("Send", (c, b, o, n, t, p) -> c.Send(b, o, n, t, p, 1));
		MESSAGES.put("Ssend", (c, b, o, n, t, p) -> c.Ssend(b, o, n, t, p, 1));
		MESSAGES.put("Rsend", (c, b, o, n, t, p) -> c.Rsend(b, o, n, t, p, 1));
		MESSAGES.put("Bsend", (c, b, o, n, t, p) -> c.Bsend(b, o, n, t, p, 1));
		MESSAGES.put("Isend", (c, b, o, n, t, p) -> c.Isend(b, o, n, t, p, 1));
		MESSAGES.put("Issend", (c, b, o, n, t, p) -> c.Issend(b, o, n, t, p, 1));
		MESSAGES.put("Irsend", (c, b, o, n, t, p) -> c.Irsend(b, o, n, t, p, 1));
		MESSAGES.put("Ibsend", (c, b, o, n, t, p) -> c.Ibsend(b, o, n, t, p, 1));
		MESSAGES.put("Send_init", (c, b, o, n, t, p) -> c.Send_init(b, o, n, t, p, 1).Start());
		MESSAGES.put("Ssend_init", (c, b, o, n, t, p) -> c.Ssend_init(b, o, n, t, p, 1).Start());
		MESSAGES.put("Rsend_init", (c, b, o, n, t, p) -> c.Rsend_init(b, o, n, t, p, 1).Start());
		MESSAGES.put("Bsend_init", (c, b, o, n, t, p) -> c.Bsend_init(b, o, n, t, p, 1).Start());
		MESSAGES.put("Recv", (c, b, o, n, t, p) -> c.Recv(b, o, n, t, p, 1));
		MESSAGES.put("Irecv", (c, b, o, n, t, p) -> c.Irecv(b, o, n, t, p, 1));
		MESSAGES.put("Recv_init", (c, b, o, n, t, p) -> c.Recv_init(b, o, n, t, p, 1).Start());
		MESSAGES.put("Sendrecv", (c, b, o, n, t, p) -> c.Sendrecv(b, o, n, t, p, 1, new int[9], 0, 9, MPI.INT, p, 1));
		MESSAGES.put("Sendrecv_replace", (c, b, o, n, t, p) -> c.Sendrecv_replace(b, o, n, t, p, 1, p, 1));

		ROOTED.put("Bcast", (c, b, o, n, t, p) -> c.Bcast(b, o, n, t, p));
		ROOTED.put("Ibcast", (c, b, o, n, t, p) -> c.Ibcast(b, o, n, t, p).Wait());
		ROOTED.put("Gather", (c, b, o, n, t, p) -> c.Gather(b, o, n, t, new int[99], 0, n, MPI.INT, p));
		ROOTED.put("Igather", (c, b, o, n, t, p) -> c.Igather(b, o, n, t, new int[99], 0, n, MPI.INT, p).Wait());
		ROOTED.put("Gatherv", (c, b, o, n, t, p) -> c.Gatherv(b, o, n, t, new int[99], 0, each(c, n), ramp(c, n), MPI.INT, p));
		ROOTED.put("Igatherv", (c, b, o, n, t, p) -> c.Igatherv(b, o, n, t, new int[99], 0, each(c, n), ramp(c, n), MPI.INT, p).Wait());
		ROOTED.put("Scatter", (c, b, o, n, t, p) -> c.Scatter(new int[99], 0, n, MPI.INT, b, o, n, t, p));
		ROOTED.put("Iscatter", (c, b, o, n, t, p) -> c.Iscatter(new int[99], 0, n, MPI.INT, b, o, n, t, p).Wait());
		ROOTED.put("Scatterv", (c, b, o, n, t, p) -> c.Scatterv(new int[99], 0, each(c, n), ramp(c, n), MPI.INT, b, o, n, t, p));
		ROOTED.put("Iscatterv", (c, b, o, n, t, p) -> c.Iscatterv(new int[99], 0, each(c, n), ramp(c, n), MPI.INT, b, o, n, t, p).Wait());
		ROOTED.put("Reduce", (c, b, o, n, t, p) -> c.Reduce(b, o, new int[99], 0, n, t, MPI.MAX, p));
		ROOTED.put("Ireduce", (c, b, o, n, t, p) -> c.Ireduce(b, o, new int[99], 0, n, t, MPI.MAX, p).Wait());

		COLLECTIVE.put("Allgather", (c, b, o, n, t, p) -> c.Allgather(b, o, n, t, new int[99], 0, n, MPI.INT));
		COLLECTIVE.put("Iallgather", (c, b, o, n, t, p) -> c.Iallgather(b, o, n, t, new int[99], 0, n, MPI.INT).Wait());
		COLLECTIVE.put("Allgatherv", (c, b, o, n, t, p) -> c.Allgatherv(b, o, n, t, new int[99], 0, each(c, n), ramp(c, n), MPI.INT));
		COLLECTIVE.put("Iallgatherv", (c, b, o, n, t, p) -> c.Iallgatherv(b, o, n, t, new int[99], 0, each(c, n), ramp(c, n), MPI.INT).Wait());
		COLLECTIVE.put("Alltoall", (c, b, o, n, t, p) -> c.Alltoall(new int[99], 0, n, MPI.INT, b, o, n, t));
		COLLECTIVE.put("Ialltoall", (c, b, o, n, t, p) -> c.Ialltoall(new int[99], 0, n, MPI.INT, b, o, n, t).Wait());
		COLLECTIVE.put("Alltoallv", (c, b, o, n, t, p) -> c.Alltoallv(new int[99], 0, each(c, n), ramp(c, n), MPI.INT, b, o, each(c, n), each(c, 0), t));
		COLLECTIVE.put(
				"Ialltoallv", (c, b, o, n, t, p) -> c.Ialltoallv(new int[99], 0, each(c, n), ramp(c, n), MPI.INT, b, o, each(c, n), each(c, 0), t).Wait());
		COLLECTIVE.put("Allreduce", (c, b, o, n, t, p) -> c.Allreduce(b, o, new int[99], 0, n, t, MPI.MAX));
		COLLECTIVE.put("Iallreduce", (c, b, o, n, t, p) -> c.Iallreduce(b, o, new int[99], 0, n, t, MPI.MAX).Wait());
		COLLECTIVE.put("Scan", (c, b, o, n, t, p) -> c.Scan(b, o, new int[99], 0, n, t, MPI.MAX));
		COLLECTIVE.put("Iscan", (c, b, o, n, t, p) -> c.Iscan(b, o, new int[99], 0, n, t, MPI.MAX).Wait());
		COLLECTIVE.put("Reduce_scatter", (c, b, o, n, t, p) -> c.Reduce_scatter(b, o, new int[99], 0, each(c, n), t, MPI.MAX));
		COLLECTIVE.put("Ireduce_scatter", (c, b, o, n, t, p) -> c.Ireduce_scatter(b, o, new int[99], 0, each(c, n), t, MPI.MAX).Wait());
	}

	private BadInput() {}

	private static int[] each(Intracomm comm, int count) {
		int[] counts = new int[MPI.COMM_WORLD.Size()];
		java.util.Arrays.fill(counts, count);
		return counts;
	}

	private static int[] ramp(Intracomm comm, int count) {
		int[] begins = new int[MPI.COMM_WORLD.Size()];
		java.util.Arrays.setAll(begins, i -> i * Math.max(count, 0));
		return begins;
	}

	public static void main(String[] args) {
		MPI.Init(args);
		Intracomm comm = MPI.COMM_WORLD;
		int size = comm.Size();
		Map<String, Call> all = new LinkedHashMap<>(MESSAGES);
		all.putAll(ROOTED);
		all.putAll(COLLECTIVE);
		Datatype uncommitted = Datatype.Contiguous(2, MPI.INT);
		Datatype freed = Datatype.Contiguous(2, MPI.INT);
		freed.Commit();
		freed.free();
		Intracomm gone = (Intracomm) comm.clone();
		gone.Free();
		MPI.Buffer_attach(new byte[10_000]);
		all.forEach((name, call) -> {
			int[] data = new int[99];
			refused(name, "-1", () -> call.with(comm, data, 0, -1, MPI.INT, 0));
			refused(name, "offset 98, count ", () -> call.with(comm, data, 98, 2, MPI.INT, 0));
			refused(name, "offset -1, count ", () -> call.with(comm, data, -1, 2, MPI.INT, 0));
			refused(name, "the buffer is null", () -> call.with(comm, null, 0, 2, MPI.INT, 0));
			refused(name, "the buffer is a int[]", () -> call.with(comm, data, 0, 2, MPI.DOUBLE, 0));
			refused(name, "the buffer is a java.lang.String", () -> call.with(comm, "text", 0, 2, MPI.INT, 0));
			refused(name, "the datatype is null", () -> call.with(comm, data, 0, 2, null, 0));
			refused(name, "is not committed: call Commit", () -> call.with(comm, data, 0, 2, uncommitted, 0));
			refused(name, "has been freed: make another", () -> call.with(comm, data, 0, 2, freed, 0));
			refused(name, "has been freed: use another", () -> call.with(gone, data, 0, 2, MPI.INT, 0));
			if (!COLLECTIVE.containsKey(name)) {
				refused(name, "is " + size + ": use 0 to " + (size - 1), () -> call.with(comm, data, 0, 2, MPI.INT, size));
				refused(name, "is -7: use 0 to", () -> call.with(comm, data, 0, 2, MPI.INT, -7));
			}
		});
		Op product = new Op(new mpi.User_function() {
			@Override
			public void Call(Object in, int inOffset, Object inOut, int inOutOffset, int count, Datatype type) {}
		}, true);
		product.free();
		refused("Allreduce", "has been freed", () -> comm.Allreduce(new int[1], 0, new int[1], 0, 1, MPI.INT, product));
		refused("Allreduce", "is null", () -> comm.Allreduce(new int[1], 0, new int[1], 0, 1, MPI.INT, null));
		refused("Allreduce", "not defined", () -> comm.Allreduce(new float[1], 0, new float[1], 0, 1, MPI.FLOAT, MPI.BAND));
		MPI.Buffer_detach();
		if (size > 1) {
			mismatches(comm);
			mismatchesOfLongParts(comm, 6000, 5000);
			mismatchesOfLongParts(comm, 5000, 6000);
			mismatchesOfLongParts(comm, 600_000, 500_000);
		}
		goesOn(comm);
		MPI.Finalize();
		System.out.println("rank " + comm.group.Rank() + ": bad input is refused");
	}

	/** Rank 0 names another count than the others: one process at least notices, all return, and the communicator can be used on. */
	private static void mismatches(Intracomm comm) {
		Map<String, Call> all = new LinkedHashMap<>(ROOTED);
		all.putAll(COLLECTIVE);
		for (Map.Entry<String, Call> entry : all.entrySet()) {
			if (entry.getKey().contains("educe_scatter") || entry.getKey().endsWith("v")) {
				continue; // their counts are many
			}
			noticed(comm, entry.getKey(), () -> entry.getValue().with(comm, new int[99], 0, comm.Rank() == 0 ? 3 : 2, MPI.INT, 0));
		}
	}

	/** The same where parts go as messages from array to array; so long that a sender waits for its receiver, in the end. */
	private static void mismatchesOfLongParts(Intracomm comm, int atFirst, int elsewhere) {
		int count = comm.Rank() == 0 ? atFirst : elsewhere;
		int[] out = new int[count * comm.Size()];
		int[] in = new int[count * comm.Size()];
		noticed(comm, "Bcast", () -> comm.Bcast(in, 0, count, MPI.INT, 0));
		noticed(comm, "Gather", () -> comm.Gather(out, 0, count, MPI.INT, in, 0, count, MPI.INT, 0));
		noticed(comm, "Scatter", () -> comm.Scatter(out, 0, count, MPI.INT, in, 0, count, MPI.INT, 0));
		if (count < 100_000) {
			return; // these are operations of the library
		}
		noticed(comm, "Allgather", () -> comm.Allgather(out, 0, count, MPI.INT, in, 0, count, MPI.INT));
		noticed(comm, "Alltoall", () -> comm.Alltoall(out, 0, count, MPI.INT, in, 0, count, MPI.INT));
	}

	private static void noticed(Intracomm comm, String name, Runnable call) {
		int[] failed = new int[1];
		try {
			call.run();
		} catch (MPIException e) {
			failed[0] = 1;
			Check.that(e.getMessage().contains(": "), "the text of %s names no remedy: %s", name, e.getMessage());
		}
		int[] sum = new int[1];
		comm.Allreduce(failed, 0, sum, 0, 1, MPI.INT, MPI.SUM);
		Check.that(sum[0] > 0, "%s with another count at rank 0 than elsewhere: no exception", name);
	}

	private static void goesOn(Intracomm comm) {
		int rank = comm.Rank();
		int size = comm.Size();
		int[] in = new int[1];
		comm.Sendrecv(new int[] {rank}, 0, 1, MPI.INT, (rank + 1) % size, 1, in, 0, 1, MPI.INT, (rank + size - 1) % size, 1);
		Check.eq((rank + size - 1) % size, in[0], "a message after all that was refused");
		comm.Allreduce(new int[] {rank}, 0, in, 0, 1, MPI.INT, MPI.SUM);
		Check.eq(size * (size - 1) / 2, in[0], "a sum after all that was refused");
	}

	private static void refused(String name, String text, Runnable call) {
		try {
			call.run();
		} catch (MPIException e) {
			Check.that(e.getMessage().contains(text), "%s: the text lacks \"%s\": %s", name, text, e.getMessage());
			return;
		} catch (RuntimeException e) {
			throw new IllegalStateException(name + " with \"" + text + "\"", e);
		}
		Check.fail("%s: no exception with \"%s\"", name, text);
	}
}
