// SPDX-License-Identifier: MIT
package mpi;

import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import xdev.ibvdev.Launched;
import xxdev.PID;
import xxdev.XXDevException;
import xxdev.ibvdev.ByRank;
import xxdev.ibvdev.Communicator;
import xxdev.ibvdev.IBVDevice;

/** The job between Init and Finalize: its device, and numbers for communicators. */
final class Job {
	/** Contexts 0 to 3 are those of COMM_WORLD and COMM_SELF. */
	private static final int FIRST_NUMBER = 2;
	private static final long LAST_NUMBER = (1 << 29) - 1;

	private static volatile Job current;

	final ByRank device;
	private final IBVDevice opened;
	private final int rank;
	private final int size;
	private final AtomicInteger proposals = new AtomicInteger(FIRST_NUMBER);
	private final Set<Engine> engines = ConcurrentHashMap.newKeySet();
	/** Begun and not complete: the library uses their memory. */
	private final Set<Operation> operations = ConcurrentHashMap.newKeySet();
	final Thread initialiser = Thread.currentThread();

	private Job(IBVDevice opened, int rank, int size) {
		this.opened = opened;
		this.rank = rank;
		this.size = size;
		device = new ByRank(opened);
	}

	/** Joins; returns when all ranks have. Gives back the arguments that are the program's. */
	static synchronized String[] open(String[] args) {
		if (current != null)
			throw Errors.of("Init: this process is rank " + current.rank + " of a job already: call Finalize first");
		String[] all = Launched.arguments(args);
		IBVDevice device = new IBVDevice();
		try {
			PID[] peers = device.init(all);
			current = new Job(device, device.id().rank(), peers.length);
		} catch (XXDevException e) {
			throw Errors.of(e);
		}
		return java.util.Arrays.copyOfRange(all, 3, all.length);
	}

	static boolean isOpen() {
		return current != null;
	}

	static Job current() {
		Job job = current;
		if (job == null)
			throw Errors.of("MPI has not been initialised, or is finalized: call MPI.Init first");
		return job;
	}

	/** Of this process in MPI.COMM_WORLD. */
	static int rank() {
		Job job = current;
		return job == null ? 0 : job.rank;
	}

	static int size() {
		return current().size;
	}

	/** Of COMM_WORLD. */
	Engine worldEngine() {
		try {
			return Engine.of(Communicator.world(opened), size);
		} catch (XXDevException e) {
			throw Errors.of(e);
		}
	}

	/** Is to be freed at the end. */
	void add(Engine engine) {
		engines.add(engine);
	}

	void remove(Engine engine) {
		engines.remove(engine);
	}

	void add(Operation operation) {
		reap(false);
		operations.add(operation);
	}

	/** Completes operations whose requests were freed. */
	private synchronized void reap(boolean block) {
		for (Operation operation : operations)
			operation.reap(block);
	}

	void remove(Operation operation) {
		operations.remove(operation);
	}

	/** Leaves the job. */
	static synchronized void close() {
		current().reap(true);
		for (Engine engine : current().engines.toArray(new Engine[0]))
			engine.free();
		try {
			current().opened.finish();
		} catch (XXDevException e) {
			throw Errors.of(e);
		}
		current = null;
	}

	/**
	 * A number that no other call of this or another process returns. The members of a new communicator take the highest that one of them
	 * proposes: so no other communicator has it, whatever is made at the same time.
	 */
	long propose() {
		long number = (long) proposals.getAndIncrement() * size + rank;
		if (number > LAST_NUMBER)
			throw Errors.of("there were more than " + LAST_NUMBER / size + " communicators in this job: make fewer");
		return number;
	}

	/** The context of the messages of the communicator with this number; the next one is that of its collective operations. */
	static int context(long number) {
		return (int) (2 * number);
	}
}
