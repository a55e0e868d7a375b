// SPDX-License-Identifier: MIT
package xxdevtest;

import static harness.Task.pause;

import harness.Task;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.concurrent.TimeUnit;
import xxdev.Device;
import xxdev.ErrorCode;
import xxdev.Request;
import xxdev.Status;
import xxdev.Type;

/** Waits with a time limit, and interrupts. Two ranks. */
final class Waits extends Program {
	public static void main(String[] args) throws Exception {
		new Waits().launch(args);
	}

	private static int[] ints(int n, int seed) {
		int[] array = new int[n];
		Arrays.setAll(array, i -> i * 31 + seed);
		return array;
	}

	@Case
	void theRequestStays() throws Exception {
		Object[] in = {new int[1], new int[100000], ByteBuffer.allocateDirect(100), new Object[1], new int[2][3]};
		Object[] out = {new int[1], new int[100000], ByteBuffer.allocate(100), java.util.List.of("x"), new int[2][3]};
		for (int i = 0; i < in.length; i++) {
			Request receive = dev.irecv(in[i], ids[1 - me], 1, CONTEXT);
			for (long timeout : new long[] {1, 0, -1, Long.MIN_VALUE})
				check(receive.iwait(timeout, TimeUnit.MILLISECONDS) == null && !receive.isnull(), "nothing has come");
			meet();
			Request send = dev.issend(out[i], ids[1 - me], 1, CONTEXT);
			Status status = receive.iwait(Long.MAX_VALUE, TimeUnit.DAYS);
			check(status != null && status.tag() == 1, "it has come");
			check(receive.iwait(0, TimeUnit.DAYS) == status && receive.isnull(), "the outcome can be taken again");
			send.iwait(Long.MAX_VALUE, TimeUnit.NANOSECONDS);
		}
	}

	/** The time is over at any moment of a message. */
	@Case
	void nothingIsLost() throws Exception {
		for (int n : new int[] {10, 3000, 40000, 1000000}) {
			for (int round = 0; round < 10; round++) {
				int[] in = new int[n];
				Request receive = dev.irecv(in, ids[1 - me], 2, CONTEXT);
				Request send = dev.isend(ints(n, round), ids[1 - me], 2, CONTEXT);
				Status status = null;
				while (status == null) {
					status = receive.iwait(1 + round, TimeUnit.MICROSECONDS);
					send.iwait(1, TimeUnit.MICROSECONDS);
				}
				checkStatus(status, 1 - me, 2, Type.INT, n);
				check(Arrays.equals(in, ints(n, round)), "what came");
				send.iwait();
			}
		}
	}

	/** A receive that is withdrawn takes no message with it. */
	@Case
	void receivesWithALimit() throws Exception {
		int n = 300;
		if (me == 0) {
			for (int i = 0; i < n; i++)
				dev.send(ints(i % 2 == 0 ? 10 : 60000, i), ids[1], 3, CONTEXT);
			return;
		}
		int[] in = new int[60000];
		for (int i = 0; i < n;) {
			Status status = i % 3 == 0 ? dev.recv(in, 0, in.length, Device.ANY_SRC, 3, CONTEXT, i, TimeUnit.MICROSECONDS)
									   : dev.recv(in, ids[0], 3, CONTEXT, i % 5, TimeUnit.MICROSECONDS);
			if (status == null)
				continue;
			checkStatus(status, 0, 3, Type.INT, i % 2 == 0 ? 10 : 60000);
			int[] expected = ints((int) status.count(), i);
			check(Arrays.equals(in, 0, expected.length, expected, 0, expected.length), "message " + i);
			i++;
		}
	}

	@Case
	void failures() throws Exception {
		check(dev.recv(new int[1], ids[me], 4, CONTEXT, 1, TimeUnit.MILLISECONDS) == null, "nothing was sent");
		Request send = dev.isend(new int[2], ids[me], 4, CONTEXT);
		equal(ErrorCode.TRUNCATED, fails(() -> dev.recv(new int[1], ids[me], 4, CONTEXT, 1, TimeUnit.DAYS), "2 int").code(), "code");
		send.iwait();
		Request receive = dev.irecv(new int[1], ids[me], 4, CONTEXT);
		check(receive.cancel(), "unmatched");
		equal(ErrorCode.CANCELLED, fails(() -> receive.iwait(1, TimeUnit.DAYS)).code(), "code");
	}

	/** One thread waits in the library, the others for that thread. */
	@Case
	void limitsOfSeveralThreads() throws Exception {
		Request receive = dev.irecv(new int[1], ids[me], 5, CONTEXT);
		Task[] waiters = new Task[4];
		for (int i = 0; i < waiters.length; i++) {
			boolean limited = i > 0;
			waiters[i] = Task.start(() -> checkStatus(limited ? receive.iwait(1, TimeUnit.DAYS) : receive.iwait(), me, 5, Type.INT, 1));
		}
		pause();
		check(receive.iwait(1, TimeUnit.MILLISECONDS) == null, "nothing was sent");
		dev.send(new int[1], ids[me], 5, CONTEXT);
		for (Task waiter : waiters)
			waiter.finish();
	}

	private static void interrupted(Task... tasks) throws Exception {
		pause();
		for (Task task : tasks)
			task.interrupt();
		pause();
		for (Task task : tasks)
			check(task.isAlive(), "an interrupt does not end a wait");
	}

	private static void kept() {
		check(Thread.currentThread().isInterrupted(), "the interrupt status is kept");
	}

	@Case
	void interruptsEndNothing() throws Exception {
		Request receive = dev.irecv(new int[1], ids[me], 6, CONTEXT);
		Task[] waiters = new Task[6];
		for (int i = 0; i < waiters.length; i++) {
			int which = i;
			waiters[i] = Task.start(() -> {
				Status status = which < 2 ? receive.iwait()
						: which < 4       ? receive.iwait(1, TimeUnit.DAYS)
						: which == 4      ? dev.recv(new int[1], ids[me], 7, CONTEXT)
										  : dev.recv(new int[1], ids[me], 8, CONTEXT, 1, TimeUnit.DAYS);
				checkStatus(status, me, which < 4 ? 6 : which + 3, Type.INT, 1);
				kept();
			});
		}
		interrupted(waiters);
		for (int tag = 6; tag <= 8; tag++)
			dev.send(new int[1], ids[me], tag, CONTEXT);
		for (Task waiter : waiters)
			waiter.finish();
		Request late = dev.irecv(new int[1], ids[me], 9, CONTEXT);
		Thread.currentThread().interrupt();
		check(late.iwait(1, TimeUnit.MILLISECONDS) == null, "nothing was sent");
		kept();
		dev.send(new int[1], ids[me], 9, CONTEXT);
		checkStatus(late.iwait(1, TimeUnit.DAYS), me, 9, Type.INT, 1);
		check(Thread.interrupted(), "the interrupt status is kept");
	}
}
