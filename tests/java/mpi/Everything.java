// SPDX-License-Identifier: MIT
package mpitest;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;
import mpi.Intracomm;
import mpi.MPI;

/**
 * Every section of the MPI-level tests in one program, so that one start of the JVMs serves them all. First one
 * thread per rank, then four at once, each with a communicator of its own.
 *
 * <p>Arguments: names of sections (default all), {@code threads=N} (default 4, 0 to leave them out),
 * {@code seed=N}, {@code limit=S} seconds for a section (default 120), {@code psl=N} bytes if the job's protocol
 * switch limit is not 131072, {@code verbose} for times. It ends with 0 and "everything passed" from
 * each rank; with 1 and a text on any mismatch; with 3 and the stacks of all threads when a section hangs.
 */
public final class Everything {
	private static final Map<String, Consumer<Place>> SECTIONS = new LinkedHashMap<>();
	/** Sections that use what a JVM has once: the Bsend buffer, the next context, the choice of algorithms, the peek queue. */
	private static final List<String> ALONE = List.of("buffered", "intra", "groups", "cartesian", "graph", "inter", "iwaitany", "peek", "mpjdev", "flat");

	/** Sections that call the classes below MPJ Express's mpi. */
	private static final List<String> EXPRESS_ONLY = List.of("iwaitany", "peek", "itest", "mpjdev");

	static {
		SECTIONS.put("types", Blocking::types);
		SECTIONS.put("modes", Blocking::modes);
		SECTIONS.put("exchange", Blocking::exchange);
		SECTIONS.put("head", Blocking::headToHead);
		SECTIONS.put("tags", Blocking::tags);
		SECTIONS.put("sizes", Blocking::sizes);
		SECTIONS.put("buffered", Blocking::buffered);
		SECTIONS.put("completion", NonBlocking::completion);
		SECTIONS.put("synchronous", NonBlocking::synchronous);
		SECTIONS.put("persistent", NonBlocking::persistent);
		SECTIONS.put("self", Matching::self);
		SECTIONS.put("probe", Matching::probe);
		SECTIONS.put("wildcards", Matching::wildcards);
		SECTIONS.put("order", Matching::order);
		SECTIONS.put("unexpected", Matching::unexpected);
		SECTIONS.put("truncation", Matching::truncation);
		SECTIONS.put("objects", Payloads::objects);
		SECTIONS.put("derived", Payloads::derived);
		SECTIONS.put("packed", Payloads::packed);
		SECTIONS.put("random", RandomTraffic::run);
		SECTIONS.put("barrier", Collectives::barrier);
		SECTIONS.put("bcast", Collectives::bcast);
		SECTIONS.put("gather", Collectives::gatherScatter);
		SECTIONS.put("reduce", Reductions::predefined);
		SECTIONS.put("located", Reductions::located);
		SECTIONS.put("userop", Reductions::userDefined);
		SECTIONS.put("flat", Collectives::flat);
		SECTIONS.put("intra", Communicators::intra);
		SECTIONS.put("groups", Communicators::groups);
		SECTIONS.put("cartesian", Communicators::cartesian);
		SECTIONS.put("graph", Communicators::graph);
		SECTIONS.put("inter", Communicators::inter);
		SECTIONS.put("iwaitany", DeviceLevel::iwaitany);
		SECTIONS.put("peek", DeviceLevel::peek);
		SECTIONS.put("itest", DeviceLevel::repeatedTest);
		SECTIONS.put("mpjdev", DeviceLevel::collectives);
	}

	private final int rank;
	private final int limitSeconds;
	private final boolean verbose;

	private Everything(int rank, int limitSeconds, boolean verbose) {
		this.rank = rank;
		this.limitSeconds = limitSeconds;
		this.verbose = verbose;
	}

	public static void main(String[] args) {
		int threads = 4;
		int limit = 120;
		long seed = 20260801L;
		boolean verbose = false;
		List<String> chosen = new ArrayList<>();
		String device = args.length > 2 ? args[2] : "?";
		int rank = -1;
		try {
			String[] mine = MPI.Init(args);
			rank = MPI.COMM_WORLD.Rank();
			for (String arg : mine) {
				if (arg.startsWith("threads=")) {
					threads = Integer.parseInt(arg.substring(8));
				} else if (arg.startsWith("seed=")) {
					seed = Long.parseLong(arg.substring(5));
				} else if (arg.startsWith("limit=")) {
					limit = Integer.parseInt(arg.substring(6));
				} else if (arg.startsWith("psl=")) {
					Place.psl = Integer.parseInt(arg.substring(4));
				} else if (arg.equals("verbose")) {
					verbose = true;
				} else if (SECTIONS.containsKey(arg)) {
					chosen.add(arg);
				} else {
					throw new IllegalArgumentException("no section \"" + arg + "\"; there are " + SECTIONS.keySet());
				}
			}
			if (chosen.isEmpty()) {
				chosen.addAll(SECTIONS.keySet());
			}
			Everything all = new Everything(rank, limit, verbose);
			Place world = new Place(MPI.COMM_WORLD, device, -1, seed);
			all.run(chosen, world);
			if (threads > 0) {
				all.runThreads(chosen, world, threads, seed);
			}
			MPI.Finalize();
		} catch (Throwable e) {
			stop(rank, e);
		}
		System.out.println("rank " + rank + ": everything passed");
	}

	private static void stop(int rank, Throwable e) {
		synchronized (Everything.class) {
			System.err.print("FAILED in rank " + rank + ": ");
			e.printStackTrace();
			System.err.flush();
		}
		System.exit(1);
	}

	private void run(List<String> chosen, Place place) {
		for (String name : chosen) {
			if (!place.alone() && ALONE.contains(name) || !Place.EXPRESS && EXPRESS_ONLY.contains(name)) {
				continue;
			}
			long start = System.nanoTime();
			Thread watch = watch(name, place);
			try {
				SECTIONS.get(name).accept(place);
				// Sections end together, so that the name in a watchdog's text is the culprit's.
				place.comm.Barrier();
			} catch (RuntimeException e) {
				throw new IllegalStateException(
						"section " + name + (place.alone() ? "" : " in thread " + place.thread + " of several") + ": " + e.getMessage(), e);
			} finally {
				watch.interrupt();
			}
			if (verbose && place.rank == 0) {
				System.out.printf("%-12s %s %6d ms%n", name, place.alone() ? "one thread" : "thread " + place.thread, (System.nanoTime() - start) / 1_000_000);
			}
		}
	}

	/** All sections from several threads at once, each starting with another one, so that the traffic is mixed. */
	private void runThreads(List<String> chosen, Place world, int threads, long seed) {
		List<Thread> running = new ArrayList<>();
		AtomicReference<Throwable> failure = new AtomicReference<>();
		Intracomm[] comms = new Intracomm[threads];
		for (int t = 0; t < threads; t++) {
			comms[t] = Place.duplicate(world.comm);
		}
		for (int t = 0; t < threads; t++) {
			int thread = t;
			List<String> rotated = new ArrayList<>(chosen);
			java.util.Collections.rotate(rotated, t * chosen.size() / threads);
			Thread runner = new Thread(() -> {
				try {
					run(rotated, new Place(comms[thread], world.device, thread, seed + 1000 * (thread + 1)));
				} catch (Throwable e) {
					failure.compareAndSet(null, e);
					stop(rank, e);
				}
			}, "section runner " + t);
			runner.start();
			running.add(runner);
		}
		for (Thread runner : running) {
			try {
				runner.join();
			} catch (InterruptedException e) {
				throw new IllegalStateException("interrupted while the threads run", e);
			}
		}
	}

	private Thread watch(String name, Place place) {
		Thread watch = new Thread(() -> {
			try {
				Thread.sleep(limitSeconds * 1000L);
			} catch (InterruptedException e) {
				return;
			}
			synchronized (Everything.class) {
				System.err.println("HANGS in rank " + rank + ": section " + name + " took more than " + limitSeconds + " s in thread " + place.thread);
				Thread.getAllStackTraces().forEach(Everything::show);
				System.err.flush();
				Runtime.getRuntime().halt(3);
			}
		}, "watchdog of " + name);
		watch.setDaemon(true);
		watch.start();
		return watch;
	}

	/** Prints a stack unless the JVM itself or this watchdog is all that is on it. */
	private static void show(Thread thread, StackTraceElement[] stack) {
		boolean ours = false;
		for (StackTraceElement line : stack) {
			ours |= line.getClassName().matches("(mpi|mpjdev|xdev|mpitest)\\..*");
		}
		if (ours && thread != Thread.currentThread()) {
			System.err.println("  " + thread);
			for (StackTraceElement line : stack) {
				System.err.println("    at " + line);
			}
		}
	}
}
