// SPDX-License-Identifier: MIT
package xxdev.ibvdev;

import java.lang.ref.Reference;
import java.lang.reflect.Array;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import xdev.ibvdev.NativeLibrary;
import xdev.ibvdev.PendingRequests;
import xdev.ibvdev.RegisteredBuffers;
import xdev.ibvdev.ResultBlock;
import xdev.ibvdev.Settings;
import xdev.ibvdev.VirtualThreads;
import xxdev.Device;
import xxdev.ErrorCode;
import xxdev.PID;
import xxdev.Request;
import xxdev.Status;
import xxdev.ThreadLevel;
import xxdev.XXDevException;

/**
 * The device "ibvdev" of the interface of FastMPJ: messages of Java objects by way of the native library of ibvx.h.
 *
 * <p>Any method may be called by any thread at any time, except that {@link #finish} must be the last. Arrays and direct buffers go to the wire from where they
 * lie; native/ARCHITECTURE.md describes how. Objects are serialized ({@link Serializer}, {@link ObjectCodec}, {@link Limits}).
 */
public final class IBVDevice extends Device {
	/** The context of messages of the device's own. */
	static final int OWN_CONTEXT = Integer.MIN_VALUE;
	private static final int ALL = Message.ALL;

	/** The handle of the native endpoint; 0 before init. A stale one is refused by every native method. */
	private volatile long endpoint;
	private volatile Peers peers = Peers.NONE;
	private volatile ObjectCodec codec;
	private volatile RegisteredBuffers registered = RegisteredBuffers.NONE;
	private volatile Watcher watcher;
	/** Requests under way. */
	final PendingRequests pending = new PendingRequests();
	/** Requests that were given up, but whose memory the library still uses. */
	private final Queue<IBVRequest> given = new ConcurrentLinkedQueue<>();

	/** A device that {@link #init} is still to open. */
	public IBVDevice() {}

	@Override
	public String name() {
		return "ibvdev";
	}

	@Override
	public ThreadLevel threadLevel() {
		return ThreadLevel.MULTIPLE;
	}

	@Override
	public synchronized PID[] init(String[] args) {
		if (peers.open())
			throw new XXDevException(ErrorCode.BUSY, -1, "init: this device is rank " + peers.self + " of a job already: finish it first");
		int rank = Peers.rankArgument(args);
		long handle;
		Limits limits;
		Serializer serializer;
		try {
			limits = new Limits();
			serializer = ObjectCodec.serializer();
			NativeLibrary.load();
			handle = Native.open(rank, Settings.conf(args), Settings.properties(), Settings.defaults());
		} catch (IllegalArgumentException e) {
			throw new XXDevException(ErrorCode.BAD_ARGUMENT, -1, "init: " + e.getMessage(), e);
		} catch (UnsatisfiedLinkError e) {
			throw new XXDevException(ErrorCode.NO_LIBRARY, -1, "init: " + e.getMessage(), e);
		}
		if (Native.failed(handle))
			throw Errors.of(handle, rank < 0 ? "init" : "init of rank " + rank);
		try {
			Peers all = new Peers(new String(Native.jobId(handle), StandardCharsets.US_ASCII), Native.rank(handle), Native.size(handle));
			codec = new ObjectCodec(all.size(), limits, serializer);
			registered = new RegisteredBuffers(handle);
			watcher = new Watcher(handle, pending);
			endpoint = handle;
			peers = all;
			return all.all();
		} finally {
			if (endpoint != handle)
				Native.abort(handle);
		}
	}

	@Override
	public PID id() {
		Peers now = peers;
		if (!now.open())
			throw Peers.closed("id");
		return now.id(now.self);
	}

	@Override
	public synchronized void finish() {
		if (!peers.open())
			throw Peers.closed("finish");
		reap();
		int rc = Native.close(endpoint);
		if (rc == -Native.EBUSY || rc == -Native.ETIMEDOUT)
			throw Errors.of(rc, "finish");
		peers = Peers.NONE;
		codec = null;
		registered = RegisteredBuffers.NONE;
		watcher.end();
		pending.abandonAll();
		given.clear();
		if (rc < 0)
			throw Errors.of(rc, "finish");
	}

	/**
	 * Lets adapters keep their registration of a direct buffer's memory between messages, which saves pinning its pages for each. Never needed for correctness.
	 *
	 * <p>The caller promises that the memory stays as it is, from the buffer's first byte to its capacity, until {@link #release} or {@link #finish}: it is not freed by hand.
	 *
	 * @param buffer a direct buffer, which the device refers to from now on
	 * @return false: no adapter has a use for it, and there is nothing to release
	 * @throws XXDevException if the device is not open, the buffer is not direct, or more than the settings verbs_cache_entries and verbs_cache_bytes allow
	 *                        would be registered
	 */
	public boolean register(ByteBuffer buffer) {
		if (!peers.open())
			throw Peers.closed("register");
		if (!buffer.isDirect())
			throw Errors.argument("register: the buffer is not direct: use ByteBuffer.allocateDirect");
		int rc = registered.register(buffer);
		if (rc < 0)
			throw Errors.of(rc, "register");
		return rc > 0;
	}

	/**
	 * Ends a registration, once for each {@link #register}; ignores a buffer that is not registered. Only messages under way reach the memory afterwards.
	 *
	 * @param buffer what was registered
	 */
	public void release(ByteBuffer buffer) {
		registered.release(buffer);
	}

	/**
	 * What the native library has counted so far.
	 *
	 * @param peer of messages to and from it; null: of this process
	 * @return lines "name value"
	 * @throws XXDevException if the device is not open
	 */
	public String counters(PID peer) {
		byte[] text = Native.counters(endpoint, peer == null ? -1 : peers.destination("counters", peer));
		if (text == null)
			throw Errors.of(-Native.ESHUTDOWN, "counters");
		return new String(text, StandardCharsets.UTF_8);
	}

	@Override
	public void send(Object buf, PID dst, int tag, int context) {
		sendNow("send", false, buf, 0, ALL, dst, tag, context);
	}

	@Override
	public void send(Object buf, int offset, int count, PID dst, int tag, int context) {
		sendNow("send", false, buf, offset, portion("send", count), dst, tag, context);
	}

	@Override
	public void ssend(Object buf, PID dst, int tag, int context) {
		sendNow("ssend", true, buf, 0, ALL, dst, tag, context);
	}

	@Override
	public void ssend(Object buf, int offset, int count, PID dst, int tag, int context) {
		sendNow("ssend", true, buf, offset, portion("ssend", count), dst, tag, context);
	}

	@Override
	public Request isend(Object buf, PID dst, int tag, int context) {
		return start("isend", false, buf, 0, ALL, dst, tag, context);
	}

	@Override
	public Request isend(Object buf, int offset, int count, PID dst, int tag, int context) {
		return start("isend", false, buf, offset, portion("isend", count), dst, tag, context);
	}

	@Override
	public Request issend(Object buf, PID dst, int tag, int context) {
		return start("issend", true, buf, 0, ALL, dst, tag, context);
	}

	@Override
	public Request issend(Object buf, int offset, int count, PID dst, int tag, int context) {
		return start("issend", true, buf, offset, portion("issend", count), dst, tag, context);
	}

	@Override
	public Status recv(Object buf, PID src, int tag, int context) {
		return receive(buf, 0, ALL, src, tag, context);
	}

	@Override
	public Status recv(Object buf, int offset, int count, PID src, int tag, int context) {
		return receive(buf, offset, portion("recv", count), src, tag, context);
	}

	@Override
	public Request irecv(Object buf, PID src, int tag, int context) {
		return post(buf, 0, ALL, src, tag, context);
	}

	@Override
	public Request irecv(Object buf, int offset, int count, PID src, int tag, int context) {
		return post(buf, offset, portion("irecv", count), src, tag, context);
	}

	private static int portion(String operation, int count) {
		if (count < 0)
			throw Errors.argument(operation + ": the count is " + count + ": it must not be negative");
		return count;
	}

	private static void check(String operation, int context) {
		if (context == OWN_CONTEXT)
			throw Errors.argument(operation + ": the context Integer.MIN_VALUE is the device's own: use another");
	}

	private void sendNow(String operation, boolean sync, Object buf, int offset, int count, PID dst, int tag, int context) {
		int rank = peers.destination(operation, dst);
		check(operation, context);
		sendTo(operation, sync, buf, offset, count, rank, tag, context);
	}

	/** How many elements of an array of that size a message has. */
	private static int portionOf(String operation, Object buf, int size, int offset, int count) {
		if (count == ALL)
			return size;
		if ((offset | count | size - count - offset) < 0)
			ArrayRef.check(operation, buf, size, offset, count);
		return count;
	}

	/** To a rank of the job; allocates nothing for a primitive array or a direct ByteBuffer. */
	void sendTo(String operation, boolean sync, Object buf, int offset, int count, int rank, int tag, int context) {
		if (VirtualThreads.current()) {
			startTo(operation, sync, buf, offset, count, rank, tag, context).iwait();
			return;
		}
		int kind = ArrayRef.kindOf(buf);
		if (kind < 0) {
			if (Buffers.isDirectBytes(buf))
				Buffers.send(endpoint, operation, sync, (ByteBuffer) buf, offset, count, rank, tag, context);
			else
				sendAny(operation, sync, Message.of(codec(), operation, buf, offset, count), rank, tag, context);
			Reference.reachabilityFence(buf);
			return;
		}
		int elements = portionOf(operation, buf, Array.getLength(buf), offset, count);
		int shift = Word.shift(kind);
		long bytes = (long) elements << shift;
		long word = Word.elements(kind, elements);
		int rc;
		if (BounceBuffer.holds(kind, elements)) {
			ThreadBuffers own = ThreadBuffers.own();
			own.bounce.put(kind, buf, offset, elements);
			rc = sync ? Native.ssend(endpoint, null, Native.MEMORY, own.address, bytes, rank, tag, context, word)
					  : Native.send(endpoint, null, Native.MEMORY, own.address, bytes, rank, tag, context, word);
		} else {
			long at = (long) offset << shift;
			rc = sync ? Native.ssend(endpoint, buf, kind, at, bytes, rank, tag, context, word)
					  : Native.send(endpoint, buf, kind, at, bytes, rank, tag, context, word);
		}
		if (rc < 0)
			throw Errors.sending(rc, operation, rank, tag, context);
	}

	/** Sends what the natives must be prepared for: buffers, rows, objects. */
	void sendAny(String operation, boolean sync, Message message, int rank, int tag, int context) {
		if (VirtualThreads.current()) {
			startAny(operation, sync, message, rank, tag, context).iwait();
			return;
		}
		long ep = endpoint;
		ArrayRef ref = message.addressed(ep, rank);
		int rc = sync ? Native.ssend(ep, ref.memory, ref.nativeKind, ref.offset, ref.length, rank, tag, context, ref.word)
					  : Native.send(ep, ref.memory, ref.nativeKind, ref.offset, ref.length, rank, tag, context, ref.word);
		if (rc < 0)
			throw Errors.sending(rc, operation, rank, tag, context);
		message.sent();
	}

	private Request start(String operation, boolean sync, Object buf, int offset, int count, PID dst, int tag, int context) {
		int rank = peers.destination(operation, dst);
		check(operation, context);
		return startTo(operation, sync, buf, offset, count, rank, tag, context);
	}

	/** Starts a send to a rank of the job. */
	IBVRequest startTo(String operation, boolean sync, Object buf, int offset, int count, int rank, int tag, int context) {
		int kind = ArrayRef.kindOf(buf);
		if (kind >= 0) {
			int elements = portionOf(operation, buf, Array.getLength(buf), offset, count);
			if (BounceBuffer.holds(kind, elements) && !VirtualThreads.current())
				return startBrief(operation, sync, kind, buf, offset, elements, rank, tag, context);
		}
		return startAny(operation, sync, Message.of(codec(), operation, buf, offset, count), rank, tag, context);
	}

	/** Starts a send of what the natives must be prepared for. */
	IBVRequest startAny(String operation, boolean sync, Message message, int rank, int tag, int context) {
		long ep = endpoint;
		ArrayRef ref = message.addressed(ep, rank);
		IBVRequest request = IBVRequest.send(this, ep, operation, rank, tag, context, ref, message.packer);
		request.handle = sync ? Native.issend(ep, ref.memory, ref.nativeKind, ref.offset, ref.length, rank, tag, context, ref.word)
							  : Native.isend(ep, ref.memory, ref.nativeKind, ref.offset, ref.length, rank, tag, context, ref.word);
		if (Native.failed(request.handle))
			throw Errors.sending(request.handle, operation, rank, tag, context);
		pending.add(request);
		return request;
	}

	private IBVRequest startBrief(String operation, boolean sync, int kind, Object buf, int offset, int elements, int rank, int tag, int context) {
		long bytes = (long) elements << Word.shift(kind);
		long word = Word.elements(kind, elements);
		long ep = endpoint;
		ThreadBuffers own = ThreadBuffers.own();
		own.bounce.put(kind, buf, offset, elements);
		IBVRequest request = IBVRequest.brief(this, ep, operation, rank, tag, context, word, bytes);
		request.handle = sync ? Native.issend(ep, null, Native.BRIEF, own.address, bytes, rank, tag, context, word)
							  : Native.isend(ep, null, Native.BRIEF, own.address, bytes, rank, tag, context, word);
		if (Native.failed(request.handle))
			throw Errors.sending(request.handle, operation, rank, tag, context);
		pending.add(request);
		return request;
	}

	private Status receive(Object buf, int offset, int count, PID src, int tag, int context) {
		int rank = peers.source("recv", src);
		check("recv", context);
		int kind = ArrayRef.kindOf(buf);
		if (kind < 0 || VirtualThreads.current()) {
			Status status = receiveAny(Message.target(codec(), "recv", buf, offset, count), rank, tag, context);
			Reference.reachabilityFence(buf);
			return status;
		}
		ResultBlock result = receiveArray(kind, buf, offset, count, rank, tag, context);
		return status(result.source(), result.tag(), result.user(), result.bytes());
	}

	/** A primitive array from a rank of the job, or ANY; allocates nothing. The status is the calling thread's result block. */
	ResultBlock receiveArray(int kind, Object buf, int offset, int count, int rank, int tag, int context) {
		int elements = portionOf("recv", buf, Array.getLength(buf), offset, count);
		if (VirtualThreads.current())
			return begin("recv", ArrayRef.array(kind, buf, offset, elements), rank, tag, context).block();
		int shift = Word.shift(kind);
		long bytes = (long) elements << shift;
		long wanted = Word.elements(kind, elements);
		ThreadBuffers own = ThreadBuffers.own();
		ResultBlock result = own.result;
		boolean small = BounceBuffer.holds(kind, elements);
		int rc = small ? Native.recv(endpoint, null, Native.MEMORY, own.address, bytes, rank, tag, context, wanted, result.address)
					   : Native.recv(endpoint, buf, kind, (long) offset << shift, bytes, rank, tag, context, wanted, result.address);
		if (rc < 0)
			throw Errors.received(rc, "recv", rank, tag, context, ArrayRef.array(kind, buf, offset, elements), result);
		if (small)
			own.bounce.get(kind, buf, offset, (int) result.bytes() >> shift);
		return result;
	}

	/** Receives buffers, rows, objects. */
	Status receiveAny(ArrayRef ref, int rank, int tag, int context) {
		if (VirtualThreads.current())
			return begin("recv", ref, rank, tag, context).iwait();
		long ep = endpoint;
		ResultBlock result = ResultBlock.own();
		int rc = Native.recv(ep, ref.memory, ref.nativeKind, ref.offset, ref.length, rank, tag, context, ref.word, result.address);
		if (rc < 0)
			throw Errors.received(rc, "recv", rank, tag, context, ref, result);
		if (ref.nativeKind != Native.BODY)
			return delivered("recv", context, ref, result);
		return Arrival.of("recv", context, ref, result).deliver(this, ep, context);
	}

	private Request post(Object buf, int offset, int count, PID src, int tag, int context) {
		int rank = peers.source("irecv", src);
		check("irecv", context);
		return postFrom(Message.target(codec(), "irecv", buf, offset, count), rank, tag, context);
	}

	/** Starts a receive from a rank of the job, or ANY. */
	IBVRequest postFrom(ArrayRef ref, int rank, int tag, int context) {
		return begin("irecv", ref, rank, tag, context);
	}

	private IBVRequest begin(String operation, ArrayRef ref, int rank, int tag, int context) {
		long ep = endpoint;
		ThreadBuffers own = ref.isShort() ? ThreadBuffers.own() : null;
		BounceBuffer bounce = own == null ? null : own.take();
		IBVRequest request = IBVRequest.receive(this, ep, operation, rank, tag, context, ref, bounce);
		request.handle = bounce == null ? Native.irecv(ep, ref.memory, ref.nativeKind, ref.offset, ref.length, rank, tag, context, ref.word)
										: Native.irecv(ep, bounce.bytes, Native.MEMORY, 0, ref.length, rank, tag, context, ref.word);
		return begun(request, rank, tag, context);
	}

	/** A receive of which the library has been asked: under way, or an exception. */
	IBVRequest begun(IBVRequest receive, int rank, int tag, int context) {
		if (Native.failed(receive.handle)) {
			receive.giveBack();
			throw Errors.receiving(receive.handle, "irecv", rank, tag, context);
		}
		pending.add(receive);
		return receive;
	}

	@Override
	public Status probe(PID src, int tag, int context) {
		int rank = peers.source("probe", src);
		check("probe", context);
		return Probes.wait(this, rank, tag, context);
	}

	@Override
	public Status iprobe(PID src, int tag, int context) {
		int rank = peers.source("iprobe", src);
		check("iprobe", context);
		return Probes.look(this, rank, tag, context);
	}

	@Override
	public Request peek() {
		if (!peers.open())
			throw Peers.closed("peek");
		for (;;) {
			long handle = Native.peek(endpoint);
			if (Native.failed(handle))
				throw Errors.of(handle, "peek");
			IBVRequest request = (IBVRequest) pending.find(handle);
			if (request == null)
				continue;
			if (!request.isFreed())
				return request;
			reap();
		}
	}

	/** What was received in memory that is not for objects. */
	Status delivered(String operation, int context, ArrayRef ref, ResultBlock result) {
		long word = result.user();
		if (Word.depth(word) != Word.depth(ref.word) || Word.checksum(word) != Word.checksum(ref.word))
			throw new XXDevException(ErrorCode.TYPE_MISMATCH, result.source(),
					Texts.operation(operation, "from", result.source(), result.tag(), context) + ": the message holds " + Word.text(word) + ", the receive has "
							+ ref.text() + ", which divides its innermost rows differently; they have been overwritten");
		if (!ref.deliver(word))
			throw new XXDevException(ErrorCode.BUFFER_CLOSED, result.source(), Texts.closed(operation, context, result));
		return status(result.source(), result.tag(), word, result.bytes());
	}

	Status status(int rank, int tag, long word, long bytes) {
		return new Status(peers.id(rank), tag, Word.count(word), bytes, Word.type(word), Word.depth(word));
	}

	long endpointHandle() {
		return endpoint;
	}

	Watcher watcher() {
		return watcher;
	}

	/** Of an open device. */
	ObjectCodec codec() {
		ObjectCodec now = codec;
		if (now == null)
			throw Peers.closed("this operation");
		return now;
	}

	/** A request was given up while the library uses its memory. */
	void freed(IBVRequest request) {
		given.add(request);
		reap();
	}

	/** Lets go of what was given up and is complete. */
	private void reap() {
		given.removeIf(IBVRequest::reap);
	}
}
