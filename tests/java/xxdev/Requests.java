// SPDX-License-Identifier: MIT
package xxdevtest;

import static harness.Task.pause;

import harness.Task;
import java.lang.ref.WeakReference;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.util.concurrent.atomic.AtomicInteger;
import xxdev.Device;
import xxdev.Request;
import xxdev.Status;
import xxdev.Type;

/** Completion: test, iwait, iwaitany, cancel, free, peek, several threads, reachability. Two ranks. */
final class Requests extends Program {
	public static void main(String[] args) throws Exception {
		new Requests().launch(args);
	}

	@Case
	void outcomeCanBeTakenAgain() {
		Request receive = dev.irecv(new int[4], ids[me], 1, CONTEXT);
		check(receive.test() == null && !receive.isnull(), "nothing has come");
		Request send = dev.isend(new int[3], ids[me], 1, CONTEXT);
		checkStatus(receive.iwait(), me, 1, Type.INT, 3);
		check(receive.isnull() && receive.iwait() == receive.test(), "always the same");
		checkStatus(send.iwait(), me, 1, Type.INT, 3);
	}

	@Case
	void cancel() throws Exception {
		int[] in = new int[4];
		Request receive = dev.irecv(in, Device.ANY_SRC, 2, CONTEXT);
		check(receive.cancel(), "unmatched");
		fails(receive::iwait, "cancelled");
		fails(receive::test, "cancelled");
		check(!receive.cancel() && receive.isnull(), "once");
		Request send = dev.isend(new int[] {1, 2}, ids[me], 2, CONTEXT);
		check(!send.cancel(), "sends cannot be cancelled");
		dev.probe(ids[me], 2, CONTEXT); /* it has come */
		Request matched = dev.irecv(in, ids[me], 2, CONTEXT);
		check(!matched.cancel(), "matched");
		checkStatus(matched.iwait(), me, 2, Type.INT, 2);
		equal(2, in[1], "element 1");
		send.iwait();
		Request awaited = dev.irecv(in, ids[me], 3, CONTEXT);
		Task waiter = Task.start(() -> fails(awaited::iwait, "cancelled"));
		pause();
		check(awaited.cancel(), "unmatched, while another thread waits");
		waiter.finish();
	}

	@Case
	void waitForAny() throws Exception {
		int n = 8;
		Request[] requests = new Request[n + 2];
		int[][] in = new int[n][1];
		for (int i = 0; i < n; i++)
			requests[i + 1] = dev.irecv(in[i], ids[1 - me], 10 + i, CONTEXT);
		requests[n + 1] = requests[1]; /* twice is once */
		meet();
		for (int i = n - 1; i >= 0; i--) {
			dev.send(new int[] {i + 1}, ids[1 - me], 10 + i, CONTEXT);
			Status status = Request.iwaitany(requests);
			int tag = 10 + i;
			checkStatus(status, 1 - me, tag, Type.INT, 1);
			check(requests[status.index()].isnull() && (status.index() == i + 1 || i == 0 && status.index() == n + 1), "index");
			equal(i + 1, in[i][0], "what came");
			meet();
		}
		check(Request.iwaitany(requests) == null && Request.iwaitany(new Request[2]) == null, "nothing is left");
		Request[] mixed = {dev.irecv(new Object[1], ids[me], 30, CONTEXT), dev.isend(new java.util.ArrayDeque<>(), ids[me], 30, CONTEXT)};
		check(Request.iwaitany(mixed) != null && Request.iwaitany(mixed) != null && Request.iwaitany(mixed) == null, "two, of objects");
		Request failing = dev.irecv(new int[1], ids[me], 31, CONTEXT);
		dev.isend(new double[1], ids[me], 31, CONTEXT).iwait();
		fails(() -> Request.iwaitany(new Request[] {failing}), "1 double", "1 int");
		check(failing.isnull(), "its outcome was taken");
	}

	@Case
	void threadsWaitForAny() throws Exception {
		int n = 40;
		Request[] requests = new Request[n];
		for (int i = 0; i < n; i++)
			requests[i] = dev.irecv(new int[1], ids[1 - me], 100 + i, CONTEXT);
		AtomicInteger done = new AtomicInteger();
		Task[] tasks = new Task[3];
		for (int t = 0; t < tasks.length; t++)
			tasks[t] = Task.start(() -> {
				Status status;
				while ((status = Request.iwaitany(requests)) != null)
					done.incrementAndGet();
			});
		for (int i = 0; i < n; i++)
			dev.send(new int[] {i}, ids[1 - me], 100 + i * 7 % n, CONTEXT);
		for (Task task : tasks)
			task.finish();
		check(done.get() >= n, "all of them: " + done);
		for (Request request : requests)
			check(request.isnull(), "its outcome was taken");
	}

	/** A request that another thread works on when iwaitany begins belongs to those that are waited for as soon as that thread lets it go. */
	@Case
	void waitForAnyMissesNothing() throws Exception {
		Request held = dev.irecv(new int[1], ids[me], 20, CONTEXT);
		Request free = dev.irecv(new int[1], ids[me], 21, CONTEXT);
		Method claim = held.getClass().getDeclaredMethod("claim");
		Method release = held.getClass().getDeclaredMethod("unclaim");
		claim.setAccessible(true);
		release.setAccessible(true);
		check((boolean) claim.invoke(held), "nobody works on it"); /* as test() does, for a moment */
		Task any = Task.start(() -> equal(0, Request.iwaitany(new Request[] {held, free}).index(), "index"));
		pause();
		release.invoke(held);
		dev.send(new int[1], ids[me], 20, CONTEXT);
		any.join(10000);
		boolean missed = any.isAlive();
		dev.send(new int[1], ids[me], 21, CONTEXT); /* ends the thread if it waits for this one alone */
		any.join();
		check(!missed, "iwaitany does not see a request that another thread has let go");
		any.finish();
		free.iwait();
	}

	/** A request that another thread waits for is seen when that thread completes it. */
	@Case
	void waitForAnySeesWhatOthersComplete() throws Exception {
		Request others = dev.irecv(new int[1], ids[me], 22, CONTEXT);
		Request free = dev.irecv(new int[1], ids[me], 23, CONTEXT);
		Task waiter = Task.start(others::iwait);
		pause();
		Task any = Task.start(() -> check(Request.iwaitany(new Request[] {others, free}) != null, "there are two"));
		pause();
		dev.send(new int[1], ids[me], 22, CONTEXT);
		waiter.finish();
		any.join(10000);
		boolean missed = any.isAlive();
		dev.send(new int[1], ids[me], 23, CONTEXT);
		any.join();
		check(!missed, "iwaitany does not see a request that another thread has completed");
		any.finish();
		free.iwait();
	}

	@Case
	void giveUp() throws Exception {
		for (Object in : new Object[] {new int[100000], ByteBuffer.allocateDirect(400000), new Object[1]}) {
			Request receive = dev.irecv(in, ids[1 - me], 40, CONTEXT);
			receive.free();
			check(receive.isnull(), "free");
			Object out = in instanceof Object[] ? new java.util.ArrayList<>(java.util.List.of("x"))
					: in instanceof int[]       ? new int[100000]
												: ByteBuffer.allocateDirect(400000);
			Request send = dev.isend(out, ids[1 - me], 40, CONTEXT);
			send.free();
			receive = null;
			send = null;
			meet();
		}
		Request receive = dev.irecv(new int[1], ids[me], 41, CONTEXT);
		Task waiter = Task.start(receive::iwait);
		while (!isBlocked(waiter))
			pause();
		fails(receive::free, "another thread");
		dev.send(new int[1], ids[me], 41, CONTEXT);
		waiter.finish();
	}

	/** More receives of short arrays than a thread has bounce buffers; half are completed by another thread. */
	@Case
	void manyShortReceives() throws Exception {
		int n = 700;
		int[][] in = new int[n][8];
		Request[] receives = new Request[n];
		for (int round = 0; round < 2; round++) {
			for (int i = 0; i < n; i++)
				receives[i] = dev.irecv(in[i], 2, 5, ids[1 - me], 50, CONTEXT);
			meet();
			for (int i = 0; i < n; i++)
				dev.send(new int[] {i, -i, i + 1, round}, ids[1 - me], 50, CONTEXT);
			Task helper = Task.start(() -> {
				for (int i = 1; i < n; i += 2)
					equal(4L, receives[i].iwait().count(), "elements of " + i);
			});
			for (int i = 0; i < n; i += 2)
				equal(4L, receives[i].iwait().count(), "elements of " + i);
			helper.finish();
			for (int i = 0; i < n; i++)
				equal(java.util.List.of(0, 0, i, -i, i + 1, round, 0, 0), java.util.Arrays.stream(in[i]).boxed().collect(java.util.stream.Collectors.toList()),
						"array " + i);
			meet();
		}
	}

	/** Nothing is seen of a short receive that was given up, also when its memory is used again. */
	@Case
	void giveUpShortReceives() throws Exception {
		byte[] given = {7};
		byte[] in = new byte[1];
		for (int i = 0; i < 300; i++)
			dev.irecv(given, ids[me], 51, CONTEXT).free();
		for (int i = 0; i < 300; i++) {
			Request receive = dev.irecv(in, ids[me], 52, CONTEXT);
			dev.send(new byte[] {(byte) i}, ids[me], 51, CONTEXT);
			dev.send(new byte[] {(byte) (i + 1)}, ids[me], 52, CONTEXT);
			receive.iwait();
			equal((byte) (i + 1), in[0], "what came");
		}
		equal((byte) 7, given[0], "what was given up");
	}

	private static boolean isBlocked(Thread thread) {
		StackTraceElement[] stack = thread.getStackTrace();
		boolean parked = thread.getState() == Thread.State.WAITING;
		return stack.length > 0 && stack[0].isNativeMethod() && (parked || stack[0].getClassName().equals("xxdev.ibvdev.Native"));
	}

	@Case
	void peekGivesEachOnce() throws Exception {
		int n = 60;
		int other = 1 - me;
		Object[][] in = new Object[n][1];
		for (int i = 0; i < n; i++)
			dev.irecv(i % 2 == 0 ? in[i] : new byte[10], ids[other], 200 + i, CONTEXT);
		meet();
		for (int i = 0; i < n; i++)
			dev.send(i % 2 == 0 ? new java.util.ArrayList<>(java.util.List.of(i)) : new byte[10], ids[other], 200 + i, CONTEXT);
		AtomicInteger sum = new AtomicInteger();
		Task[] tasks = new Task[3];
		for (int t = 0; t < tasks.length; t++)
			tasks[t] = Task.start(() -> {
				for (int i = 0; i < n / 3; i++)
					sum.addAndGet(dev.peek().iwait().tag());
			});
		for (Task task : tasks)
			task.finish();
		equal(n * 200 + n * (n - 1) / 2, sum.get(), "every request once");
		for (int i = 0; i < n; i += 2)
			equal(java.util.List.of(i), in[i][0], "object " + i);
	}

	@Case
	void severalThreadsWaitForOne() throws Exception {
		for (int round = 0; round < 20; round++) {
			int[] in = new int[1];
			Request receive = dev.irecv(in, ids[me], 50, CONTEXT);
			Task[] waiters = new Task[4];
			int expected = round;
			for (int i = 0; i < waiters.length; i++)
				waiters[i] = Task.start(() -> {
					checkStatus(receive.iwait(), me, 50, Type.INT, 1);
					equal(expected, in[0], "what came");
				});
			Task tester = Task.start(() -> {
				while (receive.test() == null)
					Thread.onSpinWait();
			});
			if (round % 2 == 0)
				pause();
			dev.send(new int[] {round}, ids[me], 50, CONTEXT);
			for (Task waiter : waiters)
				waiter.finish();
			tester.finish();
		}
	}

	@Case
	void synchronousSendsWait() throws Exception {
		for (int n : new int[] {1, 300000}) {
			if (me == 0) {
				Request request = dev.issend(new byte[n], ids[1], 60, CONTEXT);
				for (int i = 0; i < 1000; i++)
					check(request.test() == null, "no receive has been posted");
				Task blocked = Task.start(() -> dev.ssend(new byte[n], ids[1], 61, CONTEXT));
				Task object = Task.start(() -> dev.ssend(new java.util.ArrayList<>(), ids[1], 62, CONTEXT));
				pause();
				check(blocked.isAlive() && object.isAlive(), "no receive has been posted");
				signal(1, 1);
				request.iwait();
				blocked.finish();
				object.finish();
			} else {
				await(0, 1);
				dev.recv(new Object[1], ids[0], 62, CONTEXT);
				dev.recv(new byte[n], ids[0], 61, CONTEXT);
				dev.recv(new byte[n], ids[0], 60, CONTEXT);
			}
			meet();
		}
	}

	@Case
	void buffersStayUntilTheEnd() throws Exception {
		int n = 20;
		int bytes = 400000;
		if (me == 0) {
			for (int i = 0; i < n; i++) {
				Object buf = (i % 2 == 0 ? Kind.DIRECT : Kind.BYTES).make(bytes);
				Kind.BYTES.fill(buf, 0, bytes, i);
				dev.isend(buf, ids[1], 70 + i, CONTEXT); /* request and buffer are dropped */
			}
			for (int i = 0; i < 5; i++) {
				System.gc();
				ByteBuffer.allocateDirect(bytes); /* would take the memory of what was freed */
			}
			signal(1, 1);
			for (int i = 0; i < n; i++)
				dev.peek().iwait();
		} else {
			await(0, 1);
			for (int i = 0; i < n; i++) {
				byte[] in = new byte[bytes];
				dev.recv(in, ids[0], 70 + i, CONTEXT);
				Kind.BYTES.verify(in, bytes, 0, bytes, i);
			}
		}
	}

	@Case
	void completedRequestsLetGo() throws Exception {
		WeakReference<Object> buffer = receiveAndForget();
		for (int i = 0; i < 50 && buffer.get() != null; i++) {
			System.gc();
			pause();
		}
		check(buffer.get() == null, "the device must not keep the buffer of a request that is complete");
	}

	private WeakReference<Object> receiveAndForget() {
		Object[] in = new Object[1];
		Request request = dev.irecv(in, ids[me], 90, CONTEXT);
		dev.send(new java.util.ArrayList<>(java.util.List.of(1)), ids[me], 90, CONTEXT);
		request.iwait();
		return new WeakReference<>(in[0]);
	}

	@Case
	void threadsAtOnce() throws Exception {
		int threads = 4;
		int rounds = QUICK ? 100 : 400;
		Task[] tasks = new Task[threads];
		for (int t = 0; t < threads; t++) {
			int tag = 300 + t;
			tasks[t] = Task.start(() -> pingPong(tag, rounds));
		}
		for (Task task : tasks)
			task.finish();
	}

	private void pingPong(int tag, int rounds) {
		for (int i = 0; i < rounds; i++) {
			Kind kind = Kind.values()[(i + tag) % Kind.values().length];
			int n = i % 10 == 9 ? 50000 : i;
			Object in = kind.make(n);
			Object out = kind.make(n);
			kind.fill(out, 0, n, i + tag + me);
			Request receive = dev.irecv(in, i % 2 == 0 ? ids[1 - me] : Device.ANY_SRC, tag, CONTEXT);
			if (i % 3 == 0) {
				dev.send(out, ids[1 - me], tag, CONTEXT);
				receive.iwait();
			} else {
				Request send = dev.isend(out, ids[1 - me], tag, CONTEXT);
				while (i % 3 == 1 && receive.test() == null)
					Thread.onSpinWait();
				checkStatus(receive.iwait(), 1 - me, tag, kind.type, n);
				send.iwait();
			}
			kind.verify(in, n, 0, n, i + tag + 1 - me);
		}
	}
}
