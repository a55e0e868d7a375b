// SPDX-License-Identifier: MIT
package mpitest;

import java.nio.ByteBuffer;
import mpi.MPI;
import mpi.Request;
import mpi.Status;

/** Blocking operations: every send mode, every basic type, sizes, tags, status fields, exchanges that must not deadlock. */
final class Blocking {
	private Blocking() {}

	/** All basic types, with an offset, at several counts; the array around the message stays as it was. */
	static void types(Place p) {
		int[] counts = {0, 1, 7, 8, 9, 1000};
		for (Kind kind : Kind.values()) {
			for (int count : counts) {
				int offset = count % 5;
				int tag = kind.ordinal() * 100 + count % 100;
				Object out = kind.filled(count + offset + 3, offset, count, p.seed + p.rank);
				Object in = kind.blank(count + offset + 6, p.seed + p.left());
				String what = "Sendrecv of " + count + " from rank " + p.left();
				Status status = p.comm.Sendrecv(out, offset, count, kind.type(), p.right(), tag, in, offset + 2, count, kind.type(), p.left(), tag);
				kind.check(in, offset + 2, count, p.seed + p.left(), what);
				Statuses.check(status, p.left(), tag, kind, count, what);
				kind.check(out, offset, count, p.seed + p.rank, what + ", the sender's array");
			}
		}
		shorter(p);
	}

	/** A receive may be longer than the message: the status has how long it was. */
	private static void shorter(Place p) {
		for (Kind kind : Kind.values()) {
			Object out = kind.filled(5, 0, 5, p.seed + p.rank);
			Object in = kind.blank(50, p.seed + p.left());
			Status status = p.comm.Sendrecv(out, 0, 5, kind.type(), p.right(), 77, in, 10, 40, kind.type(), p.left(), 77);
			kind.check(in, 10, 5, p.seed + p.left(), "a receive longer than the message");
			Statuses.check(status, p.left(), 77, kind, 5, "a receive longer than the message");
		}
	}

	/** One blocking send in each mode, into a receive that is known to be posted. */
	static void modes(Place p) {
		int[] lengths = {0, 1, 100, 8000, Math.max(0, Place.psl - Place.SECTION), Place.psl, 300_000};
		for (String mode : new String[] {"Send", "Ssend", "Rsend"}) {
			for (int length : lengths) {
				byte[] out = Bytes.of(p.seed + p.rank, length);
				byte[] in = new byte[length];
				Request receive = p.comm.Irecv(in, 0, length, MPI.BYTE, p.left(), 5);
				// Rsend may be used only when the receive is posted: the barrier knows that it is.
				p.comm.Barrier();
				switch (mode) {
				case "Send":
					p.comm.Send(out, 0, length, MPI.BYTE, p.right(), 5);
					break;
				case "Ssend":
					p.comm.Ssend(out, 0, length, MPI.BYTE, p.right(), 5);
					break;
				default:
					p.comm.Rsend(out, 0, length, MPI.BYTE, p.right(), 5);
					break;
				}
				Status status = receive.Wait();
				Bytes.check(in, 0, length, p.seed + p.left(), mode);
				Statuses.check(status, p.left(), 5, Kind.BYTE, length, mode);
			}
		}
	}

	/**
	 * Everybody sends, then everybody receives: what fits under the protocol switch limit with its 8 bytes of section
	 * header must be buffered. niodev's self-send has no buffer, so one rank alone is left out there.
	 */
	static void headToHead(Place p) {
		if (p.niodev() && p.size == 1 || !p.buffers()) {
			return;
		}
		for (int length : new int[] {0, 1, 1000, 16384, 65536, Math.max(0, Place.psl - Place.SECTION)}) {
			if (length + Place.SECTION > Place.psl || !p.alone() && length > 16384) {
				continue; // MPI promises no room, not even for what all threads of a rank send at once
			}
			for (int round = 0; round < 3; round++) {
				byte[] in = new byte[length];
				p.comm.Send(Bytes.of(p.seed + p.rank + round, length), 0, length, MPI.BYTE, p.right(), 6);
				p.comm.Recv(in, 0, length, MPI.BYTE, p.left(), 6);
				Bytes.check(in, 0, length, p.seed + p.left() + round, "head-to-head Send");
			}
		}
		// All at once to rank 0, which receives them last rank first.
		int length = 10_000;
		if (p.rank != 0) {
			p.comm.Send(Bytes.of(p.seed + p.rank, length), 0, length, MPI.BYTE, 0, 7);
		} else {
			for (int source = p.size - 1; source > 0; source--) {
				byte[] in = new byte[length];
				p.comm.Recv(in, 0, length, MPI.BYTE, source, 7);
				Bytes.check(in, 0, length, p.seed + source, "many to one");
			}
		}
	}

	static void exchange(Place p) {
		for (int length : new int[] {1, 5000, Math.max(1, Place.psl - 9), Place.psl + 1, 1 << 20}) {
			byte[] both = Bytes.of(p.seed + p.rank, length);
			Status status = p.comm.Sendrecv_replace(both, 0, length, MPI.BYTE, p.right(), 8, p.left(), 8);
			Bytes.check(both, 0, length, p.seed + p.left(), "Sendrecv_replace");
			Statuses.check(status, p.left(), 8, Kind.BYTE, length, "Sendrecv_replace");
			// The other way round the ring, and with different sizes for the two directions.
			byte[] in = new byte[length];
			byte[] out = Bytes.of(p.seed + p.rank, length / (p.rank + 1));
			int want = length / (p.right() + 1);
			status = p.comm.Sendrecv(out, 0, out.length, MPI.BYTE, p.left(), 9, in, 0, length, MPI.BYTE, p.right(), 9);
			Bytes.check(in, 0, want, p.seed + p.right(), "Sendrecv to the left");
			Statuses.check(status, p.right(), 9, Kind.BYTE, want, "Sendrecv to the left");
		}
	}

	/** Lengths at and around every limit, up to 16 MB between ranks 0 and 1 (or of a rank with itself). */
	static void sizes(Place p) {
		for (int centre : new int[] {0, 64, 4096, 8192, 16384, 65536, Place.psl, Place.psl - Place.SECTION, 1 << 20}) {
			for (int delta = -2; delta <= 2; delta++) {
				if (centre + delta >= 0) {
					aroundRing(p, centre + delta);
				}
			}
		}
		if (!p.crowded()) {
			aroundRing(p, 4 << 20);
		}
		if (p.alone() && p.rank < 2) {
			pair(p, (16 << 20) - 3);
			pair(p, 16 << 20);
		}
	}

	private static void aroundRing(Place p, int length) {
		byte[] in = new byte[length + 2];
		byte[] out = Bytes.of(p.seed + p.rank, length);
		p.comm.Sendrecv(out, 0, length, MPI.BYTE, p.right(), 10, in, 1, length, MPI.BYTE, p.left(), 10);
		Bytes.check(in, 1, length, p.seed + p.left(), "sizes");
		Check.that(in[0] == 0 && in[length + 1] == 0, "a message of %d bytes wrote outside its range", length);
	}

	private static void pair(Place p, int length) {
		int peer = p.size == 1 ? 0 : 1 - p.rank;
		byte[] in = new byte[length];
		byte[] out = Bytes.of(p.seed + p.rank, length);
		p.comm.Sendrecv(out, 0, length, MPI.BYTE, peer, 11, in, 0, length, MPI.BYTE, peer, 11);
		Bytes.check(in, 0, length, p.seed + peer, "large exchange");
	}

	/** The whole range of tags, as 32 signed bits; only ANY_TAG itself is no tag. */
	static void tags(Place p) {
		int[] tags = {0, 1, 2, 255, 256, 32767, 32768, 34001, 34020, 35000, 65535, 65536, 1 << 24, 1 << 30, Integer.MAX_VALUE - 1, Integer.MAX_VALUE, -1, -3,
				-994576, Integer.MIN_VALUE};
		Request[] sends = new Request[tags.length];
		Request[] receives = new Request[tags.length];
		int[][] in = new int[tags.length][1];
		for (int i = tags.length - 1; i >= 0; i--) {
			receives[i] = p.comm.Irecv(in[i], 0, 1, MPI.INT, p.left(), tags[i]);
		}
		for (int i = 0; i < tags.length; i++) {
			sends[i] = p.comm.Isend(new int[] {p.rank * 1000 + i}, 0, 1, MPI.INT, p.right(), tags[i]);
		}
		Status[] statuses = Request.Waitall(receives);
		Request.Waitall(sends);
		for (int i = 0; i < tags.length; i++) {
			Check.eq(p.left() * 1000 + i, in[i][0], "message with tag %d", tags[i]);
			Check.eq(tags[i], statuses[i].tag, "tag in the status");
		}
	}

	/** Bsend and Ibsend from a direct and from a heap buffer: they return although nobody receives yet. */
	static void buffered(Place p) {
		for (boolean direct : new boolean[] {true, false}) {
			int room = 400_000;
			MPI.Buffer_attach(direct ? ByteBuffer.allocateDirect(room) : ByteBuffer.allocate(room));
			String what = direct ? "Bsend from a direct buffer" : "Bsend from a heap buffer";
			for (int length : new int[] {0, 1, 1000, Math.min(Place.psl, 131_072), 250_000}) {
				// One message at a time: MPJ Express's next Bsend would spin until this one has left its buffer.
				byte[] in = new byte[length];
				p.comm.Bsend(Bytes.of(p.seed + p.rank, length), 0, length, MPI.BYTE, p.right(), 12);
				Status status = p.comm.Recv(in, 0, length, MPI.BYTE, p.left(), 12);
				Bytes.check(in, 0, length, p.seed + p.left(), what);
				Statuses.check(status, p.left(), 12, Kind.BYTE, length, what);
				p.comm.Barrier();
			}
			for (Kind kind : Kind.PRIMITIVE) {
				Object in = kind.blank(100, p.seed + p.left());
				Request send = p.comm.Ibsend(kind.filled(100, 0, 100, p.seed + p.rank), 0, 100, kind.type(), p.right(), 13);
				p.comm.Recv(in, 0, 100, kind.type(), p.left(), 13);
				kind.check(in, 0, 100, p.seed + p.left(), "I" + what);
				send.Wait();
			}
			p.comm.Barrier();
			MPI.Buffer_detach();
		}
	}
}
