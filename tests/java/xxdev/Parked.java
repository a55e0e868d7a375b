// SPDX-License-Identifier: MIT
package xxdevtest;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.management.BufferPoolMXBean;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import xxdev.Device;
import xxdev.Request;
import xxdev.Status;
import xxdev.Type;

/**
 * Virtual threads that block in the device, with two carriers for all of them: one that held its carrier would stop the others. On a JDK without
 * virtual threads platform threads that park (xxdev.park_all_threads). Two ranks.
 */
final class Parked extends Program {
	private static final MethodHandle START_VIRTUAL = startVirtual();

	private final AtomicReference<Throwable> failure = new AtomicReference<>();

	public static void main(String[] args) throws Exception {
		new Parked().launch(args);
	}

	private static MethodHandle startVirtual() {
		try {
			return MethodHandles.lookup().findStatic(Thread.class, "startVirtualThread", MethodType.methodType(Thread.class, Runnable.class));
		} catch (ReflectiveOperationException e) {
			check(Boolean.getBoolean("xxdev.park_all_threads"), "this JDK has no virtual threads: set xxdev.park_all_threads");
			return null;
		}
	}

	private interface Body {
		void run() throws Exception;
	}

	private Thread start(Body body) {
		Runnable guarded = () -> {
			try {
				body.run();
			} catch (Throwable e) {
				failure.compareAndSet(null, e);
			}
		};
		try {
			if (START_VIRTUAL != null)
				return (Thread) START_VIRTUAL.invoke(guarded);
		} catch (Throwable e) {
			throw new AssertionError(e);
		}
		Thread thread = new Thread(guarded);
		thread.start();
		return thread;
	}

	private void finish(List<Thread> threads) throws Exception {
		for (Thread thread : threads)
			thread.join();
		if (failure.get() != null)
			throw new AssertionError("a thread failed", failure.get());
	}

	/** How many threads a case starts. */
	private static int many(int count) {
		return START_VIRTUAL == null ? Math.min(count, 200) : count;
	}

	private static List<Integer> shuffled(int n, long seed) {
		List<Integer> order = new ArrayList<>();
		for (int i = 0; i < n; i++)
			order.add(i);
		Collections.shuffle(order, new Random(seed));
		return order;
	}

	private static long directBuffers() {
		long count = 0;
		for (BufferPoolMXBean pool : ManagementFactory.getPlatformMXBeans(BufferPoolMXBean.class))
			if (pool.getName().equals("direct"))
				count += pool.getCount();
		return count;
	}

	/** Virtual threads share few result blocks.  Platform threads may all be preempted in the middle of a call, each with a block. */
	private static void fewBuffers(long more, int threads, int mostOfVirtual) {
		int most = START_VIRTUAL == null ? threads + 10 : mostOfVirtual;
		check(more < most, more + " direct buffers more than before " + threads + " threads waited, fewer than " + most + " expected");
	}

	@Case
	void aReceiveEach() throws Exception {
		int n = many(10000);
		long before = directBuffers();
		List<Thread> threads = new ArrayList<>();
		for (int i = 0; i < n; i++) {
			int tag = i;
			threads.add(start(() -> {
				int[] in = new int[3];
				checkStatus(dev.recv(in, ids[1 - me], tag, CONTEXT), 1 - me, tag, Type.INT, 3);
				check(Arrays.equals(in, new int[] {tag, -tag, 1 - me}), "what came with tag " + tag);
			}));
		}
		meet();
		for (int tag : shuffled(n, me))
			dev.send(new int[] {tag, -tag, me}, ids[1 - me], tag, CONTEXT);
		finish(threads);
		fewBuffers(directBuffers() - before, n, 100);
	}

	@Case
	void aProbeEach() throws Exception {
		int n = many(500);
		long before = directBuffers();
		List<Thread> threads = new ArrayList<>();
		for (int i = 0; i < n; i++) {
			int tag = i;
			threads.add(start(() -> {
				checkStatus(dev.probe(ids[1 - me], tag, CONTEXT), 1 - me, tag, Type.INT, 1);
				int[] in = new int[1];
				dev.recv(in, ids[1 - me], tag, CONTEXT);
				check(in[0] == tag, "what came with tag " + tag);
			}));
		}
		meet();
		for (int tag : shuffled(n, me))
			dev.send(new int[] {tag}, ids[1 - me], tag, CONTEXT);
		finish(threads);
		fewBuffers(directBuffers() - before, n, n / 2);
	}

	/** Sizes for all protocols, both directions at once, blocking and not. */
	@Case
	void exchange() throws Exception {
		int[] sizes = {0, 1, 100, 1000, 10000, 100000, 400000};
		List<Thread> threads = new ArrayList<>();
		for (int t = 0; t < many(60); t++) {
			int tag = t;
			threads.add(start(() -> {
				double[] out = new double[sizes[tag % sizes.length]];
				double[] in = new double[out.length];
				Arrays.setAll(out, i -> i * 3.0 + tag);
				boolean sendFirst = (me == 0) == (tag % 2 == 0);
				for (int round = 0; round < 4; round++) {
					if (round == 3) {
						Request receive = dev.irecv(in, ids[1 - me], tag, CONTEXT);
						dev.ssend(out, ids[1 - me], tag, CONTEXT);
						checkStatus(receive.iwait(1, TimeUnit.DAYS), 1 - me, tag, Type.DOUBLE, in.length);
					} else if (sendFirst) {
						dev.send(out, ids[1 - me], tag, CONTEXT);
						dev.recv(in, ids[1 - me], tag, CONTEXT);
					} else {
						dev.recv(in, ids[1 - me], tag, CONTEXT);
						dev.isend(out, ids[1 - me], tag, CONTEXT).iwait();
					}
					check(Arrays.equals(in, out), "round " + round + " of " + tag);
					Arrays.fill(in, 0);
				}
			}));
		}
		finish(threads);
	}

	@Case
	void objectsAndBuffers() throws Exception {
		List<Thread> threads = new ArrayList<>();
		for (int t = 0; t < many(40); t++) {
			int tag = t;
			threads.add(start(() -> {
				Object[] in = new Object[1];
				ByteBuffer direct = ByteBuffer.allocateDirect(50000);
				Request send = dev.isend(new Object[] {List.of("a", tag)}, ids[1 - me], tag, CONTEXT);
				Status probed = dev.probe(ids[1 - me], tag, CONTEXT);
				check(probed.tag() == tag && probed.source().rank() == 1 - me, "probe");
				dev.recv(in, ids[1 - me], tag, CONTEXT);
				check(in[0].equals(List.of("a", tag)), "objects");
				send.iwait();
				Request back = dev.isend(ByteBuffer.allocateDirect(50000).put(49999, (byte) tag), ids[1 - me], tag, CONTEXT);
				dev.recv(direct, ids[1 - me], tag, CONTEXT);
				check(direct.get(49999) == (byte) tag, "a direct buffer");
				back.iwait();
			}));
		}
		finish(threads);
	}

	/** Threads that probe, threads that wait for any of several, and platform threads beside them. */
	@Case
	void mixture() throws Exception {
		int n = many(200);
		List<Thread> threads = new ArrayList<>();
		for (int t = 0; t < n; t++) {
			int tag = t;
			threads.add(t % 2 == 0 ? start(() -> {
				checkStatus(dev.probe(Device.ANY_SRC, tag, CONTEXT), 1 - me, tag, Type.LONG, 1);
				dev.recv(new long[1], ids[1 - me], tag, CONTEXT);
			})
								   : start(() -> {
										 Request[] requests = new Request[5];
										 for (int i = 0; i < requests.length; i++)
											 requests[i] = dev.irecv(new long[1], ids[1 - me], tag, CONTEXT + 10 + i);
										 for (int i = 0; i < requests.length; i++)
											 checkStatus(Request.iwaitany(requests), 1 - me, tag, Type.LONG, 1);
										 check(Request.iwaitany(requests) == null, "all are null");
									 }));
		}
		Thread platform = new Thread(() -> {
			for (int i = 0; i < 1000; i++)
				dev.recv(new long[1], ids[1 - me], 1000 + i, CONTEXT);
		});
		platform.start();
		meet();
		List<Integer> order = shuffled(n, me);
		for (int i = 0; i < 5; i++) {
			for (int tag : order) {
				if (tag % 2 == 1)
					dev.send(new long[1], ids[1 - me], tag, CONTEXT + 10 + i);
				else if (i == 0)
					dev.send(new long[1], ids[1 - me], tag, CONTEXT);
				dev.send(new long[1], ids[1 - me], 1000 + i * n + tag, CONTEXT);
			}
		}
		for (int i = 5 * n; i < 1000; i++)
			dev.send(new long[1], ids[1 - me], 1000 + i, CONTEXT);
		platform.join();
		finish(threads);
	}

	/** Cancelled, out of time, interrupted. */
	@Case
	void endings() throws Exception {
		Request receive = dev.irecv(new int[1], ids[me], 1, CONTEXT);
		Thread cancelled = start(() -> fails(receive::iwait, "cancelled"));
		Thread limited = start(() -> {
			for (int i = 0; i < 20; i++)
				check(dev.recv(new int[1], ids[me], 2, CONTEXT, 1, TimeUnit.MILLISECONDS) == null, "nothing was sent");
		});
		Thread interrupted = start(() -> {
			Thread.currentThread().interrupt();
			dev.recv(new int[1], ids[me], 3, CONTEXT);
			check(Thread.interrupted(), "the interrupt status is kept");
		});
		limited.join();
		check(receive.cancel(), "cancel");
		dev.send(new int[1], ids[me], 3, CONTEXT);
		finish(List.of(cancelled, limited, interrupted));
	}
}
