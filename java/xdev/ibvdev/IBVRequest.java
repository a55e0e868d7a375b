// SPDX-License-Identifier: MIT
package xdev.ibvdev;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import mpjbuf.Buffer;
import mpjdev.Request;
import mpjdev.Status;
import xdev.XDevException;

/**
 * A send or receive under way.
 *
 * <pre>
 *   PENDING --(itest: complete)--> DONE --(iwait: handlers)--> COMPLETE
 *   PENDING --(iwait: complete, handlers; or cancelled)-----> COMPLETE
 *   BUSY stands for PENDING or DONE while one thread is at work on the request.
 * </pre>
 *
 * Only the thread that made it BUSY touches the memory of the operation. A device that refuses (it is being finished,
 * or has been) does not concern the request, which stays PENDING: finish may yet fail. If it does not, the memory is
 * freed by finish, or, if the request is BUSY then, by the thread that ends BUSY.
 *
 * Completion handlers run exactly once, in iwait, in the thread that called it. An operation that has failed is complete: iwait and
 * itest throw, every time.
 */
public final class IBVRequest extends Request implements PendingRequest {
	private static final int PENDING = 0;
	private static final int BUSY = 1;
	private static final int DONE = 2;
	private static final int COMPLETE = 16;
	/** Added to BUSY when another thread sleeps on this object. */
	private static final int AWAITED = 4;
	/** Added to BUSY when the device has been finished. */
	private static final int ORPHANED = 8;

	private static final VarHandle STATE;

	static {
		try {
			STATE = MethodHandles.lookup().findVarHandle(IBVRequest.class, "state", int.class);
		} catch (ReflectiveOperationException e) {
			throw new ExceptionInInitializerError(e);
		}
	}

	private final IBVDevice device;
	/** The device's when the operation began: after a new init its handles are others'. */
	private final long endpoint;
	/** Slot and generation; set once, before anybody else sees this object. */
	long handle;
	/** Both are those of PendingRequests. */
	private PendingRequest next;
	private volatile boolean consumed;
	private final boolean receive;
	/** For the text of an error. */
	private final int peer;
	private final int tag;
	private final int context;
	/** What the native side reads or writes; kept reachable. Null when it has a bounce buffer. */
	private ByteBuffer memory;
	/** A receive's buffer, or null. */
	private Buffer buffer;
	/** Native memory in place of a heap buffer, or a send's dynamic section; 0: none. */
	private long bounce;
	private long body;

	private volatile int state = PENDING;
	private Thread owner;
	private Status status;
	private IBVException failure;
	private boolean cancelled;

	/** A send. */
	IBVRequest(IBVDevice device, long endpoint, ByteBuffer memory, int peer, int tag, int context) {
		this.device = device;
		this.endpoint = endpoint;
		this.receive = false;
		this.memory = memory;
		this.peer = peer;
		this.tag = tag;
		this.context = context;
	}

	/** A receive. status may be null. */
	IBVRequest(IBVDevice device, long endpoint, ByteBuffer memory, Buffer buffer, int peer, int tag, int context, Status status) {
		this.device = device;
		this.endpoint = endpoint;
		this.receive = true;
		this.memory = memory;
		this.buffer = buffer;
		this.peer = peer;
		this.tag = tag;
		this.context = context;
		this.status = status;
	}

	/** Hands native memory over, before the operation begins. */
	long bounced(long at) {
		return bounce = at;
	}

	/** The same for a send's dynamic section. */
	long bouncedBody(long at) {
		return body = at;
	}

	/**
	 * Blocks until the operation is complete, then runs the completion handlers. Later calls, also of
	 * other threads, return the same status. Interrupts do not end the wait; the thread's interrupt status is kept.
	 *
	 * @return the status; of a receive the object that irecv was given
	 * @throws XDevException if the operation failed: the message was longer than the buffer, the peer died; or if the device
	 *                       is being finished, or has been: should finish fail, the request is pending as before
	 */
	@Override
	public Status iwait() {
		for (;;) {
			int now = state;
			if (now == COMPLETE)
				return outcome();
			if (now == PENDING || now == DONE) {
				if (STATE.compareAndSet(this, now, BUSY))
					return finish(now == PENDING);
			} else if (owner == Thread.currentThread()) {
				return outcome(); /* a completion handler that asks about its own request */
			} else {
				awaitChange(now);
			}
		}
	}

	/**
	 * Asks whether the operation is complete, and drives it on. Runs no handlers; can be repeated.
	 *
	 * @return null, or the status: then the data is in the buffer
	 * @throws XDevException if the operation failed, or as iwait if the device is being finished
	 */
	@Override
	public Status itest() {
		int now = state;
		if (now == DONE || now == COMPLETE)
			return outcome();
		if (now != PENDING || !STATE.compareAndSet(this, PENDING, BUSY))
			return null; /* another thread completes it */
		int next = PENDING;
		owner = Thread.currentThread();
		try {
			ResultBlock result = receive ? ResultBlock.own() : null;
			int rc = Native.test(endpoint, handle, result == null ? 0 : result.address);
			if (rc == 0)
				return null;
			refuseIfClosed(rc);
			next = DONE;
			consumed(rc, result);
		} finally {
			leave(next);
		}
		return outcome();
	}

	/** With the state BUSY: waits if that is still to be done, and runs the handlers. */
	private Status finish(boolean pending) {
		int next = pending ? PENDING : COMPLETE;
		owner = Thread.currentThread();
		try {
			if (pending) {
				ResultBlock result = receive ? ResultBlock.own() : null;
				int rc = Native.waitFor(endpoint, handle, result == null ? 0 : result.address);
				refuseIfClosed(rc);
				next = COMPLETE;
				consumed(rc, result);
			}
			Status end = outcome();
			if (!cancelled)
				complete(end);
			return end;
		} finally {
			leave(next);
		}
	}

	/** The library has not looked at the request: it may still read and write the memory. */
	private void refuseIfClosed(int rc) {
		if (rc == -Native.ESHUTDOWN)
			throw error(rc);
	}

	private IBVException error(int rc) {
		return Errors.of(rc, receive ? "irecv" : "isend", receive ? "from" : "to", peer, tag, context);
	}

	/** Ends BUSY and wakes threads in awaitChange(). */
	private void leave(int next) {
		owner = null;
		int before = (int) STATE.getAndSet(this, next);
		if ((before & ORPHANED) != 0 && next == PENDING)
			release();
		if ((before & AWAITED) != 0) {
			synchronized (this) {
				notifyAll();
			}
		}
	}

	private synchronized void awaitChange(int seen) {
		int awaited = seen | AWAITED;
		if (seen != awaited && !STATE.compareAndSet(this, seen, awaited))
			return;
		boolean interrupted = false;
		while (state == awaited) {
			try {
				wait();
			} catch (InterruptedException e) {
				interrupted = true;
			}
		}
		if (interrupted)
			Thread.currentThread().interrupt();
	}

	/** The library has given the request back with this result: take over what it brought. */
	private void consumed(int rc, ResultBlock result) {
		device.pending.remove(this);
		try {
			if (rc == -Native.ECANCELED)
				cancelled = true;
			else if (rc < 0)
				failure = error(rc);
			else if (receive)
				received(result);
			if (status == null || !receive)
				status = new Status(0, tag, -1);
		} catch (OutOfMemoryError e) {
			failure = new IBVException(Native.ENOMEM, -1, "the message has come, but its dynamic section found no room in the Java heap: " + e);
			throw e;
		} finally {
			release();
		}
	}

	private void received(ResultBlock result) {
		if (status == null)
			status = new Status(0, tag, -1);
		if (memory == null)
			Memory.copyBack(bounce, buffer, result.headBytes());
		device.deliver(buffer, status, result);
	}

	@Override
	public long handle() {
		return handle;
	}

	@Override
	public PendingRequest next() {
		return next;
	}

	@Override
	public void setNext(PendingRequest request) {
		next = request;
	}

	@Override
	public boolean consumed() {
		return consumed;
	}

	@Override
	public void setConsumed() {
		consumed = true;
	}

	/** The endpoint is gone, or the operation never began: lets go of the memory, now or when the thread at work leaves. */
	@Override
	public void abandon() {
		for (;;) {
			int now = state;
			if (now == DONE || now == COMPLETE)
				return;
			if (now == PENDING && STATE.compareAndSet(this, PENDING, BUSY)) {
				release();
				leave(PENDING);
				return;
			}
			if ((now & BUSY) != 0 && STATE.compareAndSet(this, now, now | ORPHANED))
				return;
		}
	}

	/** Lets go of the memory that the operation needed. */
	private void release() {
		if (bounce != 0 || body != 0) {
			Native.release(bounce);
			Native.release(body);
			bounce = 0;
			body = 0;
		}
		memory = null;
		buffer = null;
	}

	private Status outcome() {
		if (failure != null)
			throw Errors.again(failure);
		return status;
	}

	/**
	 * Cancels a receive that has not matched a message. The request is then complete, without its handlers.
	 *
	 * @return false if it is a send, or has matched, or is complete
	 * @throws XDevException if the device is being finished, or has been
	 */
	@Override
	public boolean cancel() {
		if (!receive)
			return false;
		if (STATE.compareAndSet(this, PENDING, BUSY)) {
			int next = PENDING;
			owner = Thread.currentThread();
			try {
				if (!cancelled())
					return false;
				int rc = Native.waitFor(endpoint, handle, 0);
				refuseIfClosed(rc);
				next = COMPLETE;
				consumed(rc, null);
				return true;
			} finally {
				leave(next);
			}
		}
		/* A thread that sleeps in iwait of this request gets the news from there. */
		int now = state;
		return now != DONE && now != COMPLETE && cancelled();
	}

	private boolean cancelled() {
		int rc = Native.cancel(endpoint, handle);
		refuseIfClosed(rc);
		return rc == 0;
	}

	/** Does nothing: the request gives its resources back when it completes. */
	@Override
	public void free() {}

	/**
	 * MPJ Express keeps this in a class above.
	 *
	 * @return false
	 */
	@Override
	public boolean isnull() {
		return false;
	}
}
