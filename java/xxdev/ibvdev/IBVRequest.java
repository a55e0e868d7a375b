// SPDX-License-Identifier: MIT
package xxdev.ibvdev;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.concurrent.TimeUnit;
import xdev.ibvdev.PendingRequest;
import xdev.ibvdev.ResultBlock;
import xdev.ibvdev.VirtualThreads;
import xxdev.ErrorCode;
import xxdev.Request;
import xxdev.Status;
import xxdev.XXDevException;

/**
 * A send or receive under way.
 *
 * <pre>
 *   PENDING --(iwait, test, iwaitany: complete; cancelled; freed)--> COMPLETE
 *   BUSY stands for PENDING while one thread is at work on the request.
 * </pre>
 *
 * Complete means: the library has consumed the request, and what came was delivered. Only the thread that made it BUSY touches the fields
 * without a word about threads.
 */
final class IBVRequest extends Request implements PendingRequest {
	private static final int PENDING = 0;
	private static final int BUSY = 1;
	private static final int COMPLETE = 16;
	/** Added to BUSY when another thread sleeps on this object. */
	private static final int AWAITED = 4;

	/** As a time to wait. */
	private static final long NO_LIMIT = Watcher.NO_LIMIT;
	/** Longer waits are as good as this: a century, of which no clock overflows. */
	private static final long LONGEST_NS = Long.MAX_VALUE / 3;

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
	private final String operation;
	private final int peer;
	private final int tag;
	private final int context;
	/** A receive's target; of a send only if its memory must stay reachable. */
	private final ArrayRef ref;
	/** Of a receive: what the library writes instead of ref; else null. */
	private final BounceBuffer bounce;
	/** Of a send of objects: where their bytes are, for the next one when it is complete; else null. */
	private final ObjectCodec.Packer packer;
	private final boolean receive;
	/** Of a send, for its status. */
	private final long word;
	private final long bytes;

	private volatile int state = PENDING;
	/** The library knows the request no more. */
	private volatile boolean consumed;
	private volatile boolean freed;
	/** Of a virtual thread that is parked until this is complete. */
	private volatile Watcher.Wait wait;
	/** The outcome, written before COMPLETE. */
	private Status status;
	private XXDevException failure;
	private volatile boolean taken;
	/** Which iwaitany has claimed the request; only that one reads its own name here. */
	private WaitAny claimer;
	private PendingRequest next;

	private IBVRequest(IBVDevice device, long endpoint, String operation, boolean receive, ObjectCodec.Packer packer, int peer, int tag, int context,
			ArrayRef ref, BounceBuffer bounce, long word, long bytes) {
		this.device = device;
		this.endpoint = endpoint;
		this.operation = operation;
		this.receive = receive;
		this.packer = packer;
		this.peer = peer;
		this.tag = tag;
		this.context = context;
		this.ref = ref;
		this.bounce = bounce;
		this.word = word;
		this.bytes = bytes;
	}

	static IBVRequest send(IBVDevice device, long endpoint, String operation, int peer, int tag, int context, ArrayRef ref, ObjectCodec.Packer packer) {
		ArrayRef kept = ref.nativeKind == Native.MEMORY ? ref : null;
		return new IBVRequest(device, endpoint, operation, false, packer, peer, tag, context, kept, null, ref.word, ref.length);
	}

	/** A send of which the library has what it needs. */
	static IBVRequest brief(IBVDevice device, long endpoint, String operation, int peer, int tag, int context, long word, long bytes) {
		return new IBVRequest(device, endpoint, operation, false, null, peer, tag, context, null, null, word, bytes);
	}

	/** bounce: what the library writes in place of ref, or null. */
	static IBVRequest receive(IBVDevice device, long endpoint, String operation, int peer, int tag, int context, ArrayRef ref, BounceBuffer bounce) {
		return new IBVRequest(device, endpoint, operation, true, null, peer, tag, context, ref, bounce, 0, 0);
	}

	@Override
	public Status iwait() {
		for (;;) {
			int now = state;
			if (now == COMPLETE)
				return outcome();
			if (now == PENDING) {
				if (claim()) {
					work(NO_LIMIT);
					return outcome();
				}
			} else {
				awaitChange(now, 0);
			}
		}
	}

	/** iwait() with the result as a block. */
	ResultBlock block() {
		Status ended = iwait();
		return new ResultBlock(ended.source().rank(), ended.tag(), ended.bytes());
	}

	@Override
	public Status iwait(long timeout, TimeUnit unit) {
		long limit = Math.min(unit.toNanos(timeout), LONGEST_NS);
		if (limit <= 0)
			return test();
		long end = System.nanoTime() + limit;
		for (long left = limit; left > 0; left = end - System.nanoTime()) {
			int now = state;
			if (now == COMPLETE)
				return outcome();
			if (now != PENDING)
				awaitChange(now, TimeUnit.NANOSECONDS.toMillis(left) + 1);
			else if (claim())
				return work(left) ? outcome() : null;
		}
		return test();
	}

	@Override
	public Status test() {
		int now = state;
		if (now == COMPLETE)
			return outcome();
		if (now != PENDING || !claim())
			return null; /* another thread completes it */
		return work(0) ? outcome() : null;
	}

	private boolean claim() {
		return STATE.compareAndSet(this, PENDING, BUSY);
	}

	/** With the state BUSY, which ends here: drives the operation on, for so long. True: complete. */
	private boolean work(long timeoutNs) {
		try {
			if (receive)
				checkThread();
			advance(timeoutNs);
		} finally {
			leave(consumed ? COMPLETE : PENDING);
		}
		return consumed;
	}

	/** Refuses a thread that cannot deliver the message, as long as nothing has happened. */
	private void checkThread() {
		if (ref.copied)
			ref.checkThread(operation);
	}

	private void advance(long timeoutNs) {
		if (VirtualThreads.current()) {
			park(timeoutNs);
			return;
		}
		ResultBlock result = ResultBlock.own();
		settle(timeoutNs != 0 ? complete(timeoutNs, result) : test(result), result);
	}

	/** As advance, of a virtual thread. */
	private void park(long timeoutNs) {
		int looks = timeoutNs == 0 ? 1 : Watcher.LOOKS;
		for (int i = 0; i < looks && !consumed; i++)
			look();
		while (timeoutNs != 0 && !consumed) {
			device.watcher().await(new IBVRequest[] {this}, timeoutNs);
			look();
			if (timeoutNs > 0)
				return;
		}
	}

	private void look() {
		ResultBlock result = ResultBlock.take();
		try {
			settle(test(result), result);
		} finally {
			result.giveBack();
		}
	}

	/** What a wait or test has returned. */
	private void settle(int rc, ResultBlock result) {
		if (rc == 0)
			return;
		if (rc == -Native.ESHUTDOWN) /* the library has not looked at the request */
			throw Errors.of(rc, text());
		device.pending.remove(this);
		try {
			take(rc, result);
		} catch (XXDevException e) {
			failure = e;
		} catch (OutOfMemoryError e) {
			failure = new XXDevException(ErrorCode.NO_MEMORY, -1, text() + ": the message has come, but found no room in the Java heap: " + e, e);
			throw e;
		} finally {
			giveBack();
		}
	}

	/** What is under way. */
	private String text() {
		return Texts.operation(operation, receive ? "from" : "to", peer, tag, context);
	}

	/** The library does not write the bounce buffer any more. */
	void giveBack() {
		ThreadBuffers own = bounce == null ? null : ThreadBuffers.own();
		if (own != null)
			own.giveBack(bounce);
	}

	void setWait(Watcher.Wait parked) {
		wait = parked;
	}

	/** The library has found it complete: its thread is to look. */
	void endWait() {
		Watcher.Wait parked = wait;
		if (parked != null)
			parked.end();
	}

	/** The library has, or writes, all that it needs before this request is waited for. */
	private boolean isPlain() {
		return !receive || bounce != null;
	}

	private int complete(long timeoutNs, ResultBlock result) {
		return isPlain() ? Native.waitFor(endpoint, handle, timeoutNs, null, Native.MEMORY, 0, 0, result.address)
						 : Native.waitFor(endpoint, handle, timeoutNs, ref.memory, ref.nativeKind, ref.offset, ref.length, result.address);
	}

	private int test(ResultBlock result) {
		return isPlain() ? Native.test(endpoint, handle, null, Native.MEMORY, 0, 0, result.address)
						 : Native.test(endpoint, handle, ref.memory, ref.nativeKind, ref.offset, ref.length, result.address);
	}

	/** The library has given the request back with this result. */
	private void take(int rc, ResultBlock result) {
		if (packer != null)
			packer.giveBack();
		if (rc < 0)
			failure = receive ? Errors.received(rc, operation, peer, tag, context, ref, result) : Errors.of(rc, text());
		else if (!receive)
			status = device.status(peer, tag, word, bytes);
		else if (ref.nativeKind == Native.BODY)
			status = Arrival.of(operation, context, ref, result).deliver(device, endpoint, context);
		else
			status = received(result);
	}

	private Status received(ResultBlock result) {
		if (bounce != null)
			ref.fill(bounce, result.bytes());
		return device.delivered(operation, context, ref, result);
	}

	/** Ends BUSY and wakes threads in awaitChange(). */
	private void leave(int to) {
		int before = (int) STATE.getAndSet(this, to);
		if ((before & AWAITED) != 0) {
			synchronized (this) {
				notifyAll();
			}
		}
	}

	/** Sleeps until a thread that is at work, when the state was this, ends that; no longer than so many milliseconds, 0: without limit. */
	private synchronized void awaitChange(int seen, long milliseconds) {
		int awaited = seen | AWAITED;
		if ((seen & BUSY) == 0 || seen != awaited && !STATE.compareAndSet(this, seen, awaited))
			return;
		boolean interrupted = false;
		long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(milliseconds);
		long left = milliseconds;
		while (state == awaited && (milliseconds == 0 || left > 0)) {
			try {
				wait(left);
			} catch (InterruptedException e) {
				interrupted = true;
			}
			if (milliseconds > 0)
				left = TimeUnit.NANOSECONDS.toMillis(end - System.nanoTime());
		}
		if (interrupted)
			Thread.currentThread().interrupt();
	}

	private Status outcome() {
		taken = true;
		if (failure != null)
			throw Errors.again(failure);
		return status;
	}

	@Override
	public boolean cancel() {
		if (!receive)
			return false;
		if (claim()) {
			try {
				if (!cancelled())
					return false;
				advance(NO_LIMIT);
				return true;
			} finally {
				leave(consumed ? COMPLETE : PENDING);
			}
		}
		/* A thread that sleeps in iwait of this request gets the news from there. */
		int now = state;
		return now != COMPLETE && !consumed && cancelled();
	}

	private boolean cancelled() {
		int rc = Native.cancel(endpoint, handle);
		if (rc == -Native.ESHUTDOWN)
			throw Errors.receiving(rc, "cancel", peer, tag, context);
		return rc == 0;
	}

	@Override
	public void free() {
		if (state == COMPLETE || freed) {
			taken = true;
			return;
		}
		if (!claim())
			throw new XXDevException(ErrorCode.BUSY, -1, text() + ": free while another thread waits for the request");
		boolean gone = false;
		try {
			freed = true;
			if (ref != null && ref.nativeKind == Native.MEMORY) {
				device.freed(this); /* memory that the library uses must stay reachable until it does no more */
			} else if (Native.free(endpoint, handle) == 0) {
				if (bounce == null)
					device.pending.remove(this);
				else /* stays reachable until its slot is another request's: the library may write the bounce buffer */
					consumed = true;
				gone = true;
			}
		} finally {
			leave(gone ? COMPLETE : PENDING);
		}
	}

	/** A freed request whose end is still to be seen: true when it was. */
	boolean reap() {
		try {
			return test() != null;
		} catch (XXDevException e) {
			return state == COMPLETE;
		}
	}

	boolean isFreed() {
		return freed;
	}

	@Override
	public boolean isnull() {
		return taken || freed;
	}

	@Override
	protected Status waitany(Request[] requests) {
		return new WaitAny(device, endpoint, requests).run();
	}

	/** For WaitAny. True: the state is BUSY by the caller, which must call conclude() or unclaim(). */
	boolean claimFor(WaitAny caller) {
		if (!claim())
			return false;
		claimer = caller;
		return true;
	}

	/** Answers only for the calling thread's own claim. */
	boolean isClaimedBy(WaitAny caller) {
		return claimer == caller;
	}

	/** Ends a claim; first completes the request, or (block is false) tests it. True: it is complete. */
	boolean conclude(boolean block) {
		claimer = null;
		return work(block ? NO_LIMIT : 0);
	}

	void unclaim() {
		claimer = null;
		leave(PENDING);
	}

	boolean isComplete() {
		return state == COMPLETE;
	}

	/** Sleeps while another thread works on the request, no longer than so many milliseconds. */
	void awaitOther(long milliseconds) {
		awaitChange(state, milliseconds);
	}

	boolean of(IBVDevice other) {
		return device == other;
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

	@Override
	public void abandon() {
		/* Nothing is held but Java objects. */
	}
}
