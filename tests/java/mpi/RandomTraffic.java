// SPDX-License-Identifier: MIT
package mpitest;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import mpi.MPI;
import mpi.Request;
import mpi.Status;

/**
 * Random traffic between all ranks. Every rank draws the same plan from the same seed, so each knows what it must
 * send and what must arrive; sizes, modes, tags, methods of receiving and of completing are drawn too.
 */
final class RandomTraffic {
	private static final class Message {
		int id;
		int from;
		int to;
		int tag;
		int length;
		int mode;
		boolean anySource;
	}

	private RandomTraffic() {}

	static void run(Place p) {
		int rounds = p.crowded() ? 4 : 8;
		for (int round = 0; round < rounds; round++) {
			try {
				batch(p, round, p.seed * 31 + round);
			} catch (RuntimeException e) {
				throw new IllegalStateException("random traffic with seed " + (p.seed * 31 + round), e);
			}
		}
	}

	private static List<Message> plan(Place p, int round, long seed) {
		Random random = new Random(seed);
		int count = 25 * p.size;
		List<Message> plan = new ArrayList<>();
		for (int id = 0; id < count; id++) {
			Message m = new Message();
			m.id = id;
			m.from = random.nextInt(p.size);
			m.to = random.nextInt(p.size);
			// A tag of its own for messages that ANY_SOURCE receives, in all rounds, as another rank may be a round
			// ahead; three shared ones, in order, for the others.
			m.anySource = random.nextInt(4) == 0 && !(p.niodev() && m.from == m.to);
			int shared = random.nextInt(3);
			m.tag = m.anySource ? 1000 * (round + 1) + id : shared;
			m.mode = random.nextInt(4);
			int scale = random.nextInt(20);
			m.length = random.nextInt(scale < 8 ? 100 : scale < 14 ? 10_000 : scale < 19 ? 160_000 : 700_000);
			plan.add(m);
		}
		return plan;
	}

	private static void batch(Place p, int round, long seed) {
		Random mine = new Random(seed ^ (0x1234567L * (p.rank + 1)));
		List<Message> in = new ArrayList<>();
		List<Message> out = new ArrayList<>();
		for (Message m : plan(p, round, seed)) {
			if (m.to == p.rank) {
				in.add(m);
			}
			if (m.from == p.rank) {
				out.add(m);
			}
		}
		byte[][] data = new byte[in.size()][];
		Request[] receives = new Request[in.size()];
		Request[] sends = new Request[out.size()];
		int posted = 0;
		int sent = 0;
		// On niodev a self-send needs its receive first.
		while (p.niodev() && posted < in.size()) {
			post(p, in, data, receives, posted++);
		}
		while (posted < in.size() || sent < out.size()) {
			boolean receive = sent == out.size() || (posted < in.size() && mine.nextBoolean());
			if (receive) {
				post(p, in, data, receives, posted++);
			} else {
				send(p, seed, out.get(sent), sends, sent);
				sent++;
			}
		}
		List<Integer> late = complete(mine, receives, in, p);
		for (int i : late) {
			check(p, in.get(i), receives[i].Wait());
		}
		for (int i = 0; i < data.length; i++) {
			Bytes.check(data[i], 0, in.get(i).length, seed + in.get(i).id,
					"message " + in.get(i).id + " of the plan, mode " + in.get(i).mode + " from rank " + in.get(i).from);
		}
		Request.Waitall(sends);
	}

	/** Completes some receives by Waitany, the rest later by Wait in random order, which it returns. */
	private static List<Integer> complete(Random mine, Request[] receives, List<Message> in, Place p) {
		List<Integer> late = new ArrayList<>();
		int any = receives.length == 0 ? 0 : mine.nextInt(receives.length);
		boolean[] done = new boolean[receives.length];
		for (int k = 0; k < any; k++) {
			Status status = Request.Waitany(receives);
			Check.that(!done[status.index], "Waitany reported index %d twice", status.index);
			done[status.index] = true;
			check(p, in.get(status.index), status);
		}
		for (int i = 0; i < done.length; i++) {
			if (!done[i]) {
				late.add(i);
			}
		}
		Collections.shuffle(late, mine);
		return late;
	}

	private static void post(Place p, List<Message> in, byte[][] data, Request[] receives, int i) {
		Message m = in.get(i);
		int room = m.length + (m.id % 3 == 0 ? 1000 : 0);
		data[i] = new byte[room];
		receives[i] = p.comm.Irecv(data[i], 0, room, MPI.BYTE, m.anySource ? MPI.ANY_SOURCE : m.from, m.tag);
	}

	private static void send(Place p, long seed, Message m, Request[] sends, int i) {
		byte[] bytes = Bytes.of(seed + m.id, m.length);
		sends[i] = m.mode == 0 ? p.comm.Issend(bytes, 0, m.length, MPI.BYTE, m.to, m.tag) : p.comm.Isend(bytes, 0, m.length, MPI.BYTE, m.to, m.tag);
		if (Place.EXPRESS) {
			// The array is the program's again: MPJ Express has packed it. A late read of it would show here.
			Arrays.fill(bytes, (byte) 0x5A);
		}
	}

	private static void check(Place p, Message m, Status status) {
		Statuses.check(status, m.from, m.tag, Kind.BYTE, m.length, "message " + m.id + " of the plan");
	}
}
