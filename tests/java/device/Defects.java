// SPDX-License-Identifier: MIT
package device;

import static harness.Task.pause;

import harness.Task;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.Set;
import mpjbuf.Buffer;
import mpjbuf.Type;
import mpjdev.Request;
import mpjdev.Status;
import xdev.Device;

/** What niodev does wrong (its nine demonstrated defects but the death of a peer, which has a test of its own). Two ranks. */
final class Defects extends Program {
	public static void main(String[] args) throws Exception {
		new Defects().launch(args);
	}

	private static final int[] LENGTHS = {1000, 20000, 400000, 3000000};

	@Case
	void truncationWithTheReceivePostedFirst() throws Exception {
		for (int length : LENGTHS) {
			if (me == 0) {
				await(1, 1);
				dev.send(pattern(length, 1), ids[1], 5, CONTEXT);
				dev.send(pattern(length, 2), ids[1], 5, CONTEXT);
			} else {
				Request small = dev.irecv(room(100), ids[0], 5, CONTEXT, null);
				Buffer good = room(length);
				Request next = dev.irecv(good, ids[0], 5, CONTEXT, null);
				signal(0, 1);
				fails(small::iwait, String.valueOf(length + 8), "108");
				checkCode(fails(small::iwait, String.valueOf(length + 8)), EMSGSIZE, 0);
				fails(small::itest, String.valueOf(length + 8));
				checkStatus(next.iwait(), 0, 5, Type.BYTE, length);
				checkPattern(good, length, 2);
			}
			meet();
		}
	}

	@Case
	void truncationWithTheMessageFirst() throws Exception {
		for (int length : LENGTHS) {
			if (me == 0) {
				Request first = dev.isend(pattern(length, 3), ids[1], 6, CONTEXT);
				Request second = dev.isend(pattern(length, 4), ids[1], 6, CONTEXT);
				signal(1, 2);
				first.iwait();
				second.iwait();
			} else {
				await(0, 2);
				Buffer small = room(50);
				byte[] before = new byte[58];
				fails(() -> dev.recv(small, ids[0], 6, CONTEXT), String.valueOf(length + 8), "58");
				byte[] after = new byte[58];
				((mpjbuf.NIOBuffer) small.getStaticBuffer()).getBuffer().duplicate().get(after);
				check(java.util.Arrays.equals(before, after), "a truncated message must not be written");
				Buffer good = room(length);
				checkStatus(dev.recv(good, ids[0], 6, CONTEXT), 0, 6, Type.BYTE, length);
				checkPattern(good, length, 4);
			}
			meet();
		}
	}

	@Case
	void peekGivesEveryRequestOnce() throws Exception {
		int count = 20;
		if (me == 0) {
			await(1, 3);
			for (int i = 0; i < count; i++)
				dev.send(ints(i), ids[1], i, CONTEXT);
			return;
		}
		Set<Request> posted = Collections.newSetFromMap(new IdentityHashMap<>());
		for (int i = 0; i < count; i++)
			posted.add(dev.irecv(empty(), ids[0], i, CONTEXT, null));
		signal(0, 3);
		for (int i = 0; i < count; i++) {
			Request peeked = dev.peek();
			check(posted.remove(peeked), "peek must return posted requests, each once");
			equal(1, peeked.iwait().numEls, "count");
		}
	}

	@Case
	void iwaitanyReturns() throws Exception {
		int count = 8;
		if (me == 0) {
			await(1, 4);
			for (int i = count - 1; i >= 0; i--) {
				dev.send(ints(i), ids[1], i, CONTEXT);
				await(1, 5);
			}
			return;
		}
		mpjdev.javampjdev.MPJDev.dev = dev; /* iwaitany asks it */
		Request[] requests = new Request[count];
		for (int i = 0; i < count; i++)
			requests[i] = dev.irecv(empty(), ids[0], i, CONTEXT, null);
		signal(0, 4);
		for (int i = count - 1; i >= 0; i--) {
			Status status = Request.iwaitany(requests);
			equal(i, status.index, "index");
			equal(i, status.tag, "tag");
			requests[i] = null;
			signal(0, 5);
		}
		mpjdev.javampjdev.MPJDev.dev = null;
	}

	@Case
	void selfSendMatchedByAnotherThread() throws Exception {
		for (int length : LENGTHS) {
			Task sender = Task.start(() -> dev.ssend(pattern(length, 5), ids[me], 7, CONTEXT));
			pause();
			Buffer buf = room(length);
			Task receiver = Task.start(() -> checkStatus(dev.recv(buf, ids[me], 7, CONTEXT), me, 7, Type.BYTE, length));
			receiver.finish();
			sender.finish();
			checkPattern(buf, length, 5);
		}
	}

	@Case
	void selfSendIntoWildcards() throws Exception {
		Request request = dev.irecv(empty(), Device.ANY_SRC, Device.ANY_TAG, CONTEXT, null);
		dev.send(ints(1, 2, 3), ids[me], 1234, CONTEXT);
		checkStatus(request.iwait(), me, 1234, Type.INT, 3);
	}

	@Case
	void smallSelfSendIsBuffered() throws Exception {
		dev.send(ints(4, 5), ids[me], 9, CONTEXT);
		Buffer buf = empty();
		checkStatus(dev.recv(buf, ids[me], 9, CONTEXT), me, 9, Type.INT, 2);
		equal(5, readInts(buf)[1], "element");
	}

	@Case
	void bufferWithoutSections() throws Exception {
		Buffer none = new Buffer(16);
		none.commit();
		if (me == 0) {
			dev.send(none, ids[1], 10, CONTEXT);
			dev.isend(none, ids[1], 10, CONTEXT).iwait();
			return;
		}
		Status probed = dev.probe(ids[0], 10, CONTEXT);
		checkStatus(probed, 0, 10, Type.UNDEFINED, 0);
		Buffer buf = empty();
		checkStatus(dev.recv(buf, ids[0], 10, CONTEXT), 0, 10, Type.UNDEFINED, 0);
		equal(0, buf.getSize(), "size");
		Status status = dev.irecv(empty(), ids[0], 10, CONTEXT, null).iwait();
		checkStatus(status, 0, 10, Type.UNDEFINED, 0);
		equal(0, new mpi_like(status).elements(), "elements");
	}

	/** What mpi.Status.Get_elements does first: it must not meet a null type. */
	private static final class mpi_like {
		private final Status status;

		mpi_like(Status status) {
			this.status = status;
		}

		int elements() {
			return status.type.getCode() == Type.UNDEFINED.getCode() ? 0 : status.numEls;
		}
	}

	@Case
	void bufferOfTwoSectionsSentThreeTimes() throws Exception {
		if (me == 0) {
			Buffer buf = new Buffer(64);
			buf.putSectionHeader(Type.INT);
			buf.write(new int[] {1, 2, 3}, 0, 3);
			buf.putSectionHeader(Type.LONG);
			buf.write(new long[] {4}, 0, 1);
			buf.commit();
			for (int i = 0; i < 3; i++)
				dev.send(buf, ids[1], 11, CONTEXT);
			return;
		}
		for (int i = 0; i < 3; i++) {
			Buffer buf = empty();
			dev.recv(buf, ids[0], 11, CONTEXT);
			buf.commit();
			equal(Type.INT, buf.getSectionHeader(), "first section");
			equal(3, buf.getSectionSize(), "first count");
			buf.read(new int[3], 0, 3);
			equal(Type.LONG, buf.getSectionHeader(), "second section");
			equal(1, buf.getSectionSize(), "second count");
		}
	}
}
