// SPDX-License-Identifier: MIT
package device;

import harness.Task;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Comparator;
import mpjbuf.Buffer;
import mpjbuf.NIOBuffer;
import mpjbuf.Type;
import mpjdev.Status;
import xdev.Device;
import xdev.ProcessID;
import xdev.XDevException;
import xdev.ibvdev.IBVDevice;
import xdev.ibvdev.IBVException;

/**
 * What one rank of a device test runs: its {@link Case}s in the order of their names, each on all ranks, with a
 * meeting after each, so that a message of one case cannot wander into the next. The first failure ends the rank with status 1.
 */
abstract class Program {
	static final int CONTEXT = 7;
	/** Error numbers of Linux. */
	static final int EBUSY = 16;
	static final int EINVAL = 22;
	static final int EMSGSIZE = 90;
	static final int ECONNRESET = 104;
	static final int ESHUTDOWN = 108;
	private static final int MEETING = 8;

	final IBVDevice dev = new IBVDevice();
	ProcessID[] ids;
	int me;
	int size;

	/** Opens the device, runs the cases, finishes. */
	final void launch(String[] args) throws Exception {
		ids = dev.init(args);
		size = ids.length;
		me = Integer.parseInt(args[0]);
		Method[] cases = Arrays.stream(getClass().getDeclaredMethods())
								 .filter(m -> m.isAnnotationPresent(Case.class))
								 .sorted(Comparator.comparing(Method::getName))
								 .toArray(Method[] ::new);
		if (cases.length == 0)
			throw new AssertionError("no cases in " + getClass());
		for (Method method : cases) {
			System.out.println("begin " + method.getName());
			try {
				method.invoke(this);
			} catch (InvocationTargetException e) {
				System.err.println("case " + method.getName() + " of rank " + me + ":");
				e.getCause().printStackTrace();
				Runtime.getRuntime().halt(1);
			}
			meet();
			System.out.println("passed " + method.getName());
		}
		dev.finish();
		System.out.println("finished");
	}

	/** Returns when all ranks have called it. */
	final void meet() throws Exception {
		for (int phase = 0; phase < 2; phase++) {
			if (me == 0)
				for (int rank = 1; rank < size; rank++)
					if (phase == 0)
						dev.recv(empty(), ids[rank], phase, MEETING);
					else
						dev.send(ints(), ids[rank], phase, MEETING);
			else if (phase == 0)
				dev.send(ints(), ids[0], phase, MEETING);
			else
				dev.recv(empty(), ids[0], phase, MEETING);
		}
	}

	/** Notifies the other rank (of two) something by tag, or awaits it. */
	final void signal(int to, int what) throws Exception {
		dev.send(ints(), ids[to], what, MEETING);
	}

	final void await(int from, int what) {
		dev.recv(empty(), ids[from], what, MEETING);
	}

	/** A committed buffer with one section of ints. */
	static Buffer ints(int... values) throws Exception {
		Buffer buf = new Buffer(8 * ((values.length + 1) / 2) + 16);
		buf.putSectionHeader(Type.INT);
		buf.write(values, 0, values.length);
		buf.commit();
		return buf;
	}

	/** A committed buffer with n bytes of a pattern. */
	static Buffer pattern(int n, int seed) throws Exception {
		Buffer buf = new Buffer(n + 16);
		byte[] bytes = bytes(n, seed);
		buf.putSectionHeader(Type.BYTE);
		buf.write(bytes, 0, n);
		buf.commit();
		return buf;
	}

	static byte[] bytes(int n, int seed) {
		byte[] bytes = new byte[n];
		for (int i = 0; i < n; i++)
			bytes[i] = (byte) (i * 31 + (i >> 8) + seed);
		return bytes;
	}

	/** A committed buffer with one object section. */
	static Buffer object(Object... objects) throws Exception {
		Buffer buf = new Buffer(64);
		buf.putSectionHeader(Type.OBJECT);
		buf.write(objects, 0, objects.length);
		buf.commit();
		return buf;
	}

	/** A buffer to receive up to n bytes of data in one section. */
	static Buffer room(int n) {
		return new Buffer(n + 8);
	}

	static Buffer empty() {
		return room(64);
	}

	/** A buffer on this memory. */
	static Buffer on(ByteBuffer memory, int offset) {
		return new Buffer(new NIOBuffer(memory.capacity(), memory), offset, memory.capacity() - offset);
	}

	/** Unpacks one section of ints. */
	static int[] readInts(Buffer buf) throws Exception {
		buf.commit();
		equal(Type.INT, buf.getSectionHeader(), "section type");
		int[] values = new int[buf.getSectionSize()];
		buf.read(values, 0, values.length);
		return values;
	}

	/** Checks one section against pattern(n, seed). */
	static void checkPattern(Buffer buf, int n, int seed) throws Exception {
		buf.commit();
		equal(Type.BYTE, buf.getSectionHeader(), "section type");
		equal(n, buf.getSectionSize(), "section size");
		byte[] got = new byte[n];
		buf.read(got, 0, n);
		int wrong = Arrays.mismatch(bytes(n, seed), got);
		if (wrong >= 0)
			throw new AssertionError("byte " + wrong + " of " + n + " is wrong");
	}

	static Object[] readObjects(Buffer buf) throws Exception {
		buf.commit();
		equal(Type.OBJECT, buf.getSectionHeader(), "section type");
		Object[] objects = new Object[buf.getSectionSize()];
		buf.read(objects, 0, objects.length);
		return objects;
	}

	final void checkStatus(Status status, int source, int tag, Type type, int count) {
		equal(ids[source].uuid(), status.srcID, "source");
		equal(tag, status.tag, "tag");
		equal(type, status.type, "type");
		equal(count, status.numEls, "count");
	}

	static void equal(Object expected, Object got, String what) {
		if (!expected.equals(got))
			throw new AssertionError(what + ": expected " + expected + ", got " + got);
	}

	static void check(boolean condition, String what) {
		if (!condition)
			throw new AssertionError(what);
	}

	/** The action must fail with an XDevException whose text contains all the words. */
	static XDevException fails(Task.Action action, String... words) throws Exception {
		return Task.fails(XDevException.class, action, words);
	}

	/** The exception must have this error number and rank. */
	static void checkCode(XDevException e, int errno, int rank) {
		IBVException coded = (IBVException) e;
		if (coded.errno() != errno || coded.rank() != rank)
			throw new AssertionError("expected error " + errno + " of rank " + rank + ", got " + coded.errno() + " of rank " + coded.rank(), e);
	}

	static ProcessID anySource() {
		return Device.ANY_SRC;
	}
}
