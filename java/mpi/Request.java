// SPDX-License-Identifier: MIT
package mpi;

import xxdev.ErrorCode;
import xxdev.XXDevException;

/**
 * An operation that does not block (MPI 4.0, sections 3.7 and 3.9). Completing it (Wait, Test and their forms for arrays) makes it null; of a null request Wait and Test
 * return an empty status. A request may be used by any thread, but by one at a time.
 *
 * <p>The forms for arrays pass over entries that are null. If operations fail, the others of Waitall are completed first.
 */
public class Request {
	/** Polls of a mixture of messages and collective operations before a thread begins to sleep between them, and for how long. */
	private static final int SPINS = 1000;
	private static final long POLL_NS = 100_000;

	/** For statuses; null: REQUEST_NULL. */
	private final Messages comm;
	/** Of the device; null: none is under way. */
	private xxdev.Request operation;
	/** A collective operation; null: none is under way. */
	private Pending pending;
	/** The outcome that was found but not given out. */
	private Status ready;
	private RuntimeException failure;
	/** Of a receive of a derived type: where the elements arrive, and where they belong. */
	private Object packed;
	private Object target;
	private int offset;
	private Datatype type;

	Request(Messages comm) {
		this.comm = comm;
	}

	/** The operation has begun. */
	final void begin(xxdev.Request begun) {
		operation = begun;
		pending = null;
		ready = null;
		failure = null;
	}

	/** The operation is complete from the beginning. */
	final void begin(Status outcome) {
		begin((xxdev.Request) null);
		ready = outcome;
	}

	/** A collective operation has begun. */
	final void begin(Pending begun) {
		begin((xxdev.Request) null);
		pending = begun;
	}

	/** What arrives in an array of its own is to be brought to the elements of a derived type; from is null: what arrives is an mpjbuf.Buffer. */
	final void unpack(Object from, Object to, int at, Datatype layout) {
		packed = from;
		target = to;
		offset = at;
		type = layout;
	}

	final boolean isActive() {
		return operation != null || pending != null || ready != null || failure != null;
	}

	private boolean isDone() {
		return operation == null && pending == null;
	}

	/** Completes it, or (block is false) tries to. True: it is complete. */
	private boolean advance(boolean block) {
		xxdev.Request now = operation;
		if (now == null)
			return pending == null || advanceCollective(block);
		try {
			xxdev.Status status = block ? now.iwait() : now.test();
			if (status == null)
				return false;
			finish(status);
		} catch (XXDevException e) {
			if (!now.isnull())
				throw Errors.of(e);
			fail(e);
		}
		return true;
	}

	private boolean advanceCollective(boolean block) {
		try {
			if (!pending.complete(block))
				return false;
			ready = new Status();
		} catch (RuntimeException e) {
			failure = e;
		}
		pending = null;
		return true;
	}

	private void finish(xxdev.Status status) {
		operation = null;
		if (packed != null)
			type.copy(false, target, offset, 0, (int) status.count(), packed, 0);
		else if (target != null)
			ExpressBuffers.received((mpjbuf.Buffer) target, (int) status.bytes());
		unpack(null, null, 0, null);
		ready = comm.status(status);
	}

	private void fail(XXDevException e) {
		operation = null;
		unpack(null, null, 0, null);
		if (e.code() == ErrorCode.CANCELLED)
			ready = Status.ofCancelled();
		else
			failure = e;
	}

	/** Gives the outcome out; the request is null then. */
	private Status take() {
		Status status = ready;
		RuntimeException error = failure;
		ready = null;
		failure = null;
		if (error != null)
			throw error instanceof MPIException ? error : Errors.of(error);
		return status == null ? new Status() : status;
	}

	/**
	 * Blocks until the operation is complete.
	 *
	 * @return its status
	 */
	public Status Wait() {
		advance(true);
		return take();
	}

	/**
	 * Asks whether the operation is complete. Does not block.
	 *
	 * @return its status, or null if it is not complete
	 */
	public Status Test() {
		return advance(false) ? take() : null;
	}

	/**
	 * Is there nothing left to wait for?
	 *
	 * @return true after the operation was completed
	 */
	public boolean Is_null() {
		return !isActive();
	}

	/** Gives the request up; the operation ends as it would. Of a receive nothing may be seen. */
	public void Free() {
		xxdev.Request now = operation;
		if (pending != null)
			pending.abandon();
		begin((xxdev.Request) null);
		if (now == null)
			return;
		try {
			now.free();
		} catch (XXDevException e) {
			throw Errors.of(e);
		}
	}

	/** Asks to cancel a receive that has not matched; the request must be completed, and the status knows whether it was cancelled. A send is not cancelled. */
	public void Cancel() {
		if (!isActive())
			throw Errors.of("Cancel: the request is null: it was completed before");
		if (pending != null)
			throw Errors.of("Cancel: the request is a collective operation: wait for it");
		try {
			if (operation != null)
				operation.cancel();
		} catch (XXDevException e) {
			throw Errors.of(e);
		}
	}

	/** Does nothing: an operation that nobody completes goes on. */
	@Override
	@SuppressWarnings({"deprecation", "removal"})
	public void finalize() {}

	private static void check(String operation, Request[] requests) {
		if (requests == null)
			throw Errors.of(operation + ": the array of requests is null: pass one, whose entries may be null");
	}

	/**
	 * Blocks until all are complete.
	 *
	 * @param array_of_requests which
	 * @return their statuses, empty ones for null requests
	 */
	public static Status[] Waitall(Request[] array_of_requests) {
		check("Waitall", array_of_requests);
		for (Request request : array_of_requests)
			if (request != null)
				request.advance(true);
		return takeAll(array_of_requests);
	}

	private static Status[] takeAll(Request[] requests) {
		Status[] statuses = new Status[requests.length];
		RuntimeException first = null;
		for (int i = 0; i < requests.length; i++) {
			try {
				statuses[i] = requests[i] == null ? new Status() : requests[i].take();
			} catch (MPIException e) {
				first = first == null ? e : first;
			}
		}
		if (first != null)
			throw first;
		return statuses;
	}

	/**
	 * Asks whether all are complete. Does not block; if some are not, none is completed.
	 *
	 * @param array_of_requests which
	 * @return their statuses, or null
	 */
	public static Status[] Testall(Request[] array_of_requests) {
		check("Testall", array_of_requests);
		boolean all = true;
		for (Request request : array_of_requests)
			if (request != null)
				all &= request.advance(false);
		return all ? takeAll(array_of_requests) : null;
	}

	/**
	 * Blocks until one is complete, and completes it.
	 *
	 * @param array_of_requests which
	 * @return its status, whose index is its position; if none is active the index is MPI.UNDEFINED
	 */
	public static Status Waitany(Request[] array_of_requests) {
		check("Waitany", array_of_requests);
		int index = await(array_of_requests);
		return index < 0 ? new Status() : array_of_requests[index].take().at(index);
	}

	/** Blocks until one is complete; its position, -1 if none is active. */
	private static int await(Request[] requests) {
		xxdev.Request[] operations = new xxdev.Request[requests.length];
		boolean any = false;
		boolean collective = false;
		for (int i = 0; i < requests.length; i++) {
			if (requests[i] == null || !requests[i].isActive())
				continue;
			if (requests[i].isDone())
				return i;
			operations[i] = requests[i].operation;
			any = true;
			collective |= operations[i] == null;
		}
		if (collective)
			return poll(requests);
		return any ? await(requests, operations) : -1;
	}

	/** The position of one that is complete, of messages and collective operations: asks one after the other, less often as time goes on. */
	private static int poll(Request[] requests) {
		for (int round = 0;; round++) {
			for (int i = 0; i < requests.length; i++)
				if (requests[i] != null && requests[i].isActive() && requests[i].advance(false))
					return i;
			if (round < SPINS)
				Thread.yield();
			else
				java.util.concurrent.locks.LockSupport.parkNanos(POLL_NS);
		}
	}

	private static int await(Request[] requests, xxdev.Request[] operations) {
		try {
			xxdev.Status status = xxdev.Request.iwaitany(operations);
			requests[status.index()].finish(status);
			return status.index();
		} catch (XXDevException e) {
			for (int i = 0; i < operations.length; i++) {
				if (operations[i] != null && operations[i].isnull()) {
					requests[i].fail(e);
					return i;
				}
			}
			throw Errors.of(e);
		}
	}

	/**
	 * Asks whether one is complete, and completes it. Does not block.
	 *
	 * @param array_of_requests which
	 * @return its status, whose index is its position; null if none is complete
	 */
	public static Status Testany(Request[] array_of_requests) {
		check("Testany", array_of_requests);
		for (int i = 0; i < array_of_requests.length; i++) {
			Request request = array_of_requests[i];
			if (request != null && request.isActive() && request.advance(false))
				return request.take().at(i);
		}
		return null;
	}

	/**
	 * Blocks until one at least is complete, and completes all that are.
	 *
	 * @param array_of_requests which
	 * @return their statuses, each with its index; none if none was active
	 */
	public static Status[] Waitsome(Request[] array_of_requests) {
		check("Waitsome", array_of_requests);
		return await(array_of_requests) < 0 ? new Status[0] : Testsome(array_of_requests);
	}

	/**
	 * Completes all that are complete. Does not block.
	 *
	 * @param array_of_requests which
	 * @return their statuses, each with its index
	 */
	public static Status[] Testsome(Request[] array_of_requests) {
		check("Testsome", array_of_requests);
		java.util.List<Status> some = new java.util.ArrayList<>();
		for (int i = 0; i < array_of_requests.length; i++) {
			Request request = array_of_requests[i];
			if (request != null && request.isActive() && request.advance(false))
				some.add(request.take().at(i));
		}
		return some.toArray(new Status[0]);
	}
}
