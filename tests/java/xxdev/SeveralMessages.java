// SPDX-License-Identifier: MIT
package xxdevtest;

import static harness.Task.pause;

import harness.Task;
import java.lang.ref.WeakReference;
import xxdev.Request;
import xxdev.Status;
import xxdev.Type;

/** Many non-blocking sends of arrays at once, whatever the program does until it waits for them. Two ranks: 0 sends, 1 receives. */
final class SeveralMessages extends Program {
	private static final int MESSAGES = 16;
	/** In bytes: copied, eager, by rendezvous. */
	private static final int[] SIZES = {2000, 40000, 1 << 20};
	private static final int DONE = 1;

	private int tag;

	public static void main(String[] args) throws Exception {
		new SeveralMessages().launch(args);
	}

	private Object make(Kind kind, int bytes, int i) {
		Object array = kind.make(bytes / 8);
		if (me == 0)
			kind.fill(array, 0, bytes / 8, i);
		return array;
	}

	private Kind kind(int i) {
		return i % 2 == 0 ? Kind.DOUBLES : Kind.BYTES;
	}

	/** Nothing but the library has a reference to what is sent. */
	private Request[] start(int bytes) {
		Request[] requests = new Request[MESSAGES];
		for (int i = 0; i < MESSAGES; i++) {
			Object array = make(kind(i), bytes, i);
			requests[i] = i % 5 == 4 ? dev.issend(array, ids[1], tag + i, CONTEXT) : dev.isend(array, ids[1], tag + i, CONTEXT);
		}
		return requests;
	}

	private void take(int i, int bytes) {
		Object in = make(kind(i), bytes, i);
		checkStatus(dev.recv(in, ids[0], tag + i, CONTEXT), 0, tag + i, kind(i).type, bytes / 8);
		kind(i).verify(in, bytes / 8, 0, bytes / 8, i);
	}

	private interface Rest {
		void run(Request[] requests) throws Exception;
	}

	/** Rank 0 starts several sends and does the rest; rank 1 takes it, in order or backwards, then reports it. */
	private void each(boolean backwards, boolean reports, Rest rest) throws Exception {
		for (int bytes : SIZES) {
			if (me == 0)
				rest.run(start(bytes));
			for (int i = 0; i < MESSAGES && me == 1; i++)
				take(backwards ? MESSAGES - 1 - i : i, bytes);
			if (me == 1 && reports)
				signal(0, DONE);
			tag += MESSAGES;
			meet();
		}
	}

	private void finish(Request request, int i) {
		Status status = request.iwait();
		checkStatus(status, 1, status.tag(), kind(i).type, status.count());
	}

	@Case
	void waitsInOrder() throws Exception {
		for (boolean backwards : new boolean[] {false, true})
			each(backwards, false, requests -> {
				for (int i = 0; i < MESSAGES; i++)
					finish(requests[i], i);
			});
	}

	@Case
	void waitsBackwards() throws Exception {
		for (boolean backwards : new boolean[] {false, true})
			each(backwards, false, requests -> {
				for (int i = MESSAGES - 1; i >= 0; i--)
					finish(requests[i], i);
			});
	}

	@Case
	void waitsForAny() throws Exception {
		each(true, false, requests -> {
			while (Request.iwaitany(requests) != null)
				continue;
		});
	}

	/** Another thing is waited for, which comes only when all have been received. */
	@Case
	void receivesMeanwhile() throws Exception {
		each(true, true, requests -> {
			await(1, DONE);
			for (int i = 0; i < MESSAGES; i++)
				finish(requests[i], i);
		});
	}

	@Case
	void probesMeanwhile() throws Exception {
		each(false, true, requests -> {
			while (dev.iprobe(ids[1], DONE, CONTEXT + 1) == null)
				Thread.onSpinWait();
			await(1, DONE);
			for (int i = 0; i < MESSAGES; i++)
				check(requests[i].test() != null, "it has been received");
		});
	}

	@Case
	void testsMeanwhile() throws Exception {
		each(true, true, requests -> {
			Request done = dev.irecv(new byte[0], ids[1], DONE, CONTEXT + 1);
			while (done.test() == null)
				Thread.onSpinWait();
			for (int i = 0; i < MESSAGES; i++)
				finish(requests[i], i);
		});
	}

	/** A thread that is in a receive already, perhaps asleep, sees to them; nobody else calls the library. */
	@Case
	void anotherThreadReceives() throws Exception {
		for (int bytes : SIZES) {
			if (me == 0) {
				Task other = Task.start(() -> await(1, DONE));
				pause();
				start(bytes);
				other.finish();
			} else {
				for (int i = 0; i < MESSAGES; i++)
					take(i, bytes);
				signal(0, DONE);
			}
			tag += MESSAGES;
			meet();
		}
	}

	/** The library lets go of what was sent. */
	@Case
	void arraysAreLetGo() throws Exception {
		for (boolean free : new boolean[] {false, true})
			for (int bytes : SIZES) {
				if (me == 0)
					letGo(bytes, free);
				else
					take(0, bytes);
				tag += MESSAGES;
				meet();
			}
	}

	private void letGo(int bytes, boolean free) throws Exception {
		Object array = make(kind(0), bytes, 0);
		WeakReference<Object> gone = new WeakReference<>(array);
		Request request = dev.isend(array, ids[1], tag, CONTEXT);
		array = null;
		if (free)
			request.free();
		else
			checkStatus(request.iwait(), 1, tag, Type.DOUBLE, bytes / 8);
		for (int i = 0; i < 200 && gone.get() != null; i++) {
			System.gc();
			pause();
			dev.isend(new byte[0], ids[0], 0, CONTEXT).iwait(); /* the next call lets go of what was given up */
			dev.recv(new byte[0], ids[0], 0, CONTEXT);
		}
		check(gone.get() == null, "the library must not keep an array that has been sent");
	}
}
