// SPDX-License-Identifier: MIT
package xxdevtest;

import static harness.Task.pause;

import harness.Task;
import java.util.Arrays;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import xxdev.Device;
import xxdev.ErrorCode;
import xxdev.Request;
import xxdev.Status;
import xxdev.Type;
import xxdev.XXDevException;
import xxdev.ibvdev.ByRank;
import xxdev.ibvdev.IBVDevice;

/** Segments of java.lang.foreign as buffers: every kind of memory, arenas that are closed too early, confined ones. JDK 22 or later. Two ranks. */
final class Segments extends Program {
	private static final int LARGE = 3 << 20;
	private static final String[] ARENAS = {"global", "ofAuto", "ofConfined", "ofShared"};
	private static final String[] CLOSEABLE = {"ofConfined", "ofShared"};

	public static void main(String[] args) throws Exception {
		new Segments().launch(args);
	}

	/** Kinds of memory: the arenas, then arrays of byte, short, long and double. */
	private static final int KINDS = ARENAS.length + 4;

	private static Object make(int kind, int bytes) {
		switch (kind - ARENAS.length) {
		case 0:
			return Foreign.ofArray(new byte[bytes]);
		case 1:
			return Foreign.slice(Foreign.ofArray(new short[(bytes + 1) / 2]), 0, bytes);
		case 2:
			return Foreign.slice(Foreign.ofArray(new long[(bytes + 7) / 8]), 0, bytes);
		case 3:
			return Foreign.slice(Foreign.ofArray(new double[(bytes + 7) / 8]), 0, bytes);
		default: /* never closed: a test of a few messages */
			return Foreign.allocate(Foreign.arena(ARENAS[kind]), bytes);
		}
	}

	private static byte[] pattern(int length, int from, int n, int seed) {
		byte[] bytes = new byte[length];
		for (int i = 0; i < n; i++)
			bytes[from + i] = (byte) ((i + 1) * 31 + (i >> 8) + seed);
		return bytes;
	}

	private static void verify(Object segment, int from, int n, int seed, String what) {
		check(Arrays.equals(pattern((int) Foreign.size(segment), from, n, seed), Foreign.read(segment)),
				what + ": the bytes from " + from + " to " + (from + n));
	}

	/** As Messages.exchange: blocking calls by turns, then non-blocking ones. */
	private void exchange(int mode, Object out, Object in, int from, int n, int room) {
		int other = 1 - me;
		if (mode < 4) {
			for (int turn = 0; turn < 2; turn++)
				if (turn == me && mode % 2 == 0)
					dev.send(out, from, n, ids[other], mode, CONTEXT);
				else if (turn == me)
					dev.ssend(out, from, n, ids[other], mode, CONTEXT);
				else
					checkStatus(mode < 2 ? dev.recv(in, from, room, ids[other], mode, CONTEXT)
										 : dev.recv(in, from, room, Device.ANY_SRC, mode, CONTEXT, 100, TimeUnit.SECONDS),
							other, mode, Type.BYTE, n);
			return;
		}
		Request receive = dev.irecv(in, from, room, ids[other], Device.ANY_TAG, CONTEXT);
		Request send = mode % 2 == 0 ? dev.isend(out, from, n, ids[other], mode, CONTEXT) : dev.issend(out, from, n, ids[other], mode, CONTEXT);
		Status status = null;
		while (mode >= 6 && (status = receive.test()) == null)
			send.test();
		checkStatus(status != null ? status : receive.iwait(), other, mode, Type.BYTE, n);
		checkStatus(send.iwait(), other, mode, Type.BYTE, n);
	}

	@Case
	void everyMemoryAndPortion() {
		int[] lengths = {0, 1, 7, 64, 1501, 70001, LARGE};
		for (int kind = 0; kind < KINDS; kind++)
			for (int n : lengths)
				for (int mode = n == LARGE ? kind % 2 : 0; mode < 8; mode += n == LARGE ? 3 : 1) {
					int from = mode % 3 == 0 ? 0 : mode % 3 == 1 ? 5 : 8;
					int after = mode % 2 * 9;
					Object out = make(kind, from + n + after);
					Object in = make((kind + mode) % KINDS, from + n + after);
					Foreign.write(out, pattern(from + n + after, from, n, n + me));
					exchange(mode, out, in, from, n, n + after);
					verify(in, from, n, n + 1 - me, "memory " + kind + ", mode " + mode);
				}
	}

	@Case
	void wholeSegmentsAndSlices() {
		for (int kind = 0; kind < KINDS; kind++) {
			Object out = make(kind, 100);
			Object in = make(kind, 4000);
			Foreign.write(out, pattern(100, 16, 50, me));
			Request receive = dev.irecv(Foreign.slice(in, 24, 50), ids[1 - me], 1, CONTEXT);
			dev.send(Foreign.readOnly(Foreign.slice(out, 16, 50)), ids[1 - me], 1, CONTEXT);
			checkStatus(receive.iwait(), 1 - me, 1, Type.BYTE, 50);
			verify(in, 24, 50, 1 - me, "memory " + kind);
		}
	}

	@Case
	void arraysAndSegmentsMix() throws Exception {
		Object segment = Foreign.allocate(Foreign.arena("ofShared"), 40);
		byte[] array = new byte[40];
		Foreign.write(segment, pattern(40, 0, 40, 1));
		Request receive = dev.irecv(array, ids[me], 1, CONTEXT);
		dev.send(segment, ids[me], 1, CONTEXT);
		receive.iwait();
		check(Arrays.equals(pattern(40, 0, 40, 1), array), "the array has the segment's bytes");
		Request wrong = dev.irecv(segment, ids[me], 2, CONTEXT);
		dev.send(new int[3], ids[me], 2, CONTEXT);
		equal(ErrorCode.TYPE_MISMATCH, fails(wrong::iwait, "3 int", "MemorySegment").code(), "code");
		Request small = dev.irecv(segment, 10, 20, ids[me], 3, CONTEXT);
		dev.send(array, ids[me], 3, CONTEXT);
		equal(ErrorCode.TRUNCATED, fails(small::iwait, "40 byte", "20 byte", "MemorySegment", "elements 10 to 29").code(), "code");
		verify(segment, 0, 40, 1, "unchanged");
	}

	/** An int[] whose segment gets a message that ends within an element. */
	@Case
	void partOfAnElement() {
		Object in = Foreign.ofArray(new int[1000]);
		Request receive = dev.irecv(in, ids[me], 1, CONTEXT);
		dev.send(pattern(1003, 0, 1003, 4), ids[me], 1, CONTEXT);
		checkStatus(receive.iwait(), me, 1, Type.BYTE, 1003);
		verify(in, 0, 1003, 4, "not only whole elements");
	}

	private void refused(Task.Action action, String... words) throws Exception {
		equal(ErrorCode.BAD_ARGUMENT, fails(action, words).code(), "code");
	}

	@Case
	void refusals() throws Exception {
		for (int kind = 0; kind < KINDS; kind++) {
			Object segment = make(kind, 20);
			refused(() -> dev.irecv(Foreign.readOnly(segment), ids[me], 1, CONTEXT), "irecv", "read-only");
			refused(() -> dev.recv(Foreign.readOnly(segment), 0, 1, ids[me], 1, CONTEXT), "recv", "read-only");
			refused(() -> dev.send(segment, 10, 11, ids[me], 1, CONTEXT), "offset 10, count 11", "20 bytes");
			refused(() -> dev.isend(segment, -1, 1, ids[me], 1, CONTEXT), "offset -1");
			refused(() -> dev.irecv(segment, Integer.MAX_VALUE, Integer.MAX_VALUE, ids[me], 1, CONTEXT), "portion");
		}
		Object memory = Foreign.allocate(Foreign.arena("global"), 100);
		Object huge = Foreign.resized(memory, 3L << 30); /* refused before it is touched */
		refused(() -> dev.send(huge, ids[me], 1, CONTEXT), "3221225472 bytes", "2147483647");
		refused(() -> dev.irecv(huge, ids[me], 1, CONTEXT), "3221225472 bytes", "2147483647");
		Object copied = Foreign.resized(Foreign.allocate(Foreign.arena("ofShared"), 100), Integer.MAX_VALUE);
		refused(() -> dev.irecv(copied, ids[me], 1, CONTEXT), "2147483647 bytes that must be copied", "Arena.global()");
		Foreign.write(memory, pattern(100, 0, 100, 3));
		Request receive = dev.irecv(new byte[100], ids[me], 1, CONTEXT);
		dev.send(huge, 0, 100, ids[me], 1, CONTEXT);
		checkStatus(receive.iwait(), me, 1, Type.BYTE, 100);
	}

	@Case
	void closedBefore() throws Exception {
		for (String kind : CLOSEABLE) {
			Object arena = Foreign.arena(kind);
			Object segment = Foreign.allocate(arena, 100);
			Foreign.close(arena);
			refused(() -> dev.send(segment, ids[me], 1, CONTEXT), "send", "closed");
			refused(() -> dev.issend(segment, 0, 10, ids[me], 1, CONTEXT), "issend", "closed");
			refused(() -> dev.recv(segment, ids[me], 1, CONTEXT), "recv", "closed");
			refused(() -> dev.irecv(segment, ids[me], 1, CONTEXT), "irecv", "closed");
		}
	}

	/** The message still has what was in the segment when the send began. */
	@Case
	void closedDuringSends() {
		for (String kind : CLOSEABLE)
			for (int n : new int[] {60, 5000, LARGE}) {
				Object arena = Foreign.arena(kind);
				Object out = Foreign.allocate(arena, n);
				Foreign.write(out, pattern(n, 0, n, n));
				Request send = dev.issend(out, ids[1 - me], 1, CONTEXT);
				Foreign.close(arena);
				Object reused = Foreign.allocate(Foreign.arena("ofAuto"), n);
				Foreign.write(reused, new byte[n]);
				byte[] in = new byte[n];
				dev.recv(in, ids[1 - me], 1, CONTEXT);
				send.iwait();
				check(Arrays.equals(pattern(n, 0, n, n), in), kind + ", " + n + " bytes");
			}
	}

	/** The receive fails, the memory's next user is left alone, and so is the next message. */
	@Case
	void closedDuringReceives() throws Exception {
		for (String kind : CLOSEABLE)
			for (int n : new int[] {60, 5000, LARGE}) {
				Object arena = Foreign.arena(kind);
				Request receive = dev.irecv(Foreign.allocate(arena, n), ids[1 - me], 1, CONTEXT);
				Request next = dev.irecv(new byte[n], ids[1 - me], 1, CONTEXT);
				Foreign.close(arena);
				Object[] reused = new Object[8];
				for (int i = 0; i < reused.length; i++)
					Foreign.write(reused[i] = Foreign.allocate(Foreign.arena("ofAuto"), n), pattern(n, 0, n, i));
				meet();
				Request[] sends = {dev.isend(pattern(n, 0, n, 77), ids[1 - me], 1, CONTEXT), dev.isend(pattern(n, 0, n, 78), ids[1 - me], 1, CONTEXT)};
				XXDevException e = fails(receive::iwait, "irecv", "arena", "closed");
				equal(ErrorCode.BUFFER_CLOSED, e.code(), "code");
				equal(1 - me, e.rank(), "rank");
				check(receive.isnull(), "complete");
				checkStatus(next.iwait(), 1 - me, 1, Type.BYTE, n);
				for (Request send : sends)
					send.iwait();
				for (int i = 0; i < reused.length; i++)
					verify(reused[i], 0, n, i, kind + ": memory that is another's now");
			}
	}

	/** A thread that blocks keeps no shared arena open either. */
	@Case
	void closedDuringBlockingReceive() throws Exception {
		Object arena = Foreign.arena("ofShared");
		Object in = Foreign.allocate(arena, 9000);
		Task receiver = Task.start(() -> equal(ErrorCode.BUFFER_CLOSED, fails(() -> dev.recv(in, ids[me], 1, CONTEXT), "recv", "closed").code(), "code"));
		pause();
		Foreign.close(arena);
		dev.send(new byte[9000], ids[me], 1, CONTEXT);
		receiver.finish();
	}

	@Case
	void confinedToAnotherThread() throws Exception {
		Object segment = Foreign.allocate(Foreign.arena("ofConfined"), 5000);
		Foreign.write(segment, new byte[5000]);
		Task.start(() -> {
				refused(() -> dev.send(segment, ids[me], 1, CONTEXT), "send", "confined to another thread");
				refused(() -> dev.isend(segment, ids[me], 1, CONTEXT), "isend", "confined to another thread");
				refused(() -> dev.recv(segment, 0, 10, ids[me], 1, CONTEXT), "recv", "confined to another thread");
				refused(() -> dev.irecv(segment, ids[me], 1, CONTEXT), "irecv", "confined to another thread");
			}).finish();
		/* Only its thread completes a receive; the attempts of others change nothing. */
		Request receive = dev.irecv(segment, ids[me], 1, CONTEXT);
		dev.send(pattern(5000, 0, 5000, 9), ids[me], 1, CONTEXT);
		Task.start(() -> {
				refused(receive::iwait, "irecv", "confined to another thread");
				refused(receive::test, "irecv", "confined to another thread");
				refused(() -> receive.iwait(1, TimeUnit.SECONDS), "irecv", "confined to another thread");
				refused(() -> Request.iwaitany(new Request[] {null, receive}), "irecv", "confined to another thread");
			}).finish();
		check(!receive.isnull(), "nobody has taken its outcome");
		checkStatus(receive.iwait(), me, 1, Type.BYTE, 5000);
		verify(segment, 0, 5000, 9, "delivered by its thread");
		Task.start(() -> checkStatus(receive.iwait(), me, 1, Type.BYTE, 5000)).finish();
	}

	/** Any thread may complete a send, or cancel a receive, of confined memory. */
	@Case
	void confinedSendsAndCancel() throws Exception {
		Object segment = Foreign.allocate(Foreign.arena("ofConfined"), 5000);
		Request send = dev.issend(segment, ids[me], 1, CONTEXT);
		Task waiter = Task.start(send::iwait);
		dev.recv(new byte[5000], ids[me], 1, CONTEXT);
		waiter.finish();
		Request receive = dev.irecv(segment, ids[me], 2, CONTEXT);
		Task.start(() -> check(receive.cancel(), "unmatched")).finish();
		equal(ErrorCode.CANCELLED, fails(receive::iwait, "cancelled").code(), "code");
	}

	@Case
	void cancelTimeoutAndFree() throws Exception {
		for (int kind = 0; kind < KINDS; kind++) {
			Object segment = make(kind, 300);
			Request receive = dev.irecv(segment, ids[me], 1, CONTEXT);
			check(receive.test() == null && receive.iwait(1, TimeUnit.MILLISECONDS) == null, "nothing has come");
			check(receive.cancel(), "unmatched");
			fails(receive::iwait, "cancelled");
			check(dev.recv(segment, ids[me], 1, CONTEXT, 1, TimeUnit.MILLISECONDS) == null, "in time");
			Request freed = dev.irecv(segment, ids[me], 2, CONTEXT);
			freed.free();
			check(freed.isnull(), "freed");
			dev.send(new byte[300], ids[me], 2, CONTEXT);
			Request[] requests = {dev.irecv(segment, ids[me], 3, CONTEXT), dev.isend(segment, ids[me], 3, CONTEXT)};
			check(Request.iwaitany(requests) != null && Request.iwaitany(requests) != null && Request.iwaitany(requests) == null, "both");
		}
	}

	@Case
	void matchedProbe() throws Exception {
		ByRank device = new ByRank((IBVDevice) dev);
		for (int kind = 0; kind < KINDS; kind++) {
			Object segment = make(kind, 300);
			Request send = dev.isend(pattern(200, 0, 200, kind), ids[me], 1, CONTEXT);
			checkStatus(device.match(true, me, 1, CONTEXT).irecv("irecv", segment, 50, 250).iwait(), me, 1, Type.BYTE, 200);
			verify(segment, 50, 200, kind, "memory " + kind);
			send.iwait();
		}
	}

	/** A virtual thread owns a confined arena as any other does. */
	@Case
	void virtualThreads() throws Exception {
		AtomicReference<Throwable> failure = new AtomicReference<>();
		Runnable exchange = () -> {
			try {
				for (int kind = 0; kind < KINDS; kind++)
					for (int n : new int[] {40, 70000}) {
						Object out = make(kind, n);
						Object in = make(kind, n);
						Foreign.write(out, pattern(n, 0, n, me));
						Request receive = dev.irecv(in, ids[1 - me], 1, CONTEXT);
						dev.send(out, ids[1 - me], 1, CONTEXT);
						checkStatus(receive.iwait(), 1 - me, 1, Type.BYTE, n);
						verify(in, 0, n, 1 - me, "memory " + kind);
					}
			} catch (Throwable e) {
				failure.set(e);
			}
		};
		((Thread) Thread.class.getMethod("startVirtualThread", Runnable.class).invoke(null, exchange)).join();
		if (failure.get() != null)
			throw new AssertionError("in a virtual thread", failure.get());
	}

	/** Many at once, of arenas that live as long as their messages. */
	@Case
	void manyShortArenas() {
		for (int round = 0; round < 50; round++) {
			Object arena = Foreign.arena(CLOSEABLE[round % 2]);
			Request[] receives = new Request[20];
			Object[] in = new Object[receives.length];
			for (int i = 0; i < receives.length; i++)
				receives[i] = dev.irecv(in[i] = Foreign.allocate(arena, 100 * i + 1), ids[1 - me], i, CONTEXT);
			for (int i = 0; i < receives.length; i++) {
				Object out = Foreign.allocate(arena, 100 * i + 1);
				Foreign.write(out, pattern(100 * i + 1, 0, 100 * i + 1, i + me));
				dev.send(out, ids[1 - me], i, CONTEXT);
			}
			for (int i = 0; i < receives.length; i++) {
				checkStatus(receives[i].iwait(), 1 - me, i, Type.BYTE, 100 * i + 1);
				verify(in[i], 0, 100 * i + 1, i + 1 - me, "round " + round);
			}
			Foreign.close(arena);
		}
	}
}
