// SPDX-License-Identifier: MIT
package xdev.ibvdev;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import mpjbuf.Buffer;
import mpjbuf.NIOBuffer;
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
 * section of an mpjbuf.Buffer is sent and received in place if it is a direct buffer. Errors are XDevExceptions ({@link IBVException})
 * whose text names the operation, what was wrong, and what to do.
 *
 * <p>Every int is a tag and every int is a context: none is bad input here, and the ranges of MPI are checked by the layer
 * above. A message sent with the tag ANY_TAG (-2) is received by ANY_TAG alone.
 */
public final class IBVDevice implements Device {
	private static final Type[] TYPES = new Type[Envelope.TYPE_UNDEFINED + 1];

	static {
		for (int code = 0; code < TYPES.length; code++)
			TYPES[code] = Type.getType(code);
	}

	/** The handle of the native endpoint; 0 before init. A stale one is refused by every native method. */
	volatile long endpoint;
	/** Requests under way. */
	final PendingRequests pending = new PendingRequests();
	private volatile Peers peers = Peers.NONE;
	private volatile RegisteredBuffers registered = RegisteredBuffers.NONE;
	private volatile PoolRegions pool;

	/** A device that {@link #init} is still to open. */
	public IBVDevice() {}

	/**
	 * Joins the job; returns when all ranks have come. After a failure it can be called again.
	 *
	 * @param args this process's rank; a conf file's path or MPJ Express's ";" string; the device's name, which is not looked at.
	 *             The conf auto: the launcher knows the job, and checks the rank, or it is -1; or auto alone
	 * @return the ids of all ranks; the index is the rank
	 * @throws XDevException if the arguments, the conf or a setting is wrong, or ranks are missing when the setting
	 *                       start_timeout_ms has passed
	 */
	@Override
	public synchronized ProcessID[] init(String[] args) throws XDevException {
		if (peers.open())
			throw new IBVException(Native.EBUSY, -1, "init: this device is rank " + peers.self + " of a job already: finish it first");
		int rank = rankArgument(args);
		long handle;
		try {
			NativeLibrary.load();
			handle = Native.open(rank, Settings.conf(args), Settings.properties(), Settings.defaults());
		} catch (IllegalArgumentException e) {
			throw Errors.wrap(Native.EINVAL, "init: " + e.getMessage(), e);
		} catch (UnsatisfiedLinkError e) {
			throw Errors.wrap(Native.ELIBACC, "init: " + e.getMessage(), e);
		}
		if (Native.failed(handle))
			throw Errors.of(handle, rank < 0 ? "init" : "init of rank " + rank);
		try {
			String job = new String(Native.jobId(handle), StandardCharsets.US_ASCII);
			Peers all = new Peers(job, Native.rank(handle), Native.size(handle));
			registered = new RegisteredBuffers(handle);
			pool = new PoolRegions(registered);
			endpoint = handle;
			peers = all;
			NativeOrder.install();
			return all.all();
		} finally {
			if (endpoint != handle)
				Native.abort(handle);
		}
	}

	private static int rankArgument(String[] args) {
		if (Settings.launcherKnows(args))
			return -1;
		if (args == null || args.length < 2 || args[0] == null || args[1] == null)
			throw Errors.argument("init needs three arguments: rank, conf file or \";\" string, device name, or the one word auto; got "
					+ (args == null ? "none" : java.util.Arrays.toString(args)));
		if (args[1].isEmpty() || args[1].indexOf('\0') >= 0)
			throw Errors.argument("init: the second argument, a conf file's path or a \";\" string, is "
					+ (args[1].isEmpty() ? "empty" : "not text: it contains a NUL character"));
		try {
			return Integer.parseInt(args[0].trim());
		} catch (NumberFormatException e) {
			throw Errors.wrap(Native.EINVAL, "init: the first argument must be the rank, a number from 0 to size - 1, or auto; it is \"" + args[0] + "\"", e);
		}
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
		Peers now = peers;
		if (!now.open())
			throw Peers.closed("id");
		return now.id(now.self);
	}

	/**
	 * Leaves the job: delivers what was sent, notifies the others, frees the native endpoint.
	 *
	 * <p>A receive that has failed is complete, not pending, also if nobody has asked for its outcome: so a receive
	 * from a rank that has left forbids nothing, and whether one that nobody will answer is noticed here depends on
	 * the order of events. While finish runs, other threads' operations may be refused; if it fails, they can be repeated.
	 *
	 * @throws XDevException if receives or synchronous sends are pending, or a thread is inside an operation: then
	 *                       nothing has happened, complete them and call again; if what was sent
	 *                       cannot be delivered; or if the device is not open, for example finished already
	 */
	@Override
	public synchronized void finish() throws XDevException {
		if (!peers.open())
			throw Peers.closed("finish");
		int rc = Native.close(endpoint);
		if (rc == -Native.EBUSY || rc == -Native.ETIMEDOUT)
			throw Errors.of(rc, "finish");
		peers = Peers.NONE;
		registered = RegisteredBuffers.NONE;
		NativeOrder.remove();
		pending.abandonAll();
		if (rc < 0)
			throw Errors.of(rc, "finish");
	}

	/**
	 * Lets adapters keep their registration of a direct buffer's memory between messages, which saves pinning its pages for each; never needed for
	 * correctness. MPJ Express's own pool is registered without this. The caller promises that the memory stays as it is, from the buffer's first byte to its capacity, until {@link #release} or {@link #finish}: it is not freed by hand.
	 *
	 * @param buffer a direct buffer, which the device refers to from now on
	 * @return false: no adapter has a use for it, and there is nothing to release
	 * @throws XDevException if the buffer is not direct, or more than the settings verbs_cache_entries and verbs_cache_bytes allow would be registered
	 */
	public boolean register(ByteBuffer buffer) throws XDevException {
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

	/** Makes a received message visible in the buffer and the status. */
	void deliver(Buffer buf, Status status, ResultBlock result) {
		byte[] body = result.takeBody();
		((NIOBuffer) buf.getStaticBuffer()).getBuffer().order(Envelope.order(result.envelope()));
		buf.setSize(result.headBytes());
		buf.setDynamicBuffer(body);
		describe(status, result);
	}

	private Status describe(Status status, ResultBlock result) {
		long envelope = result.envelope();
		int code = Envelope.typeCode(envelope);
		boolean section = code < Envelope.TYPE_UNDEFINED;
		status.srcID = peers.uuid(result.source());
		status.tag = result.tag();
		status.type = TYPES[section ? code : Envelope.TYPE_UNDEFINED];
		status.numEls = section ? Envelope.elements(envelope) : 0;
		status.countInBytes = result.headBytes();
		return status;
	}

	/**
	 * Sends; returns when the buffer can be used again. A message up to the protocol switch limit does not wait for its receive,
	 * as long as the receiver's credit window has room.
	 *
	 * @param buf     what to send: both sections
	 * @param dest    the receiver
	 * @param tag     any number
	 * @param context the communicator's
	 * @throws XDevException if the arguments are wrong, or the receiver is lost
	 */
	@Override
	public void send(Buffer buf, ProcessID dest, int tag, int context) throws XDevException {
		sendNow("send", false, buf, dest, tag, context);
	}

	/**
	 * Sends; returns when the matching receive has been posted and the buffer can be used again.
	 *
	 * @param buf     what to send: both sections
	 * @param dest    the receiver
	 * @param tag     any number
	 * @param context the communicator's
	 * @throws XDevException if the arguments are wrong, or the receiver is lost
	 */
	@Override
	public void ssend(Buffer buf, ProcessID dest, int tag, int context) throws XDevException {
		sendNow("ssend", true, buf, dest, tag, context);
	}

	/**
	 * Starts a send; never waits. The buffer's memory must not change before the request is complete; its dynamic section is copied.
	 *
	 * @param buf     what to send: both sections
	 * @param dest    the receiver
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
	 * @param dest    the receiver
	 * @param tag     any number
	 * @param context the communicator's
	 * @return the request
	 * @throws XDevException if the arguments are wrong, or the receiver is lost
	 */
	@Override
	public Request issend(Buffer buf, ProcessID dest, int tag, int context) throws XDevException {
		return start("issend", true, buf, dest, tag, context);
	}

	private void sendNow(String operation, boolean sync, Buffer buf, ProcessID dest, int tag, int context) {
		int rank = peers.destination(operation, dest);
		ByteBuffer memory = Memory.readable(operation, buf);
		int size = buf.getSize();
		pool.use(buf.getStaticBuffer(), size);
		long user = Envelope.of(memory, buf.offset(), size);
		byte[] dynamic = Memory.dynamic(buf);
		long bounce = memory.isDirect() ? 0 : Memory.bounce(operation, memory, buf.offset(), size);
		ByteBuffer direct = memory.isDirect() ? memory : null;
		long offset = direct != null ? buf.offset() : bounce;
		int rc = sync ? Native.ssend(endpoint, direct, offset, size, user, dynamic, rank, tag, context)
					  : Native.send(endpoint, direct, offset, size, user, dynamic, rank, tag, context);
		if (direct == null)
			Native.release(bounce);
		if (rc < 0)
			throw Errors.of(rc, operation, "to", rank, tag, context);
	}

	private Request start(String operation, boolean sync, Buffer buf, ProcessID dest, int tag, int context) {
		int rank = peers.destination(operation, dest);
		ByteBuffer memory = Memory.readable(operation, buf);
		int size = buf.getSize();
		pool.use(buf.getStaticBuffer(), size);
		long user = Envelope.of(memory, buf.offset(), size);
		byte[] dynamic = Memory.dynamic(buf);
		ByteBuffer direct = memory.isDirect() ? memory : null;
		int length = dynamic == null ? 0 : dynamic.length;
		long ep = endpoint;
		IBVRequest request = new IBVRequest(this, ep, direct, rank, tag, context);
		boolean begun = false;
		try {
			long offset = direct != null ? buf.offset() : request.bounced(Memory.bounce(operation, memory, buf.offset(), size));
			long body = dynamic == null ? 0 : request.bouncedBody(Memory.bounce(operation, dynamic, 0, length));
			request.handle = sync ? Native.issend(ep, direct, offset, size, user, body, length, rank, tag, context)
								  : Native.isend(ep, direct, offset, size, user, body, length, rank, tag, context);
			if (Native.failed(request.handle))
				throw Errors.of(request.handle, operation, "to", rank, tag, context);
			begun = true;
		} finally {
			if (!begun)
				request.abandon();
		}
		pending.add(request);
		return request;
	}

	/**
	 * Receives a message; blocks until it is there.
	 *
	 * @param buf     where it goes: behind the buffer's offset, as much as its memory holds
	 * @param src     the sender, or ANY_SRC
	 * @param tag     which, or ANY_TAG
	 * @param context the communicator's
	 * @return the sender's id, tag, and the type and element count of the first section
	 * @throws XDevException if the arguments are wrong, the message is longer than the buffer (it is consumed), or the sender is lost
	 */
	@Override
	public Status recv(Buffer buf, ProcessID src, int tag, int context) throws XDevException {
		int rank = peers.source("recv", src);
		ByteBuffer memory = Memory.writable("recv", buf);
		int offset = buf.offset();
		int capacity = memory.capacity() - offset;
		pool.use(buf.getStaticBuffer(), capacity);
		ResultBlock result = ResultBlock.own();
		int rc;
		if (memory.isDirect()) {
			rc = Native.recv(endpoint, memory, offset, capacity, rank, tag, context, result.address);
		} else {
			long bounce = Memory.allocate("recv", capacity);
			rc = Native.recv(endpoint, null, bounce, capacity, rank, tag, context, result.address);
			if (rc >= 0)
				Memory.copyBack(bounce, buf, result.headBytes());
			Native.release(bounce);
		}
		if (rc < 0)
			throw Errors.of(rc, "recv", "from", rank, tag, context);
		Status status = new Status(0, tag, -1);
		deliver(buf, status, result);
		return status;
	}

	/**
	 * Starts a receive; never waits. The buffer belongs to the device until the request is complete.
	 *
	 * @param buf     where the message goes
	 * @param src     the sender, or ANY_SRC
	 * @param tag     which, or ANY_TAG
	 * @param context the communicator's
	 * @param status  what iwait is to fill and return; null: a new one
	 * @return the request
	 * @throws XDevException if the arguments are wrong, or the sender is lost
	 */
	@Override
	public Request irecv(Buffer buf, ProcessID src, int tag, int context, Status status) throws XDevException {
		int rank = peers.source("irecv", src);
		ByteBuffer memory = Memory.writable("irecv", buf);
		int capacity = memory.capacity() - buf.offset();
		pool.use(buf.getStaticBuffer(), capacity);
		ByteBuffer direct = memory.isDirect() ? memory : null;
		long ep = endpoint;
		IBVRequest request = new IBVRequest(this, ep, direct, buf, rank, tag, context, status);
		boolean begun = false;
		try {
			long offset = direct != null ? buf.offset() : request.bounced(Memory.allocate("irecv", capacity));
			request.handle = Native.irecv(ep, direct, offset, capacity, rank, tag, context);
			if (Native.failed(request.handle))
				throw Errors.of(request.handle, "irecv", "from", rank, tag, context);
			begun = true;
		} finally {
			if (!begun)
				request.abandon();
		}
		pending.add(request);
		return request;
	}

	/**
	 * Blocks until a message is there that a receive with these arguments would get. It stays queued.
	 *
	 * @param src     the sender, or ANY_SRC
	 * @param tag     which, or ANY_TAG
	 * @param context the communicator's
	 * @return as recv would
	 * @throws XDevException if the arguments are wrong, or the sender is lost
	 */
	@Override
	public Status probe(ProcessID src, int tag, int context) throws XDevException {
		int rank = peers.source("probe", src);
		ResultBlock result = ResultBlock.own();
		int rc = Native.probe(endpoint, rank, tag, context, result.address);
		if (rc < 0)
			throw Errors.of(rc, "probe", "from", rank, tag, context);
		return describe(new Status(0, tag, -1), result);
	}

	/**
	 * Asks for a message that a receive with these arguments would get, and drives the device on. The message stays queued.
	 *
	 * @param src     the sender, or ANY_SRC
	 * @param tag     which, or ANY_TAG
	 * @param context the communicator's
	 * @return as recv would, or null if no message is there
	 * @throws XDevException if the arguments are wrong, or the sender is lost
	 */
	@Override
	public Status iprobe(ProcessID src, int tag, int context) throws XDevException {
		int rank = peers.source("iprobe", src);
		ResultBlock result = ResultBlock.own();
		int rc = Native.iprobe(endpoint, rank, tag, context, result.address);
		if (rc < 0)
			throw Errors.of(rc, "iprobe", "from", rank, tag, context);
		return rc == 0 ? null : describe(new Status(0, tag, -1), result);
	}

	/**
	 * As {@link #iprobe(ProcessID, int, int)}, for the device under which several processes share one (hybdev).
	 *
	 * @param src     the sender, or ANY_SRC
	 * @param dst     the receiver; null: for this process
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
	 * @param src     the sender, or ANY_SRC
	 * @param dst     the receiver; null: for this process
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
		int rank = peers.source("iprobeAndFetch", src);
		ByteBuffer memory = Memory.writable("iprobeAndFetch", buf);
		int capacity = memory.capacity() - buf.offset();
		pool.use(buf.getStaticBuffer(), capacity);
		ResultBlock result = ResultBlock.own();
		boolean direct = memory.isDirect();
		long bounce = direct ? 0 : Memory.allocate("iprobeAndFetch", capacity);
		int rc = Native.fetch(endpoint, direct ? memory : null, direct ? buf.offset() : bounce, capacity, rank, tag, context, result.address);
		if (!direct) {
			if (rc > 0)
				Memory.copyBack(bounce, buf, result.headBytes());
			Native.release(bounce);
		}
		if (rc < 0)
			throw Errors.of(rc, "iprobeAndFetch", "from", rank, tag, context);
		if (rc == 0)
			return null;
		Status status = new Status(0, tag, -1);
		deliver(buf, status, result);
		return status;
	}

	private boolean isForMe(String operation, ProcessID dst) {
		Peers now = peers;
		return dst == null || now.destination(operation, dst) == now.self;
	}

	/**
	 * Blocks until a request is complete that neither itest or iwait has reported nor peek has returned before.
	 *
	 * @return the request that completed most recently; iwait is still to be called on it
	 * @throws XDevException if the device is not open
	 */
	@Override
	public Request peek() throws XDevException {
		if (!peers.open())
			throw Peers.closed("peek");
		for (;;) {
			long handle = Native.peek(endpoint);
			if (Native.failed(handle))
				throw Errors.of(handle, "peek");
			IBVRequest request = (IBVRequest) pending.find(handle);
			if (request != null)
				return request;
		}
	}
}
