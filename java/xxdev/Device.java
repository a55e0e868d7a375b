// SPDX-License-Identifier: MIT
package xxdev;

import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.ServiceConfigurationError;
import java.util.ServiceLoader;
import java.util.UUID;
import java.util.concurrent.TimeUnit;

/**
 * The low-level communication device of F-MPJ and FastMPJ: point-to-point messages of any Java object, without a buffer in between.
 *
 * <p>Written after the descriptions in G. L. Taboada, J. Touriño, R. Doallo, "F-MPJ: scalable Java message-passing communications on
 * parallel systems", Journal of Supercomputing 60 (2012; online 2009), called "F-MPJ 2009" here, and R. R. Expósito, G. L. Taboada,
 * S. Ramos, J. Touriño, R. Doallo, "Low-latency Java communication devices on RDMA-enabled networks", Concurrency and Computation:
 * Practice and Experience 27 (2015), called "Expósito et al. 2015"; both list the public methods of the class xxdev.Device. The forms with offset and count, the thread
 * level, {@link #name} and the fields of {@link Status} are this interface's own. It stands in for FastMPJ's classes where those are absent.
 *
 * <h2>What can be sent</h2>
 *
 * A primitive array; a java.nio buffer, direct or on the heap, of any element type (from position to limit, or elements from an index, which leave
 * the position out of account); an array of arrays of primitives (no row null), as one message; a String; any Serializable object; an array of these.
 * With offset and count: a portion of an array (of its rows, of its objects) or buffer.
 *
 * <p>With JDK 22 and later also a {@code java.lang.foreign.MemorySegment}, as elements of {@link Type#BYTE}: all of it, or bytes from an offset; at most
 * {@link Integer#MAX_VALUE} bytes in one message. "ibvdev" transfers it from or to where it lies if it is memory of {@code Arena.global()} or part of a {@code byte[]}, and
 * sends whole elements of other arrays from where they lie. It copies the rest: memory of other arenas, because those may be closed while an operation is under
 * way; read-only segments of arrays; and what is received in arrays of other types. The arena of a send may be closed when isend has returned: the message is complete.
 *
 * <h2>Where it is received</h2>
 *
 * In an array or buffer of the same element type, with room for at least as many elements; an array of arrays with the same number
 * of rows, each long enough; an object or String in the first element of an array whose component type it fits. Everything else is an {@link XXDevException} that names both
 * sides; the message has been received then, and is gone, and the buffer is unchanged.
 *
 * <p>In a segment that is not read-only, as in an array of bytes. If its arena is closed before the receive is complete, the receive fails
 * ({@link ErrorCode#BUFFER_CLOSED}), the message is gone, and nothing is written. A confined segment is for the thread of its arena: other threads
 * neither start an operation with it nor complete a receive into it ({@link ErrorCode#BAD_ARGUMENT}; the receive goes on), but any thread may cancel that.
 *
 * <h2>Matching</h2>
 *
 * By sender, tag and context (MPI 4.0, section 3.5). Messages of one sender in one context do not overtake each other.
 *
 * <h2>Waiting</h2>
 *
 * {@link Thread#interrupt} ends no operation, neither of a device nor of a {@link Request}: it goes on, and the thread's interrupt status is kept. A thread that others
 * want to stop waits with a time limit ({@link #recv(Object, PID, int, int, long, TimeUnit)}, {@link Request#iwait(long, TimeUnit)}) and looks at the status in between.
 *
 * <p>A device may keep a virtual thread (JDK 21 and later) that blocks in it mounted on its carrier; "ibvdev" parks it, in every operation but {@link #init},
 * {@link #finish} and {@link #peek}.
 */
public abstract class Device implements AutoCloseable {
	/** As the source of a receive or probe: from any process. */
	public static final PID ANY_SRC = new AnySource();
	/** As the tag of a receive or probe: any tag. */
	public static final int ANY_TAG = -2;

	private static final class AnySource extends PID {
		private static final UUID NAME = new UUID(0, 0);

		@Override
		public int rank() {
			return -1;
		}

		@Override
		public UUID uuid() {
			return NAME;
		}
	}

	/** For devices, which need a public class with a public constructor without parameters. */
	protected Device() {}

	/**
	 * Makes a device (F-MPJ 2009, listing of xxdev.Device: {@code newInstance}). Devices are found by {@link ServiceLoader}: a device is a jar on the class path.
	 *
	 * @param device its {@link #name}, or its class's name
	 * @return the device, to be {@link #init initialised}
	 * @throws XXDevException if there is none of that name, or it cannot be loaded
	 */
	public static Device newInstance(String device) {
		List<String> known = new ArrayList<>();
		ClassLoader context = Thread.currentThread().getContextClassLoader();
		Device found = find(device, context, known);
		if (found == null && context != Device.class.getClassLoader())
			found = find(device, Device.class.getClassLoader(), known);
		if (found == null)
			throw new XXDevException(ErrorCode.BAD_ARGUMENT, -1,
					"newInstance: there is no device \"" + device + "\"; found on the class path: " + (known.isEmpty() ? "none" : String.join("; ", known))
							+ ": add the device's jar to the class path");
		return found;
	}

	private static Device find(String name, ClassLoader loader, List<String> known) {
		Iterator<ServiceLoader.Provider<Device>> providers = ServiceLoader.load(Device.class, loader).stream().iterator();
		while (true) {
			try {
				if (!providers.hasNext())
					return null;
				Device device = providers.next().get();
				if (device.name().equals(name) || device.getClass().getName().equals(name))
					return device;
				known.add(device.name());
			} catch (ServiceConfigurationError | LinkageError e) {
				known.add("one that cannot be used: " + e);
			}
		}
	}

	/**
	 * The name by which {@link #newInstance} finds the device.
	 *
	 * @return for example "ibvdev"
	 */
	public abstract String name();

	/**
	 * Joins the job; returns when all its processes have (F-MPJ 2009, listing of xxdev.Device).
	 *
	 * @param args this process's rank, the conf file, the device's name; more is not looked at. The conf may be the word
	 *             auto: the launcher that has started the process knows the job, and the rank is checked, or -1; or auto
	 *             alone
	 * @return all processes of the job; the index is the rank
	 * @throws XXDevException if the arguments are wrong, or a process is missing when the time is over
	 */
	public abstract PID[] init(String[] args);

	/**
	 * This process (F-MPJ 2009, listing of xxdev.Device).
	 *
	 * @return one of those that init returned
	 * @throws XXDevException before init
	 */
	public abstract PID id();

	/**
	 * Leaves the job: delivers what was sent, notifies the others (F-MPJ 2009, listing of xxdev.Device).
	 *
	 * @throws XXDevException if receives or synchronous sends are pending: complete or cancel them and call again; or before init
	 */
	public abstract void finish();

	/**
	 * Leaves the job as {@link #finish} does, if the device is open; else does nothing. So it can be called again, and a device can be the resource of a
	 * try statement.
	 *
	 * @throws XXDevException as finish: if receives or synchronous sends are pending, the device stays open
	 */
	@Override
	public void close() {
		try {
			finish();
		} catch (XXDevException e) {
			if (e.code() != ErrorCode.CLOSED)
				throw e;
		}
	}

	/**
	 * Which threads may call the device.
	 *
	 * @return the level
	 */
	public abstract ThreadLevel threadLevel();

	/**
	 * Sends, standard mode (F-MPJ 2009, listing of xxdev.Device). Blocks until buf may be changed again.
	 *
	 * @param buf     all of it is sent
	 * @param dst     the receiver
	 * @param tag     any number
	 * @param context any number but Integer.MIN_VALUE
	 * @throws XXDevException if buf cannot be sent, or the receiver is lost
	 */
	public abstract void send(Object buf, PID dst, int tag, int context);

	/**
	 * As {@link #send(Object, PID, int, int)}, for a portion.
	 *
	 * @param buf     an array or buffer
	 * @param offset  the portion's first element
	 * @param count   how many elements
	 * @param dst     the receiver
	 * @param tag     any number
	 * @param context any number but Integer.MIN_VALUE
	 * @throws XXDevException if buf cannot be sent, or the receiver is lost
	 */
	public abstract void send(Object buf, int offset, int count, PID dst, int tag, int context);

	/**
	 * Sends, synchronous mode (F-MPJ 2009, listing of xxdev.Device): blocks until the matching receive has begun, too.
	 *
	 * @param buf     all of it is sent
	 * @param dst     the receiver
	 * @param tag     any number
	 * @param context any number but Integer.MIN_VALUE
	 * @throws XXDevException if buf cannot be sent, or the receiver is lost
	 */
	public abstract void ssend(Object buf, PID dst, int tag, int context);

	/**
	 * As {@link #ssend(Object, PID, int, int)}, for a portion.
	 *
	 * @param buf     an array or buffer
	 * @param offset  the portion's first element
	 * @param count   how many elements
	 * @param dst     the receiver
	 * @param tag     any number
	 * @param context any number but Integer.MIN_VALUE
	 * @throws XXDevException if buf cannot be sent, or the receiver is lost
	 */
	public abstract void ssend(Object buf, int offset, int count, PID dst, int tag, int context);

	/**
	 * Starts a standard send; does not block (F-MPJ 2009, listing of xxdev.Device). buf must not change before the request is complete.
	 *
	 * @param buf     all of it is sent
	 * @param dst     the receiver
	 * @param tag     any number
	 * @param context any number but Integer.MIN_VALUE
	 * @return the operation
	 * @throws XXDevException if buf cannot be sent, or the receiver is lost
	 */
	public abstract Request isend(Object buf, PID dst, int tag, int context);

	/**
	 * As {@link #isend(Object, PID, int, int)}, for a portion.
	 *
	 * @param buf     an array or buffer
	 * @param offset  the portion's first element
	 * @param count   how many elements
	 * @param dst     the receiver
	 * @param tag     any number
	 * @param context any number but Integer.MIN_VALUE
	 * @return the operation
	 * @throws XXDevException if buf cannot be sent, or the receiver is lost
	 */
	public abstract Request isend(Object buf, int offset, int count, PID dst, int tag, int context);

	/**
	 * Starts a synchronous send; does not block (F-MPJ 2009, listing of xxdev.Device). Complete means: the matching receive has begun.
	 *
	 * @param buf     all of it is sent
	 * @param dst     the receiver
	 * @param tag     any number
	 * @param context any number but Integer.MIN_VALUE
	 * @return the operation
	 * @throws XXDevException if buf cannot be sent, or the receiver is lost
	 */
	public abstract Request issend(Object buf, PID dst, int tag, int context);

	/**
	 * As {@link #issend(Object, PID, int, int)}, for a portion.
	 *
	 * @param buf     an array or buffer
	 * @param offset  the portion's first element
	 * @param count   how many elements
	 * @param dst     the receiver
	 * @param tag     any number
	 * @param context any number but Integer.MIN_VALUE
	 * @return the operation
	 * @throws XXDevException if buf cannot be sent, or the receiver is lost
	 */
	public abstract Request issend(Object buf, int offset, int count, PID dst, int tag, int context);

	/**
	 * Receives; blocks until the message is there (F-MPJ 2009, listing of xxdev.Device).
	 *
	 * @param buf     where it goes
	 * @param src     the sender, or {@link #ANY_SRC}
	 * @param tag     which, or {@link #ANY_TAG}
	 * @param context any number but Integer.MIN_VALUE
	 * @return what came, and its sender
	 * @throws XXDevException if the message does not fit buf (it is gone then), or the sender is lost
	 */
	public abstract Status recv(Object buf, PID src, int tag, int context);

	/**
	 * As {@link #recv(Object, PID, int, int)}, into a portion.
	 *
	 * @param buf     an array or buffer
	 * @param offset  the portion's first element
	 * @param count   how many elements there is room for
	 * @param src     the sender, or {@link #ANY_SRC}
	 * @param tag     which, or {@link #ANY_TAG}
	 * @param context any number but Integer.MIN_VALUE
	 * @return what came, and its sender
	 * @throws XXDevException if the message does not fit (it is gone then), or the sender is lost
	 */
	public abstract Status recv(Object buf, int offset, int count, PID src, int tag, int context);

	/**
	 * As {@link #recv(Object, PID, int, int)}, with a time limit. If no message matches in time the receive is withdrawn: a message that comes later stays for the next
	 * receive. One that has begun to arrive when the time is over is received, which may take longer.
	 *
	 * @param buf     where it goes
	 * @param src     the sender, or {@link #ANY_SRC}
	 * @param tag     which, or {@link #ANY_TAG}
	 * @param context any number but Integer.MIN_VALUE
	 * @param timeout how long to wait; 0 or less: not at all
	 * @param unit    of timeout
	 * @return what came, and its sender; null: nothing in time, and buf is unchanged
	 * @throws XXDevException if the message does not fit buf (it is gone then), or the sender is lost
	 */
	public Status recv(Object buf, PID src, int tag, int context, long timeout, TimeUnit unit) {
		return received(irecv(buf, src, tag, context), timeout, unit);
	}

	/**
	 * As {@link #recv(Object, PID, int, int, long, TimeUnit)}, into a portion.
	 *
	 * @param buf     an array or buffer
	 * @param offset  the portion's first element
	 * @param count   how many elements there is room for
	 * @param src     the sender, or {@link #ANY_SRC}
	 * @param tag     which, or {@link #ANY_TAG}
	 * @param context any number but Integer.MIN_VALUE
	 * @param timeout how long to wait; 0 or less: not at all
	 * @param unit    of timeout
	 * @return what came, and its sender; null: nothing in time, and buf is unchanged
	 * @throws XXDevException if the message does not fit (it is gone then), or the sender is lost
	 */
	public Status recv(Object buf, int offset, int count, PID src, int tag, int context, long timeout, TimeUnit unit) {
		return received(irecv(buf, offset, count, src, tag, context), timeout, unit);
	}

	private static Status received(Request receive, long timeout, TimeUnit unit) {
		Status status = receive.iwait(timeout, unit);
		return status != null || receive.cancel() ? status : receive.iwait();
	}

	/**
	 * Starts a receive; does not block (F-MPJ 2009, listing of xxdev.Device). buf belongs to the device until the request is complete.
	 *
	 * @param buf     where the message goes
	 * @param src     the sender, or {@link #ANY_SRC}
	 * @param tag     which, or {@link #ANY_TAG}
	 * @param context any number but Integer.MIN_VALUE
	 * @return the operation
	 * @throws XXDevException if nothing can be received in buf, or the sender is lost
	 */
	public abstract Request irecv(Object buf, PID src, int tag, int context);

	/**
	 * As {@link #irecv(Object, PID, int, int)}, into a portion.
	 *
	 * @param buf     an array or buffer
	 * @param offset  the portion's first element
	 * @param count   how many elements there is room for
	 * @param src     the sender, or {@link #ANY_SRC}
	 * @param tag     which, or {@link #ANY_TAG}
	 * @param context any number but Integer.MIN_VALUE
	 * @return the operation
	 * @throws XXDevException if nothing can be received in buf, or the sender is lost
	 */
	public abstract Request irecv(Object buf, int offset, int count, PID src, int tag, int context);

	/**
	 * Blocks until a message is there that a receive with these arguments would get; it stays there (F-MPJ 2009, listing of xxdev.Device).
	 *
	 * @param src     the sender, or {@link #ANY_SRC}
	 * @param tag     which, or {@link #ANY_TAG}
	 * @param context any number but Integer.MIN_VALUE
	 * @return what is there
	 * @throws XXDevException if the sender is lost
	 */
	public abstract Status probe(PID src, int tag, int context);

	/**
	 * As {@link #probe}, but does not block (F-MPJ 2009, listing of xxdev.Device). Drives the device on.
	 *
	 * @param src     the sender, or {@link #ANY_SRC}
	 * @param tag     which, or {@link #ANY_TAG}
	 * @param context any number but Integer.MIN_VALUE
	 * @return what is there; null if nothing is
	 * @throws XXDevException if the sender is lost
	 */
	public abstract Status iprobe(PID src, int tag, int context);

	/**
	 * Blocks until a request is complete that has not been reported yet (F-MPJ 2009, listing of xxdev.Device). Each is given once at most.
	 *
	 * @return the one that was completed last; its outcome is still to be taken
	 * @throws XXDevException if the device is not open
	 */
	public abstract Request peek();
}
