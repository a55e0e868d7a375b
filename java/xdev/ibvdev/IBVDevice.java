// SPDX-License-Identifier: MIT
package xdev.ibvdev;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import java.util.UUID;
import mpjbuf.Buffer;
import mpjbuf.BufferException;
import mpjbuf.NIOBuffer;
import mpjbuf.RawBuffer;
import mpjbuf.Type;
import mpjdev.Request;
import mpjdev.Status;
import xdev.Device;
import xdev.ProcessID;
import xdev.XDevException;

/**
 * The device "ibvdev" of MPJ Express 0.44: messages by way of the native library of ibvx.h.
 *
 * <p>Any method may be called by any thread at any time, except that {@link #finish} must be the last. The static
 * section of an mpjbuf.Buffer is sent and received in place if it is a direct buffer. Errors are XDevExceptions
 * whose text names the operation, what was wrong, and what to do.
 */
public final class IBVDevice implements Device {
	/** Whether an mpjbuf.Buffer has been freed, which it does not tell; null if another version has no such field. */
	private static final VarHandle FREED = freedField();
	private static final Type[] TYPES = new Type[Native.TYPE_UNDEFINED + 1];

	static {
		for (int code = 0; code < TYPES.length; code++)
			TYPES[code] = Type.getType(code);
	}

	/** The handle of the native endpoint; 0 before init. A stale one is refused by every native method. */
	volatile long endpoint;
	/** Requests under way. */
	final PendingRequests pending = new PendingRequests();
	private volatile IBVProcessID[] ids = {};
	private volatile Map<UUID, IBVProcessID> byUuid = Map.of();
	private volatile int self = -1;

	/** A device that {@link #init} is still to open. */
	public IBVDevice() {
	}

	private static VarHandle freedField() {
		try {
			return MethodHandles.privateLookupIn(Buffer.class, MethodHandles.lookup()).findVarHandle(Buffer.class,
				"freed", boolean.class);
		} catch (ReflectiveOperationException e) {
			return null;
		}
	}

	/**
	 * Joins the job; returns when all ranks have come. After a failure it can be called again.
	 *
	 * @param args this process's rank; a conf file's path or MPJ Express's ";" string; the device's name, which is not looked at
	 * @return the ids of all ranks; the index is the rank
	 * @throws XDevException if the arguments, the conf or a setting is wrong, or ranks are missing when the setting
	 *                       start_timeout_ms has passed
	 */
	@Override
	public synchronized ProcessID[] init(String[] args) throws XDevException {
		if (self >= 0)
			throw new XDevException("init: this device is rank " + self + " of a job already: finish it first");
		int rank = rankArgument(args);
		long handle;
		try {
			NativeLibrary.load();
			handle = Native.open(rank, Settings.text(args[1]), Settings.properties(), Settings.defaults());
		} catch (UnsatisfiedLinkError | IllegalArgumentException e) {
			throw failure("init", e.getMessage(), e);
		}
		if (Native.failed(handle))
			throw new XDevException("init of rank " + rank + ": " + errorText());
		try {
			name(rank, new String(Native.jobId(handle), StandardCharsets.US_ASCII), Native.size(handle));
			endpoint = handle;
			return ids.clone();
		} finally {
			if (endpoint != handle)
				Native.abort(handle);
		}
	}

	private static int rankArgument(String[] args) {
		if (args == null || args.length < 2 || args[0] == null || args[1] == null)
			throw new XDevException("init needs three arguments: rank, conf file or \";\" string, device name; got "
				+ (args == null ? "none" : java.util.Arrays.toString(args)));
		if (args[1].isEmpty() || args[1].indexOf('\0') >= 0)
			throw new XDevException("init: the second argument, a conf file's path or a \";\" string, is "
				+ (args[1].isEmpty() ? "empty" : "not text: it contains a NUL character"));
		try {
			return Integer.parseInt(args[0].trim());
		} catch (NumberFormatException e) {
			throw failure("init", "the first argument must be the rank, a number from 0 to size - 1; it is \"" + args[0]
				+ "\"", e);
		}
	}

	private void name(int rank, String jobId, int size) {
		IBVProcessID[] all = new IBVProcessID[size];
		Map<UUID, IBVProcessID> map = new HashMap<>();
		for (int i = 0; i < size; i++) {
			all[i] = new IBVProcessID(jobId, i);
			map.put(all[i].uuid(), all[i]);
		}
		ids = all;
		byUuid = map;
		self = rank;
	}

	/**
	 * Bytes that mpjdev leaves free in front of a send buffer's data.
	 *
	 * @return 0: headers have memory of their own
	 */
	@Override
	public int getSendOverhead() {
		return 0;
	}

	/**
	 * Bytes that mpjdev leaves free in front of a receive buffer's data.
	 *
	 * @return 0
	 */
	@Override
	public int getRecvOverhead() {
		return 0;
	}

	/**
	 * This process's id.
	 *
	 * @return an element of what init returned
	 * @throws XDevException before init
	 */
	@Override
	public ProcessID id() {
		if (self < 0)
			throw new XDevException("id: the device has not been initialised: call init first");
		return ids[self];
	}

	/**
	 * Leaves the job: delivers what was sent, says goodbye, frees the native endpoint.
	 *
	 * @throws XDevException if receives or synchronous sends are pending, or a thread is inside an operation: then
	 *                       nothing has happened, complete them and call again; if what was sent
	 *                       cannot be delivered; or if the device is not open, for example finished already
	 */
	@Override
	public synchronized void finish() throws XDevException {
		if (self < 0)
			throw new XDevException(endpoint == 0 ? "finish: the device has not been initialised: call init first"
				: "finish: the device has been finished already: call finish once, after init");
		int rc = Native.close(endpoint);
		if (rc == -Native.EBUSY || rc == -Native.ETIMEDOUT)
			throw new XDevException("finish: " + errorText());
		String text = rc < 0 ? errorText() : null;
		self = -1;
		pending.abandonAll();
		if (text != null)
			throw new XDevException("finish: " + text);
	}

	/** The text of the calling thread's last native error. */
	static String errorText() {
		return new String(Native.errorText(), StandardCharsets.UTF_8);
	}

	private static XDevException failure(String operation, String text, Throwable cause) {
		XDevException e = new XDevException(operation + ": " + text);
		e.initCause(cause);
		return e;
	}

	private static XDevException failure(String operation, String direction, int rank, int tag, int context) {
		String text = errorText();
		return new XDevException(operation + " " + direction + " " + (rank == Device.ANY_SOURCE ? "any rank" : "rank " + rank)
			+ ", tag " + (tag == Device.ANY_TAG ? "any" : Integer.toString(tag)) + ", context " + context + ": " + text);
	}

	private int destination(String operation, ProcessID dest) {
		IBVProcessID known = known(dest);
		if (known == null)
			throw unknown(operation, "destination", dest);
		return known.rank();
	}

	private int source(String operation, ProcessID src) {
		IBVProcessID known = known(src);
		if (known != null)
			return known.rank();
		if (src == null || !Device.ANY_SRC.uuid().equals(src.uuid()))
			throw unknown(operation, "source", src);
		return Device.ANY_SOURCE;
	}

	/** Usually one of our own objects; other ids with an equal UUID are as good. */
	private IBVProcessID known(ProcessID id) {
		if (id instanceof IBVProcessID) {
			int rank = ((IBVProcessID) id).rank();
			IBVProcessID[] all = ids;
			if (rank < all.length && all[rank] == id)
				return all[rank];
		}
		return id == null || id.uuid() == null ? null : byUuid.get(id.uuid());
	}

	private XDevException unknown(String operation, String role, ProcessID id) {
		if (self < 0)
			return new XDevException(operation + ": the device has been finished, or was never initialised: call init first");
		return new XDevException(operation + ": the " + role + " " + (id == null ? "is null" : id.uuid() + " is not a process of this job")
			+ ": use one of the " + ids.length + " ids that init returned");
	}

	private static ByteBuffer memory(String operation, Buffer buf) {
		if (buf == null)
			throw new XDevException(operation + ": the buffer is null");
		if (FREED != null && (boolean) FREED.get(buf))
			throw new XDevException(operation + ": the buffer has been freed: free it after the operation, and use a new one");
		RawBuffer raw = buf.getStaticBuffer();
		ByteBuffer memory = raw instanceof NIOBuffer ? ((NIOBuffer) raw).getBuffer() : null;
		if (memory == null)
			throw new XDevException(operation + ": the buffer has no static section in a ByteBuffer: it is "
				+ (raw == null ? "null" : raw.getClass().getName()));
		return memory;
	}

	private static ByteBuffer readable(String operation, Buffer buf) {
		ByteBuffer memory = memory(operation, buf);
		try {
			if (buf.isWritable())
				buf.commit();
		} catch (BufferException e) {
			throw failure(operation, "the buffer cannot be committed: " + e.getMessage(), e);
		}
		int size = buf.getSize();
		int offset = buf.offset();
		if (size < 0 || offset < 0 || size > memory.capacity() - offset)
			throw new XDevException(operation + ": the buffer says it has " + size + " bytes at offset " + offset
				+ ", its memory has " + memory.capacity());
		return memory;
	}

	private static ByteBuffer writable(String operation, Buffer buf) {
		ByteBuffer memory = memory(operation, buf);
		if (buf.offset() < 0 || buf.offset() > memory.capacity())
			throw new XDevException(operation + ": the buffer's offset is " + buf.offset() + ", its memory has "
				+ memory.capacity() + " bytes");
		if (memory.isReadOnly())
			throw new XDevException(operation + ": the buffer is read-only");
		return memory;
	}

	private static byte[] dynamic(Buffer buf) {
		byte[] body = buf.getDynamicBuffer();
		return body == null || body.length == 0 ? null : body;
	}

	private static long allocate(String operation, int length) {
		long at = Native.allocate(length);
		if (Native.failed(at))
			throw new XDevException(operation + ": " + errorText());
		return at;
	}

	private static long stage(String operation, byte[] array, int offset, int length) {
		long at = allocate(operation, length);
		Native.copyIn(array, offset, length, at);
		return at;
	}

	/** A copy of a heap buffer's static section in native memory. */
	private static long stage(String operation, ByteBuffer memory, int offset, int size) {
		if (memory.hasArray())
			return stage(operation, memory.array(), memory.arrayOffset() + offset, size);
		byte[] copy = new byte[size];
		ByteBuffer view = memory.duplicate();
		view.clear();
		view.position(offset);
		view.get(copy);
		return stage(operation, copy, 0, size);
	}

	/** Copies what was received for a heap buffer into it. */
	static void unstage(long staging, Buffer buf, int size) {
		ByteBuffer memory = ((NIOBuffer) buf.getStaticBuffer()).getBuffer();
		Native.copyOut(staging, memory.array(), memory.arrayOffset() + buf.offset(), size);
	}

	/** Makes a received message visible in the buffer and the status. */
	void deliver(Buffer buf, Status status, ResultBlock result) {
		byte[] body = result.takeBody();
		buf.setSize(result.headBytes());
		buf.setDynamicBuffer(body);
		describe(status, result);
	}

	private Status describe(Status status, ResultBlock result) {
		int code = result.typeCode();
		boolean section = code < Native.TYPE_UNDEFINED;
		status.srcID = ids[result.source()].uuid();
		status.tag = result.tag();
		status.type = TYPES[section ? code : Native.TYPE_UNDEFINED];
		status.numEls = section ? result.elements() : 0;
		status.countInBytes = result.headBytes();
		return status;
	}

	/**
	 * Sends; returns when the buffer can be used again. A message up to the protocol switch limit does not wait for its receive,
	 * as long as the receiver's eager window has room.
	 *
	 * @param buf     what to send: both sections
	 * @param dest    to whom
	 * @param tag     any number
	 * @param context the communicator's
	 * @throws XDevException if the arguments are wrong, or the receiver is lost
	 */
	@Override
	public void send(Buffer buf, ProcessID dest, int tag, int context) throws XDevException {
		int rank = destination("send", dest);
		ByteBuffer memory = readable("send", buf);
		int size = buf.getSize();
		boolean direct = memory.isDirect();
		long staging = direct ? 0 : stage("send", memory, buf.offset(), size);
		int rc = Native.send(endpoint, direct ? memory : null, direct ? buf.offset() : staging, size, dynamic(buf), rank,
			tag, context);
		if (!direct)
			Native.release(staging);
		if (rc < 0)
			throw failure("send", "to", rank, tag, context);
	}

	/**
	 * Sends; returns when the matching receive has been posted and the buffer can be used again.
	 *
	 * @param buf     what to send: both sections
	 * @param dest    to whom
	 * @param tag     any number
	 * @param context the communicator's
	 * @throws XDevException if the arguments are wrong, or the receiver is lost
	 */
	@Override
	public void ssend(Buffer buf, ProcessID dest, int tag, int context) throws XDevException {
		int rank = destination("ssend", dest);
		ByteBuffer memory = readable("ssend", buf);
		int size = buf.getSize();
		boolean direct = memory.isDirect();
		long staging = direct ? 0 : stage("ssend", memory, buf.offset(), size);
		int rc = Native.ssend(endpoint, direct ? memory : null, direct ? buf.offset() : staging, size, dynamic(buf), rank,
			tag, context);
		if (!direct)
			Native.release(staging);
		if (rc < 0)
			throw failure("ssend", "to", rank, tag, context);
	}

	/**
	 * Starts a send; never waits. The buffer's memory must not change before the request is complete; its dynamic section is copied.
	 *
	 * @param buf     what to send: both sections
	 * @param dest    to whom
	 * @param tag     any number
	 * @param context the communicator's
	 * @return the request
	 * @throws XDevException if the arguments are wrong, or the receiver is lost
	 */
	@Override
	public Request isend(Buffer buf, ProcessID dest, int tag, int context) throws XDevException {
		return start("isend", false, buf, dest, tag, context);
	}

	/**
	 * Starts a send that is complete only when the matching receive has been posted; never waits.
	 *
	 * @param buf     what to send: both sections
	 * @param dest    to whom
	 * @param tag     any number
	 * @param context the communicator's
	 * @return the request
	 * @throws XDevException if the arguments are wrong, or the receiver is lost
	 */
	@Override
	public Request issend(Buffer buf, ProcessID dest, int tag, int context) throws XDevException {
		return start("issend", true, buf, dest, tag, context);
	}

	private Request start(String operation, boolean sync, Buffer buf, ProcessID dest, int tag, int context) {
		int rank = destination(operation, dest);
		ByteBuffer memory = readable(operation, buf);
		int size = buf.getSize();
		byte[] dynamic = dynamic(buf);
		long staging = memory.isDirect() ? 0 : stage(operation, memory, buf.offset(), size);
		long body = dynamic == null ? 0 : stage(operation, dynamic, 0, dynamic.length);
		ByteBuffer direct = staging == 0 ? memory : null;
		long offset = staging == 0 ? buf.offset() : staging;
		int length = dynamic == null ? 0 : dynamic.length;
		IBVRequest request = new IBVRequest(this, direct, staging, body, tag);
		request.handle = sync ? Native.issend(endpoint, direct, offset, size, body, length, rank, tag, context)
			: Native.isend(endpoint, direct, offset, size, body, length, rank, tag, context);
		if (Native.failed(request.handle)) {
			XDevException e = failure(operation, "to", rank, tag, context);
			request.abandon();
			throw e;
		}
		pending.add(request);
		return request;
	}

	/**
	 * Receives a message; blocks until it is there.
	 *
	 * @param buf     where it goes: behind the buffer's offset, as much as its memory holds
	 * @param src     from whom, or ANY_SRC
	 * @param tag     which, or ANY_TAG
	 * @param context the communicator's
	 * @return the sender's id, tag, and the type and element count of the first section
	 * @throws XDevException if the arguments are wrong, the message is longer than the buffer (it is consumed), or the sender is lost
	 */
	@Override
	public Status recv(Buffer buf, ProcessID src, int tag, int context) throws XDevException {
		int rank = source("recv", src);
		ByteBuffer memory = writable("recv", buf);
		int offset = buf.offset();
		int capacity = memory.capacity() - offset;
		ResultBlock result = ResultBlock.own();
		if (memory.isDirect()) {
			if (Native.recv(endpoint, memory, offset, capacity, rank, tag, context, result.address) < 0)
				throw failure("recv", "from", rank, tag, context);
		} else {
			long staging = allocate("recv", capacity);
			int rc = Native.recv(endpoint, null, staging, capacity, rank, tag, context, result.address);
			if (rc >= 0)
				unstage(staging, buf, result.headBytes());
			Native.release(staging);
			if (rc < 0)
				throw failure("recv", "from", rank, tag, context);
		}
		Status status = new Status(0, tag, -1);
		deliver(buf, status, result);
		return status;
	}

	/**
	 * Starts a receive; never waits. The buffer belongs to the device until the request is complete.
	 *
	 * @param buf     where the message goes
	 * @param src     from whom, or ANY_SRC
	 * @param tag     which, or ANY_TAG
	 * @param context the communicator's
	 * @param status  what iwait is to fill and return; null: a new one
	 * @return the request
	 * @throws XDevException if the arguments are wrong, or the sender is lost
	 */
	@Override
	public Request irecv(Buffer buf, ProcessID src, int tag, int context, Status status) throws XDevException {
		int rank = source("irecv", src);
		ByteBuffer memory = writable("irecv", buf);
		int capacity = memory.capacity() - buf.offset();
		long staging = memory.isDirect() ? 0 : allocate("irecv", capacity);
		ByteBuffer direct = staging == 0 ? memory : null;
		IBVRequest request = new IBVRequest(this, direct, staging, buf, tag, status);
		request.handle = Native.irecv(endpoint, direct, staging == 0 ? buf.offset() : staging, capacity, rank, tag, context);
		if (Native.failed(request.handle)) {
			XDevException e = failure("irecv", "from", rank, tag, context);
			request.abandon();
			throw e;
		}
		pending.add(request);
		return request;
	}

	/**
	 * Blocks until a message is there that a receive with these arguments would get. It stays queued.
	 *
	 * @param src     from whom, or ANY_SRC
	 * @param tag     which, or ANY_TAG
	 * @param context the communicator's
	 * @return as recv would
	 * @throws XDevException if the arguments are wrong, or the sender is lost
	 */
	@Override
	public Status probe(ProcessID src, int tag, int context) throws XDevException {
		int rank = source("probe", src);
		ResultBlock result = ResultBlock.own();
		if (Native.probe(endpoint, rank, tag, context, result.address) < 0)
			throw failure("probe", "from", rank, tag, context);
		return describe(new Status(0, tag, -1), result);
	}

	/**
	 * Asks for a message that a receive with these arguments would get, and drives the device on. The message stays queued.
	 *
	 * @param src     from whom, or ANY_SRC
	 * @param tag     which, or ANY_TAG
	 * @param context the communicator's
	 * @return as recv would, or null if no message is there
	 * @throws XDevException if the arguments are wrong, or the sender is lost
	 */
	@Override
	public Status iprobe(ProcessID src, int tag, int context) throws XDevException {
		int rank = source("iprobe", src);
		ResultBlock result = ResultBlock.own();
		int rc = Native.iprobe(endpoint, rank, tag, context, result.address);
		if (rc < 0)
			throw failure("iprobe", "from", rank, tag, context);
		return rc == 0 ? null : describe(new Status(0, tag, -1), result);
	}

	/**
	 * As {@link #iprobe(ProcessID, int, int)}, for the device under which several processes share one (hybdev).
	 *
	 * @param src     from whom, or ANY_SRC
	 * @param dst     for whom; null: for this process
	 * @param tag     which, or ANY_TAG
	 * @param context the communicator's
	 * @return null also if dst is not this process
	 * @throws XDevException if the arguments are wrong, or the sender is lost
	 */
	@Override
	public Status iprobe(ProcessID src, ProcessID dst, int tag, int context) throws XDevException {
		return isForMe("iprobe", dst) ? iprobe(src, tag, context) : null;
	}

	/**
	 * Receives a message if one is there, in one step that no other thread can come between.
	 *
	 * @param src     from whom, or ANY_SRC
	 * @param dst     for whom; null: for this process
	 * @param tag     which, or ANY_TAG
	 * @param context the communicator's
	 * @param buf     where it goes
	 * @return as recv would, or null if none is there or dst is not this process
	 * @throws XDevException as recv
	 */
	@Override
	public Status iprobeAndFetch(ProcessID src, ProcessID dst, int tag, int context, Buffer buf) throws XDevException {
		if (!isForMe("iprobeAndFetch", dst))
			return null;
		int rank = source("iprobeAndFetch", src);
		ByteBuffer memory = writable("iprobeAndFetch", buf);
		int capacity = memory.capacity() - buf.offset();
		ResultBlock result = ResultBlock.own();
		boolean direct = memory.isDirect();
		long staging = direct ? 0 : allocate("iprobeAndFetch", capacity);
		int rc = Native.fetch(endpoint, direct ? memory : null, direct ? buf.offset() : staging, capacity, rank, tag,
			context, result.address);
		if (!direct) {
			if (rc > 0)
				unstage(staging, buf, result.headBytes());
			Native.release(staging);
		}
		if (rc < 0)
			throw failure("iprobeAndFetch", "from", rank, tag, context);
		if (rc == 0)
			return null;
		Status status = new Status(0, tag, -1);
		deliver(buf, status, result);
		return status;
	}

	private boolean isForMe(String operation, ProcessID dst) {
		if (dst == null)
			return true;
		IBVProcessID known = known(dst);
		if (known == null)
			throw unknown(operation, "destination", dst);
		return known.rank() == self;
	}

	/**
	 * Blocks until a request is complete that neither itest or iwait has reported nor peek has returned before.
	 *
	 * @return the request that completed most recently; iwait is still to be called on it
	 * @throws XDevException if the device is not open
	 */
	@Override
	public Request peek() throws XDevException {
		for (;;) {
			long handle = Native.peek(endpoint);
			if (Native.failed(handle))
				throw new XDevException("peek: " + errorText());
			IBVRequest request = pending.find(handle);
			if (request != null)
				return request;
		}
	}
}
