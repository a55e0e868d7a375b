// SPDX-License-Identifier: MIT
package mpitest;

import java.util.IdentityHashMap;
import java.util.Map;
import mpjbuf.Buffer;
import mpjbuf.BufferException;
import mpjbuf.BufferFactory;
import mpjbuf.Type;
import mpjdev.Request;
import mpjdev.Status;
import mpjdev.javampjdev.MPJDev;

/** Below mpi.*: mpjdev.Request.iwaitany and the device's peek, which mpi.* of MPJ Express 0.44 itself never calls. */
final class DeviceLevel {
	private static final int COUNT = 8;

	private DeviceLevel() {}

	private static Buffer writeBuffer(int[] words) {
		int overhead = MPJDev.getSendOverhead();
		int capacity = overhead + 8 + 4 * words.length + 8;
		Buffer buffer = new Buffer(BufferFactory.create(capacity), overhead, capacity);
		try {
			buffer.putSectionHeader(Type.INT);
			buffer.write(words, 0, words.length);
			buffer.commit();
		} catch (BufferException e) {
			throw new IllegalStateException(e);
		}
		return buffer;
	}

	private static Buffer readBuffer(int words) {
		int capacity = 8 + 4 * words + 8;
		return new Buffer(BufferFactory.create(capacity), 0, capacity);
	}

	private static int[] read(Buffer buffer, int words) {
		int[] in = new int[words];
		try {
			buffer.commit();
			Check.that(buffer.getSectionHeader() == Type.INT, "type of a received section");
			Check.eq(words, buffer.getSectionSize(), "length of a received section");
			buffer.read(in, 0, words);
		} catch (BufferException e) {
			throw new IllegalStateException(e);
		}
		return in;
	}

	/** iwaitany gives every receive once, whatever the order of arrival; niodev's blocks for ever. */
	static void iwaitany(Place p) {
		if (p.niodev()) {
			return;
		}
		mpjdev.Comm world = p.comm.mpjdevComm;
		for (boolean posted : new boolean[] {true, false}) {
			Request[] receives = new Request[COUNT];
			Request[] sends = new Request[COUNT];
			Buffer[] in = new Buffer[COUNT];
			for (int i = 0; posted && i < COUNT; i++) {
				in[i] = readBuffer(words(i));
				receives[i] = world.irecv(in[i], p.left(), 170 + i, new Status(p.left(), 170 + i, -1), true);
			}
			p.comm.Barrier();
			for (int k = 0; k < COUNT; k++) {
				int i = (k * 3 + 1) % COUNT;
				sends[i] = world.isend(writeBuffer(contents(p.rank, i)), p.right(), 170 + i, true);
			}
			for (int i = 0; !posted && i < COUNT; i++) {
				in[i] = readBuffer(words(i));
				receives[i] = world.irecv(in[i], p.left(), 170 + i, new Status(p.left(), 170 + i, -1), true);
			}
			for (int k = 0; k < COUNT; k++) {
				Status status = Request.iwaitany(receives);
				int i = status.index;
				Check.that(i >= 0 && i < COUNT && receives[i] != null, "iwaitany reported index %d", i);
				Check.eq(170 + i, status.tag, "tag of iwaitany's status");
				Check.eq(p.left(), status.source, "source of iwaitany's status");
				Check.same(contents(p.left(), i), read(in[i], words(i)), "contents of message %d of iwaitany", i);
				receives[i] = null;
			}
			for (int k = 0; k < COUNT; k++) {
				Status status = Request.iwaitany(sends);
				sends[status.index] = null;
			}
		}
	}

	private static int words(int i) {
		return i % 4 == 3 ? 60_000 : 1 + i * 10;
	}

	private static int[] contents(int rank, int i) {
		int[] words = new int[words(i)];
		for (int k = 0; k < words.length; k++) {
			words[k] = (int) Check.mix(rank * 1000L + i * 100L + k);
		}
		return words;
	}

	/** peek gives each completed request that nobody has waited for, once, and never null. */
	static void peek(Place p) {
		if (p.niodev()) {
			return;
		}
		mpjdev.Comm world = p.comm.mpjdevComm;
		Map<Request, Integer> pending = new IdentityHashMap<>();
		Buffer[] in = new Buffer[COUNT];
		for (int i = 0; i < COUNT; i++) {
			in[i] = readBuffer(words(i));
			pending.put(world.irecv(in[i], p.left(), 180 + i, new Status(p.left(), 180 + i, -1), true), i);
		}
		for (int i = 0; i < COUNT; i++) {
			pending.put(world.isend(writeBuffer(contents(p.rank, i)), p.right(), 180 + i, true), COUNT + i);
		}
		while (!pending.isEmpty()) {
			Request done = MPJDev.dev.peek();
			Check.that(done != null, "peek returned null");
			Integer i = pending.remove(done);
			// Others' requests may come too: those of earlier sections that were only tested.
			if (i != null) {
				Status tested = done.itest();
				Check.that(tested != null, "a request that peek returned is not complete");
				Status status = done.iwait();
				if (i < COUNT) {
					Check.eq(180 + i, status.tag, "tag of a peeked request");
					Check.same(contents(p.left(), i), read(in[i], words(i)), "contents of a peeked message");
				}
			}
		}
	}

	/** itest sees a completion again and again, and runs no handler; iwait after it gives the same answer. */
	static void repeatedTest(Place p) {
		mpjdev.Comm world = p.comm.mpjdevComm;
		Buffer in = readBuffer(3);
		Request receive = world.irecv(in, p.left(), 190, new Status(p.left(), 190, -1), true);
		Check.that(receive.itest() == null, "a receive is complete that nobody has sent to");
		p.comm.Barrier();
		Request send = world.isend(writeBuffer(new int[] {1, 2, p.rank}), p.right(), 190, true);
		while (receive.itest() == null) {
			Thread.onSpinWait();
		}
		Check.that(receive.itest() != null, "a completed receive is incomplete at the second itest");
		Check.same(new int[] {1, 2, p.left()}, read(in, 3), "contents after itest");
		Status status = receive.iwait();
		Check.eq(190, status.tag, "tag after iwait");
		Check.eq(p.left(), status.source, "source after iwait");
		Check.that(receive.iwait() == status, "a second iwait gives another status");
		Check.that(send.iwait() != null, "the status of a send is null");
	}

	/** mpjdev's own barrier and split: unaligned receive buffers, one send buffer for all, cleared before they complete. */
	static void collectives(Place p) {
		mpjdev.Comm world = p.comm.mpjdevComm;
		// With one rank, mpjdev's barrier looks for a peer with rank 1; and its partners both send before they receive.
		if (p.size > 1 && Place.psl >= 12) {
			for (int i = 0; i < 20; i++) {
				world.barrier();
			}
		}
		mpjdev.Comm half = world.split(p.rank % 2, p.rank);
		Check.eq((p.size + 1 - p.rank % 2) / 2, half.size(), "size of mpjdev's split");
		Check.eq(p.rank / 2, half.id(), "rank in mpjdev's split");
		p.comm.Barrier();
	}
}
