// SPDX-License-Identifier: MIT
package mpitest;

import java.util.Arrays;
import mpi.MPI;
import mpi.Prequest;
import mpi.Request;
import mpi.Status;

/** Requests: each method to complete them, synchronous mode, persistent requests. */
final class NonBlocking {
	private static final int BATCH = 12;

	private NonBlocking() {}

	/** One batch of receives from the left, sent in another order and with lengths on both sides of the limit. */
	private static final class Batch {
		final Place p;
		final byte[][] in = new byte[BATCH][];
		final Request[] receives = new Request[BATCH];
		final Request[] sends = new Request[BATCH];
		final boolean[] seen = new boolean[BATCH];
		private final int base;

		Batch(Place p, int base, boolean sendNow) {
			this.p = p;
			this.base = base;
			for (int i = 0; i < BATCH; i++) {
				in[i] = new byte[length(i)];
				receives[i] = p.comm.Irecv(in[i], 0, in[i].length, MPI.BYTE, p.left(), base + i);
			}
			if (sendNow) {
				send();
			}
		}

		static int length(int i) {
			int[] lengths = {0, 10, 1000, 9000, Math.max(0, Place.psl - 8), 200_000};
			return lengths[i % lengths.length];
		}

		void send() {
			for (int k = 0; k < BATCH; k++) {
				int i = (k * 5 + 3) % BATCH;
				byte[] out = Bytes.of(p.seed + p.rank + base + i, length(i));
				sends[i] = k % 3 == 0 ? p.comm.Issend(out, 0, out.length, MPI.BYTE, p.right(), base + i)
						: k % 3 == 1  ? p.comm.Isend(out, 0, out.length, MPI.BYTE, p.right(), base + i)
									  : p.comm.Irsend(out, 0, out.length, MPI.BYTE, p.right(), base + i);
			}
		}

		void check(int i, Status status, String what) {
			Check.that(i >= 0 && i < BATCH && !seen[i], "%s: index %d is out of range or was reported before", what, i);
			seen[i] = true;
			Bytes.check(in[i], 0, in[i].length, p.seed + p.left() + base + i, what);
			Statuses.check(status, p.left(), base + i, Kind.BYTE, in[i].length, what);
			Check.that(receives[i].Is_null(), "%s: request %d is not inactive after completion", what, i);
		}

		int remaining() {
			int count = 0;
			for (boolean s : seen) {
				count += s ? 0 : 1;
			}
			return count;
		}

		void finish() {
			Check.eq(0, remaining(), "receives that were not reported");
			for (Status status : Request.Waitall(sends)) {
				Check.that(status != null, "the status of a send is null");
			}
		}
	}

	static void completion(Place p) {
		// Irsend is correct in these because the receives of a rank are posted before it enters the barrier.
		Batch batch = posted(p, 100);
		for (int i = BATCH - 1; i >= 0; i--) {
			batch.check(i, batch.receives[i].Wait(), "Wait");
		}
		batch.finish();

		batch = posted(p, 200);
		Status[] all = Request.Waitall(batch.receives);
		for (int i = 0; i < BATCH; i++) {
			batch.check(i, all[i], "Waitall");
		}
		batch.finish();

		batch = posted(p, 300);
		while (batch.remaining() > 0) {
			Status status = Request.Waitany(batch.receives);
			batch.check(status.index, status, "Waitany");
		}
		batch.finish();

		batch = posted(p, 400);
		while (batch.remaining() > 0) {
			Status[] some = Request.Waitsome(batch.receives);
			Check.that(some.length > 0, "Waitsome returned nothing");
			for (Status status : some) {
				batch.check(status.index, status, "Waitsome");
			}
		}
		batch.finish();
		tests(p);
	}

	private static Batch posted(Place p, int base) {
		Batch batch = new Batch(p, base, false);
		p.comm.Barrier();
		batch.send();
		return batch;
	}

	private static void tests(Place p) {
		Batch batch = posted(p, 500);
		for (int i = 0; i < BATCH; i++) {
			Status status;
			while ((status = batch.receives[i].Test()) == null) {
				Thread.onSpinWait();
			}
			batch.check(i, status, "Test");
		}
		batch.finish();

		batch = posted(p, 600);
		while (batch.remaining() > 0) {
			Status status = Request.Testany(batch.receives);
			if (status != null) {
				batch.check(status.index, status, "Testany");
			}
		}
		batch.finish();
		Check.that(Request.Testany(batch.receives) == null, "Testany of inactive requests is not null");

		batch = posted(p, 700);
		while (batch.remaining() > 0) {
			for (Status status : Request.Testsome(batch.receives)) {
				batch.check(status.index, status, "Testsome");
			}
		}
		batch.finish();
		Check.eq(0, Request.Testsome(batch.receives).length, "Testsome of inactive requests");

		if (p.alone()) {
			// MPJ Express's Testall sleeps for 500 ms on every miss: one thread is enough.
			batch = new Batch(p, 800, false);
			p.comm.Barrier();
			Check.that(Request.Testall(batch.receives) == null, "Testall reports receives that nobody has sent to");
			p.comm.Barrier();
			batch.send();
			Request.Waitall(batch.sends);
			Status[] all;
			while ((all = Request.Testall(batch.receives)) == null) {
				Thread.onSpinWait();
			}
			for (int i = 0; i < BATCH; i++) {
				batch.check(i, all[i], "Testall");
			}
			batch.finish();
		}
	}

	/** A synchronous send completes only after its receive was posted, however small it is. */
	static void synchronous(Place p) {
		for (int length : new int[] {0, 1, 1000, Place.psl + 1000}) {
			byte[] in = new byte[length];
			byte[] go = new byte[1];
			Request goes = p.comm.Irecv(go, 0, 1, MPI.BYTE, p.left(), 21);
			Request send = p.comm.Issend(Bytes.of(p.seed + p.rank, length), 0, length, MPI.BYTE, p.right(), 20);
			for (int i = 0; i < 200; i++) {
				Check.that(send.Test() == null, "Issend of %d bytes completed before its receive was posted", length);
			}
			// Only after this message does the right neighbour post the receive.
			p.comm.Send(go, 0, 1, MPI.BYTE, p.right(), 21);
			goes.Wait();
			Request receive = p.comm.Irecv(in, 0, length, MPI.BYTE, p.left(), 20);
			send.Wait();
			receive.Wait();
			Bytes.check(in, 0, length, p.seed + p.left(), "Issend");
		}
		blockingSynchronous(p);
	}

	/** Ssend in turns: even ranks send first. Alone, a rank posts its receive before. */
	private static void blockingSynchronous(Place p) {
		for (int length : new int[] {0, 50, Place.psl + 1}) {
			byte[] in = new byte[length];
			byte[] out = Bytes.of(p.seed + p.rank, length);
			if (p.size == 1) {
				Request receive = p.comm.Irecv(in, 0, length, MPI.BYTE, 0, 22);
				p.comm.Ssend(out, 0, length, MPI.BYTE, 0, 22);
				receive.Wait();
			} else if (p.rank % 2 == 0) {
				p.comm.Ssend(out, 0, length, MPI.BYTE, p.right(), 22);
				p.comm.Recv(in, 0, length, MPI.BYTE, p.left(), 22);
			} else {
				p.comm.Recv(in, 0, length, MPI.BYTE, p.left(), 22);
				p.comm.Ssend(out, 0, length, MPI.BYTE, p.right(), 22);
			}
			Bytes.check(in, 0, length, p.seed + p.left(), "Ssend");
		}
	}

	/** Persistent requests, started again and again with new contents. */
	static void persistent(Place p) {
		int[] lengths = {1, 500, 2000, 40_000};
		byte[][] in = new byte[3][];
		byte[][] out = new byte[3][];
		for (int length : lengths) {
			for (int i = 0; i < 3; i++) {
				in[i] = new byte[length];
				out[i] = new byte[length];
			}
			Prequest[] receives = new Prequest[3];
			for (int i = 0; i < 3; i++) {
				receives[i] = p.comm.Recv_init(in[i], 0, length, MPI.BYTE, p.left(), 30 + i);
			}
			Prequest[] sends = {p.comm.Send_init(out[0], 0, length, MPI.BYTE, p.right(), 30), p.comm.Ssend_init(out[1], 0, length, MPI.BYTE, p.right(), 31),
					p.comm.Rsend_init(out[2], 0, length, MPI.BYTE, p.right(), 32)};
			for (int round = 0; round < 5; round++) {
				for (int i = 0; i < 3; i++) {
					Bytes.fill(out[i], 0, length, p.seed + p.rank + round * 3 + i);
					Arrays.fill(in[i], (byte) 0);
				}
				Prequest.Startall(receives);
				p.comm.Barrier();
				sends[2].Start();
				sends[1].Start();
				sends[0].Start();
				Status[] statuses = Request.Waitall(receives);
				Request.Waitall(sends);
				for (int i = 0; i < 3; i++) {
					Bytes.check(in[i], 0, length, p.seed + p.left() + round * 3 + i, "persistent request " + i);
					Statuses.check(statuses[i], p.left(), 30 + i, Kind.BYTE, length, "persistent request");
				}
			}
		}
	}
}
