// SPDX-License-Identifier: MIT
package device;

import static harness.Task.pause;

import harness.Task;
import java.lang.ref.WeakReference;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import mpjbuf.Buffer;
import mpjbuf.Type;
import mpjdev.Request;
import mpjdev.Status;
import xdev.Device;
import xdev.XDevException;

/** Completion: handlers, repetition, several threads, cancelling, reachability. Two ranks. */
final class Requests extends Program {
	public static void main(String[] args) throws Exception {
		new Requests().launch(args);
	}

	private static void untilDone(Request request) {
		while (request.itest() == null)
			Thread.onSpinWait();
	}

	@Case
	void handlersRunOnceInTheWaitingThread() throws Exception {
		AtomicInteger runs = new AtomicInteger();
		AtomicReference<Thread> thread = new AtomicReference<>();
		Status own = new Status(0, -2, -1);
		Request request = dev.irecv(empty(), ids[me], 1, CONTEXT, own);
		request.addCompletionHandler(status -> {
			runs.incrementAndGet();
			thread.set(Thread.currentThread());
			check(status == own && status.numEls == 2, "the handler sees the filled status");
			check(request.iwait() == own, "a handler may ask about its own request");
		});
		check(request.itest() == null, "nothing has come");
		dev.send(ints(1, 2), ids[me], 1, CONTEXT);
		untilDone(request);
		check(request.itest() == own, "itest can be repeated");
		equal(0, runs.get(), "itest runs no handler");
		check(request.iwait() == own && request.iwait() == own && request.itest() == own, "always the same status");
		equal(1, runs.get(), "handlers run once");
		check(thread.get() == Thread.currentThread(), "in the thread of iwait");
		checkStatus(own, me, 1, Type.INT, 2);
	}

	@Case
	void dataIsThereWhenItestReportsIt() throws Exception {
		int[] sizes = {100, 1000000};
		for (int size : sizes) {
			Buffer buf = room(size);
			Request request = dev.irecv(buf, ids[1 - me], 2, CONTEXT, null);
			Request send = dev.isend(pattern(size, me), ids[1 - me], 2, CONTEXT);
			while (request.itest() == null)
				send.itest();
			checkPattern(buf, size, 1 - me);
			send.iwait();
			request.iwait();
		}
	}

	@Case
	void handlerThatThrows() throws Exception {
		Request request = dev.irecv(empty(), ids[me], 3, CONTEXT, null);
		request.addCompletionHandler(status -> { throw new XDevException("unpacking failed"); });
		dev.send(ints(1), ids[me], 3, CONTEXT);
		fails(request::iwait, "unpacking failed");
		checkStatus(request.iwait(), me, 3, Type.INT, 1);
		check(request.itest() != null, "done");
	}

	@Case
	void severalThreadsWaitForOneRequest() throws Exception {
		for (int round = 0; round < 20; round++) {
			AtomicInteger runs = new AtomicInteger();
			Status own = new Status(0, -2, -1);
			Request request = dev.irecv(empty(), ids[me], 4, CONTEXT, own);
			request.addCompletionHandler(status -> runs.incrementAndGet());
			Task[] waiters = new Task[4];
			for (int i = 0; i < waiters.length; i++)
				waiters[i] = Task.start(() -> check(request.iwait() == own, "the same status for all"));
			Task tester = Task.start(() -> untilDone(request));
			if (round % 2 == 0)
				pause();
			dev.send(ints(round), ids[me], 4, CONTEXT);
			for (Task waiter : waiters)
				waiter.finish();
			tester.finish();
			equal(1, runs.get(), "handlers");
		}
	}

	@Case
	void interruptsAreKeptForLater() throws Exception {
		Request request = dev.irecv(empty(), ids[me], 5, CONTEXT, null);
		Task[] waiters = new Task[2];
		for (int i = 0; i < waiters.length; i++)
			waiters[i] = Task.start(() -> {
				checkStatus(request.iwait(), me, 5, Type.INT, 1);
				check(Thread.currentThread().isInterrupted(), "the interrupt status is kept");
			});
		pause();
		for (Task waiter : waiters)
			waiter.interrupt();
		pause();
		for (Task waiter : waiters)
			check(waiter.isAlive(), "an interrupt does not end a wait");
		dev.send(ints(1), ids[me], 5, CONTEXT);
		for (Task waiter : waiters)
			waiter.finish();
	}

	@Case
	void statusOfSends() throws Exception {
		Request send = dev.isend(ints(1), ids[me], 6, CONTEXT);
		dev.recv(empty(), ids[me], 6, CONTEXT);
		check(send.iwait() != null, "not null");
		equal(6, send.iwait().tag, "tag");
		check(!send.isnull() && !send.cancel(), "sends cannot be cancelled");
		send.free();
	}

	@Case
	void cancel() throws Exception {
		AtomicInteger runs = new AtomicInteger();
		Buffer buf = empty();
		Request request = dev.irecv(buf, Device.ANY_SRC, 7, CONTEXT, null);
		request.addCompletionHandler(status -> runs.incrementAndGet());
		check(request.cancel(), "unmatched: can be cancelled");
		check(request.iwait() != null && request.itest() != null, "a cancelled request is complete");
		check(!request.cancel(), "once");
		equal(0, runs.get(), "no handlers for what did not happen");
		dev.send(ints(5), ids[me], 7, CONTEXT);
		dev.probe(ids[me], 7, CONTEXT); /* it has come */
		Request matched = dev.irecv(buf, ids[me], 7, CONTEXT, null);
		check(!matched.cancel(), "matched: cannot be cancelled");
		checkStatus(matched.iwait(), me, 7, Type.INT, 1);
		check(!matched.cancel(), "complete: cannot be cancelled");
	}

	@Case
	void cancelWhileAnotherThreadWaits() throws Exception {
		Request request = dev.irecv(empty(), ids[me], 8, CONTEXT, null);
		Task waiter = Task.start(() -> check(request.iwait() != null, "a status"));
		pause();
		check(request.cancel(), "unmatched: can be cancelled");
		waiter.finish();
	}

	@Case
	void synchronousSendWaitsForTheReceive() throws Exception {
		int[] sizes = {4, 300000};
		for (int size : sizes) {
			if (me == 0) {
				Request request = dev.issend(pattern(size, 1), ids[1], 9, CONTEXT);
				for (int i = 0; i < 1000; i++)
					check(request.itest() == null, "no receive has been posted");
				Task blocked = Task.start(() -> dev.ssend(pattern(size, 2), ids[1], 10, CONTEXT));
				pause();
				check(blocked.isAlive(), "no receive has been posted");
				signal(1, 1);
				request.iwait();
				blocked.finish();
			} else {
				await(0, 1);
				dev.recv(room(size), ids[0], 10, CONTEXT);
				dev.recv(room(size), ids[0], 9, CONTEXT);
			}
			meet();
		}
	}

	@Case
	void abandonedRequestsKeepTheirMemory() throws Exception {
		int n = 20;
		int size = 400000;
		if (me == 0) {
			for (int i = 0; i < n; i++)
				dev.isend(pattern(size, i), ids[1], i, CONTEXT); /* request and buffer are dropped */
			for (int i = 0; i < 5; i++) {
				System.gc();
				new Buffer(size); /* would take the memory of what was freed */
			}
			signal(1, 1);
			for (int i = 0; i < n; i++)
				dev.peek().iwait();
		} else {
			await(0, 1);
			for (int i = 0; i < n; i++) {
				Buffer buf = room(size);
				dev.recv(buf, ids[0], i, CONTEXT);
				checkPattern(buf, size, i);
			}
		}
	}

	@Case
	void completedRequestsLetGo() throws Exception {
		WeakReference<Buffer> buffer = receiveAndForget();
		for (int i = 0; i < 50 && buffer.get() != null; i++) {
			System.gc();
			pause();
		}
		check(buffer.get() == null, "the device must not keep the buffer of a request that is complete");
	}

	private WeakReference<Buffer> receiveAndForget() throws Exception {
		Buffer buf = empty();
		Request request = dev.irecv(buf, ids[me], 11, CONTEXT, null);
		dev.send(ints(1), ids[me], 11, CONTEXT);
		request.iwait();
		return new WeakReference<>(buf);
	}

	@Case
	void peekFromSeveralThreads() throws Exception {
		int n = 400;
		if (me == 0) {
			await(1, 1);
			for (int i = 0; i < n; i++)
				dev.send(ints(i), ids[1], 12, CONTEXT);
			return;
		}
		for (int i = 0; i < n; i++)
			dev.irecv(empty(), ids[0], 12, CONTEXT, null);
		signal(0, 1);
		AtomicInteger sum = new AtomicInteger();
		Task[] tasks = new Task[4];
		for (int t = 0; t < tasks.length; t++)
			tasks[t] = Task.start(() -> {
				for (int i = 0; i < n / 4; i++)
					sum.addAndGet(dev.peek().iwait().numEls);
			});
		for (Task task : tasks)
			task.finish();
		equal(n, sum.get(), "every request once");
	}

	@Case
	void threadsAtOnce() throws Exception {
		int threads = 4;
		int rounds = 300;
		Task[] tasks = new Task[threads];
		for (int t = 0; t < threads; t++) {
			int tag = 100 + t;
			tasks[t] = Task.start(() -> pingPong(tag, rounds));
		}
		for (Task task : tasks)
			task.finish();
	}

	private void pingPong(int tag, int rounds) throws Exception {
		for (int i = 0; i < rounds; i++) {
			int size = i % 10 == 9 ? 200000 : i;
			Buffer buf = room(size);
			Request receive = dev.irecv(buf, i % 2 == 0 ? ids[1 - me] : Device.ANY_SRC, tag, CONTEXT, null);
			if (i % 3 == 0) {
				dev.send(pattern(size, i + tag), ids[1 - me], tag, CONTEXT);
				receive.iwait();
			} else {
				Request send = dev.isend(pattern(size, i + tag), ids[1 - me], tag, CONTEXT);
				if (i % 3 == 1)
					untilDone(receive);
				checkStatus(receive.iwait(), 1 - me, tag, Type.BYTE, size);
				send.iwait();
			}
			checkPattern(buf, size, i + tag);
		}
	}
}
