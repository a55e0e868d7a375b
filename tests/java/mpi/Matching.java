// SPDX-License-Identifier: MIT
package mpitest;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import mpi.MPI;
import mpi.Request;
import mpi.Status;

/** Which receive gets which message: probes, wildcards, order, unexpected messages, truncation. */
final class Matching {
	private Matching() {}

	/** Probe and Iprobe report what the next receive gets, and leave it where it is; any kind, any protocol. */
	static void probe(Place p) {
		if (p.niodev() && p.size == 1) {
			return;
		}
		Check.that(p.comm.Iprobe(p.left(), 40) == null, "Iprobe found a message that nobody has sent");
		for (Kind kind : Kind.values()) {
			for (int count : new int[] {0, 5, 2000}) {
				Request send = p.comm.Isend(kind.filled(count, 0, count, p.seed + p.rank), 0, count, kind.type(), p.right(), 41);
				probed(p, kind, count, p.left(), 41);
				send.Wait();
				send = p.comm.Issend(kind.filled(count, 0, count, p.seed + p.rank), 0, count, kind.type(), p.right(), 42);
				probed(p, kind, count, MPI.ANY_SOURCE, 42);
				send.Wait();
			}
		}
		int large = 60_000;
		Request send = p.comm.Isend(Kind.INT.filled(large, 0, large, p.seed + p.rank), 0, large, MPI.INT, p.right(), 43);
		probed(p, Kind.INT, large, p.left(), MPI.ANY_TAG);
		send.Wait();
		Check.that(p.comm.Iprobe(MPI.ANY_SOURCE, MPI.ANY_TAG) == null, "Iprobe found a message that was received");
	}

	private static void probed(Place p, Kind kind, int count, int source, int tag) {
		Status first = p.comm.Probe(source, tag);
		int real = first.tag;
		Statuses.check(first, p.left(), tag == MPI.ANY_TAG ? 43 : tag, kind, count, "Probe");
		Status second;
		while ((second = p.comm.Iprobe(source, tag)) == null) {
			Thread.onSpinWait();
		}
		Statuses.check(second, p.left(), real, kind, count, "Iprobe after Probe");
		Object in = kind.blank(count + 1, p.seed + p.left());
		Status status = p.comm.Recv(in, 0, count, kind.type(), first.source, first.tag);
		Statuses.check(status, p.left(), real, kind, count, "Recv after Probe");
		kind.check(in, 0, count, p.seed + p.left(), "Recv after Probe");
	}

	/** Everybody sends to everybody; wildcards give the messages of one sender in the order they were sent. */
	static void wildcards(Place p) {
		if (p.niodev() && p.size == 1) {
			return;
		}
		int each = 20;
		List<Request> sends = new ArrayList<>();
		for (int i = 0; i < each; i++) {
			for (int to = 0; to < p.size; to++) {
				int[] out = new int[1 + (i % 4 == 3 ? 40_000 : i)];
				out[0] = p.rank * 1000 + i;
				sends.add(i % 5 == 4 ? p.comm.Issend(out, 0, out.length, MPI.INT, to, 50 + i % 3) : p.comm.Isend(out, 0, out.length, MPI.INT, to, 50 + i % 3));
			}
		}
		int[] next = new int[p.size];
		for (int k = 0; k < each * p.size; k++) {
			int[] in = new int[40_001];
			// Without source and tag, messages of one sender come in order.
			Status status = k % 2 == 0 ? p.comm.Recv(in, 0, in.length, MPI.INT, MPI.ANY_SOURCE, MPI.ANY_TAG)
									   : p.comm.Irecv(in, 0, in.length, MPI.INT, MPI.ANY_SOURCE, MPI.ANY_TAG).Wait();
			int source = in[0] / 1000;
			int i = in[0] % 1000;
			Check.eq(source, status.source, "source of a wildcard receive");
			Check.eq(next[source], i, "number of the message from rank %d", source);
			Check.eq(50 + i % 3, status.tag, "tag of a wildcard receive");
			Check.eq(1 + (i % 4 == 3 ? 40_000 : i), status.Get_count(MPI.INT), "count of a wildcard receive");
			next[source]++;
		}
		complete(sends);
		p.comm.Barrier();
		exactAmongWildcards(p);
	}

	/** Of posted receives the first that matches gets the message, whether it names the source and tag or not. */
	private static void exactAmongWildcards(Place p) {
		int[][] in = new int[6][1];
		Request[] receives = {p.comm.Irecv(in[0], 0, 1, MPI.INT, p.left(), 61), p.comm.Irecv(in[1], 0, 1, MPI.INT, p.left(), MPI.ANY_TAG),
				p.comm.Irecv(in[2], 0, 1, MPI.INT, MPI.ANY_SOURCE, 62), p.comm.Irecv(in[3], 0, 1, MPI.INT, p.left(), 62),
				p.comm.Irecv(in[4], 0, 1, MPI.INT, MPI.ANY_SOURCE, MPI.ANY_TAG), p.comm.Irecv(in[5], 0, 1, MPI.INT, p.left(), 63)};
		p.comm.Barrier();
		int[] tags = {62, 62, 62, 61, 61, 63};
		int[] taker = {1, 2, 3, 0, 4, 5};
		List<Request> sends = new ArrayList<>();
		for (int i = 0; i < tags.length; i++) {
			sends.add(p.comm.Isend(new int[] {i}, 0, 1, MPI.INT, p.right(), tags[i]));
		}
		Status[] statuses = Request.Waitall(receives);
		for (int i = 0; i < tags.length; i++) {
			Check.eq(i, in[taker[i]][0], "message %d (tag %d), which posted receive %d must get", i, tags[i], taker[i]);
			Check.eq(tags[i], statuses[taker[i]].tag, "tag in the status of posted receive %d", taker[i]);
			Check.eq(p.left(), statuses[taker[i]].source, "source in the status of posted receive %d", taker[i]);
		}
		complete(sends);
	}

	/** One tag, protocols mixed at random: messages must not overtake each other, posted early or late. */
	static void order(Place p) {
		int count = p.crowded() ? 60 : 200;
		Random random = new Random(p.seed + p.rank);
		Random peers = new Random(p.seed + p.left());
		List<Request> sends = new ArrayList<>();
		List<Request> receives = new ArrayList<>();
		int[][] in = new int[count][];
		int early = p.size == 1 && p.niodev() ? count : count / 2;
		for (int i = 0; i < early; i++) {
			receives.add(post(p, in, i));
		}
		for (int i = 0; i < count; i++) {
			int[] out = new int[ints(random)];
			out[0] = i;
			sends.add(i % 7 == 3 ? p.comm.Issend(out, 0, out.length, MPI.INT, p.right(), 70) : p.comm.Isend(out, 0, out.length, MPI.INT, p.right(), 70));
		}
		for (int i = early; i < count; i++) {
			receives.add(post(p, in, i));
		}
		for (int i = 0; i < count; i++) {
			Status status = receives.get(i).Wait();
			Check.eq(i, in[i][0], "place of a message in its stream");
			Check.eq(ints(peers), status.Get_count(MPI.INT), "length of message %d", i);
		}
		complete(sends);
	}

	private static final int LONGEST = 50_000;

	private static int ints(Random random) {
		switch (random.nextInt(4)) {
		case 0:
			return 1;
		case 1:
			return 1 + random.nextInt(100);
		case 2:
			return 1 + random.nextInt(20_000);
		default:
			return 1 + random.nextInt(LONGEST);
		}
	}

	private static Request post(Place p, int[][] in, int i) {
		in[i] = new int[LONGEST];
		// On niodev a wildcard receive of a self-send gets a wrong status, but here only the count is looked at.
		boolean wild = i % 3 == 1;
		return p.comm.Irecv(in[i], 0, LONGEST, MPI.INT, wild ? MPI.ANY_SOURCE : p.left(), i % 5 == 2 ? MPI.ANY_TAG : 70);
	}

	/** Thousands of messages that nobody expected, received last first. */
	static void unexpected(Place p) {
		if (p.niodev() && p.size == 1) {
			return;
		}
		int count = p.crowded() ? 800 : 3000;
		Request[] sends = new Request[count];
		for (int i = 0; i < count; i++) {
			int[] out = {i, p.rank, i ^ 0x5555};
			sends[i] = p.comm.Isend(out, 0, 3, MPI.INT, p.right(), i);
		}
		int[] in = new int[3];
		for (int i = count - 1; i >= 0; i--) {
			Status status = p.comm.Recv(in, 0, 3, MPI.INT, p.left(), i);
			Check.that(in[0] == i && in[1] == p.left() && in[2] == (i ^ 0x5555), "unexpected message %d has other contents", i);
			Check.eq(3, status.Get_count(MPI.INT), "count of unexpected message %d", i);
		}
		Request.Waitall(sends);
	}

	/** The sizes of one truncated message: eager and rendezvous, posted before and after it came. */
	static void truncation(Place p) {
		if (p.niodev()) {
			return;
		}
		for (int length : new int[] {1000, 20_000, Place.psl + 5000, 2 << 20}) {
			for (boolean posted : new boolean[] {true, false}) {
				truncated(p, length, posted);
			}
		}
	}

	private static void truncated(Place p, int length, boolean posted) {
		byte[] small = new byte[50];
		byte[] in = new byte[length];
		Request receive = posted ? p.comm.Irecv(small, 0, small.length, MPI.BYTE, p.left(), 80) : null;
		p.comm.Barrier();
		byte[] out = Bytes.of(p.seed + p.rank, length);
		Request first = p.comm.Isend(out, 0, length, MPI.BYTE, p.right(), 80);
		Request second = p.comm.Isend(out, 0, length, MPI.BYTE, p.right(), 80);
		String text = null;
		try {
			if (posted) {
				receive.Wait();
			} else {
				p.comm.Probe(p.left(), 80);
				p.comm.Recv(small, 0, small.length, MPI.BYTE, p.left(), 80);
			}
		} catch (RuntimeException e) {
			// MPJ Express's Wait passes the device's exception on; Recv wraps it in an MPIException.
			text = String.valueOf(e.getMessage());
		}
		Check.that(text != null, "%d bytes into a buffer of %d: no exception", length, small.length);
		Check.that(text.contains(String.valueOf(length + (Place.EXPRESS ? Place.SECTION : 0))),
				"the text of a truncation does not name the size %d of the message: %s", length + (Place.EXPRESS ? Place.SECTION : 0), text);
		for (byte b : small) {
			Check.eq(0, b, "a byte of the array of a truncated receive");
		}
		Status status = p.comm.Recv(in, 0, length, MPI.BYTE, p.left(), 80);
		Bytes.check(in, 0, length, p.seed + p.left(), "the message after a truncated one");
		Statuses.check(status, p.left(), 80, Kind.BYTE, length, "the message after a truncated one");
		first.Wait();
		second.Wait();
	}

	/** A rank's messages to itself, by every mode, with wildcards, probed, objects, large. */
	static void self(Place p) {
		int me = p.rank;
		for (int length : new int[] {0, 1, 3000, Math.max(0, Place.psl - 8), Place.psl + 1, 3 << 20}) {
			byte[] out = Bytes.of(p.seed + me, length);
			for (int mode = 0; mode < 6; mode++) {
				byte[] in = new byte[length];
				int tag = 90 + mode;
				boolean wild = mode % 2 == 1 && !p.niodev();
				Request receive = p.comm.Irecv(in, 0, length, MPI.BYTE, wild ? MPI.ANY_SOURCE : me, wild ? MPI.ANY_TAG : tag);
				switch (mode) {
				case 0:
					p.comm.Send(out, 0, length, MPI.BYTE, me, tag);
					break;
				case 1:
					p.comm.Ssend(out, 0, length, MPI.BYTE, me, tag);
					break;
				case 2:
					p.comm.Rsend(out, 0, length, MPI.BYTE, me, tag);
					break;
				case 3:
					p.comm.Isend(out, 0, length, MPI.BYTE, me, tag).Wait();
					break;
				case 4:
					p.comm.Issend(out, 0, length, MPI.BYTE, me, tag).Wait();
					break;
				default:
					p.comm.Irsend(out, 0, length, MPI.BYTE, me, tag).Wait();
					break;
				}
				Status status = receive.Wait();
				Bytes.check(in, 0, length, p.seed + me, "self-send");
				Statuses.check(status, me, tag, Kind.BYTE, length, "self-send");
			}
			if (!p.niodev()) {
				selfUnexpected(p, out);
			}
		}
	}

	private static void selfUnexpected(Place p, byte[] out) {
		byte[] in = new byte[out.length];
		Request send = p.comm.Isend(out, 0, out.length, MPI.BYTE, p.rank, 96);
		Request sync = p.comm.Issend(out, 0, out.length, MPI.BYTE, p.rank, 97);
		Check.that(sync.Test() == null, "a synchronous self-send completed without a receive");
		Statuses.check(p.comm.Probe(MPI.ANY_SOURCE, MPI.ANY_TAG), p.rank, 96, Kind.BYTE, out.length, "Probe of a self-send");
		Statuses.check(
				p.comm.Recv(in, 0, in.length, MPI.BYTE, MPI.ANY_SOURCE, 97), p.rank, 97, Kind.BYTE, in.length, "late receive of a synchronous self-send");
		Bytes.check(in, 0, in.length, p.seed + p.rank, "late receive of a synchronous self-send");
		p.comm.Recv(in, 0, in.length, MPI.BYTE, p.rank, 96);
		Bytes.check(in, 0, in.length, p.seed + p.rank, "late receive of a self-send");
		send.Wait();
		sync.Wait();
		if (out.length + Place.SECTION <= Place.psl && p.alone()) {
			p.comm.Send(out, 0, out.length, MPI.BYTE, p.rank, 98);
			p.comm.Recv(in, 0, in.length, MPI.BYTE, p.rank, 98);
			Bytes.check(in, 0, in.length, p.seed + p.rank, "a buffered self-send");
		}
	}

	static void complete(List<Request> requests) {
		Request.Waitall(requests.toArray(new Request[0]));
	}
}
