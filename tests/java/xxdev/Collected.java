// SPDX-License-Identifier: MIT
package xxdevtest;

import static harness.Task.pause;

import harness.Task;
import java.util.Arrays;
import java.util.Random;
import xxdev.Request;
import xxdev.Status;
import xxdev.ibvdev.IBVDevice;

/** Messages while the collector is at work, and never against it. Two ranks. Argument: torture, deadlock, bound or stopped. */
final class Collected extends Program {
	private static final int LARGEST_BYTES = Integer.getInteger("xxdevtest.largest", QUICK ? 4 << 20 : 64 << 20);
	private static final int ROUNDS = Integer.getInteger("xxdevtest.rounds", QUICK ? 12 : 40);
	/** Where garbage goes, so that it is not optimized away. */
	private static volatile Object sink;

	private final String what;

	private Collected(String what) {
		this.what = what;
	}

	public static void main(String[] args) throws Exception {
		new Collected(args[3]).launch(args);
	}

	/** Allocates and forces collections until it is interrupted. */
	private static Task garbage() {
		return Task.start(() -> {
			Random random = new Random();
			for (int i = 0; !Thread.currentThread().isInterrupted(); i++) {
				Object[] live = new Object[100];
				for (int j = 0; j < 2000; j++)
					live[random.nextInt(live.length)] = new byte[random.nextInt(2000)];
				sink = live;
				if (i % 4 == 0)
					System.gc();
				Thread.yield();
			}
		});
	}

	@Case
	void run() throws Exception {
		if (what.equals("torture"))
			torture();
		else if (what.equals("deadlock"))
			deadlock();
		else if (what.equals("stopped"))
			stopped();
		else
			bound();
		long longest = longestPin();
		System.out.println("longest pin: " + longest + " ns");
	}

	private long longestPin() {
		for (String line : ((IBVDevice) dev).counters(null).split("\n"))
			if (line.startsWith("pin_longest_ns "))
				return Long.parseLong(line.substring(line.indexOf(' ') + 1));
		throw new AssertionError("no counter pin_longest_ns");
	}

	private void torture() throws Exception {
		Task garbage = garbage();
		Task[] tasks = new Task[4];
		for (int t = 0; t < tasks.length; t++) {
			int thread = t;
			tasks[t] = Task.start(() -> exchange(thread));
		}
		for (Task task : tasks)
			task.finish();
		garbage.interrupt();
		garbage.finish();
	}

	private static byte[] pattern(int n, int seed) {
		byte[] bytes = new byte[n];
		for (int i = 0; i < n; i++)
			bytes[i] = (byte) (i * 31 + (i >> 8) + (i >> 16) + seed);
		return bytes;
	}

	private static void verify(byte[] got, int n, int seed) {
		for (int i = 0; i < n; i++)
			if (got[i] != (byte) (i * 31 + (i >> 8) + (i >> 16) + seed))
				throw new AssertionError("byte " + i + " of " + n + " is wrong");
	}

	/** Both ranks draw the same sizes and modes; the first sender alternates. */
	private void exchange(int thread) {
		Random random = new Random(thread);
		int largest = 31 - Integer.numberOfLeadingZeros(LARGEST_BYTES);
		for (int round = 0; round < ROUNDS; round++) {
			int power = round == thread ? largest : random.nextInt(largest - 2);
			int n = power == largest ? LARGEST_BYTES : (1 << power) + random.nextInt(1 << power);
			int mode = random.nextInt(6);
			int tag = 1 + thread;
			byte[] out = pattern(n, round + me);
			byte[] in = new byte[n];
			if (mode < 4) {
				for (int turn = 0; turn < 2; turn++)
					if (turn == me && mode < 2)
						dev.send(out, ids[1 - me], tag, CONTEXT);
					else if (turn == me)
						dev.ssend(out, ids[1 - me], tag, CONTEXT);
					else
						dev.recv(in, ids[1 - me], tag, CONTEXT);
			} else {
				Request receive = dev.irecv(in, ids[1 - me], tag, CONTEXT);
				Request send = dev.isend(out, ids[1 - me], tag, CONTEXT);
				out = null;
				Status status;
				do
					status = mode == 4 ? receive.iwait() : receive.test();
				while (status == null);
				send.iwait();
			}
			verify(in, n, round + 1 - me);
		}
	}

	/**
	 * One thread of rank 0 is blocked in a large operation with rank 1, which awaits a message of another thread of rank 0 first; that thread
	 * needs a collection before it sends it.
	 */
	private void deadlock() throws Exception {
		int rounds = QUICK ? 3 : 8;
		for (int round = 0; round < rounds; round++) {
			int n = 8 << 20;
			boolean sends = round % 2 == 0;
			boolean sync = round % 4 >= 2;
			byte[] data = sends == (me == 0) ? pattern(n, round) : new byte[n];
			if (me == 1) {
				await(0, 2);
				transfer(sends ? 'r' : sync ? 's' : 'n', data, 0);
			} else {
				Task blocked = Task.start(() -> transfer(sends ? sync ? 's' : 'n' : 'r', data, 1));
				while (blocked.isAlive() && blocked.getState() != Thread.State.RUNNABLE)
					Thread.onSpinWait();
				pause();
				check(blocked.isAlive(), "rank 1 cannot have come to it");
				for (int i = 0; i < 3; i++) {
					for (int j = 0; j < 2000; j++)
						sink = new byte[10000];
					System.gc();
				}
				signal(1, 2);
				blocked.finish();
			}
			verify(data, n, round);
		}
	}

	private void transfer(char how, byte[] data, int other) {
		if (how == 'r')
			dev.recv(data, ids[other], 3, CONTEXT);
		else if (how == 's')
			dev.ssend(data, ids[other], 3, CONTEXT);
		else
			dev.send(data, ids[other], 3, CONTEXT);
	}

	/** Rank 1 sleeps between posting an operation and driving it on, while rank 0 is blocked in the other half of it. */
	private void bound() throws Exception {
		int n = 16 << 20;
		long sleepMillis = QUICK ? 2000 : 5000;
		for (boolean sends : new boolean[] {true, false}) {
			byte[] data = sends == (me == 0) ? pattern(n, 1) : new byte[n];
			if (me == 0) {
				transfer(sends ? 'n' : 'r', data, 1);
			} else {
				Request request = sends ? dev.irecv(data, ids[0], 3, CONTEXT) : dev.isend(data, ids[0], 3, CONTEXT);
				Thread.sleep(sleepMillis);
				request.iwait();
			}
			verify(data, n, 1);
			check(longestPin() < sleepMillis * 1000000 / 2, "a pin lasted " + longestPin() + " ns while the peer slept " + sleepMillis + " ms");
		}
	}

	/** Rank 1 is stopped now and then, wherever it is just then, while both send and receive arrays in turn: no pin of rank 0 waits for that. */
	private void stopped() throws Exception {
		String script = "for i in 1 2 3 4 5; do sleep 0.1; kill -STOP $0; sleep 0.7; kill -CONT $0; done";
		Process stopper = me == 0 ? null : new ProcessBuilder("sh", "-c", script, Long.toString(ProcessHandle.current().pid())).start();
		byte[] data = new byte[1 << 20];
		byte round = 0;
		do {
			round++;
			if (me == 1) {
				Arrays.fill(data, round);
				data[0] = (byte) (stopper.isAlive() ? 1 : 0);
				dev.send(data, ids[0], 3, CONTEXT);
				data[data.length - 1]++;
			}
			dev.recv(data, ids[1 - me], 3, CONTEXT);
			for (int i = 1; i < data.length; i += 1021)
				check(data[i] == round, "byte " + i + " is not of round " + round);
			check(data[data.length - 1] == round, "the last byte is not of round " + round);
			if (me == 0)
				dev.send(data, ids[1], 3, CONTEXT);
		} while (data[0] == 1);
		check(me == 1 || longestPin() < 350_000_000, "a pin lasted " + longestPin() + " ns while the peer was stopped for 700 ms");
	}
}
