// SPDX-License-Identifier: MIT
package xxdevtest;

import harness.Task;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.Arrays;
import java.util.Comparator;
import xxdev.Device;
import xxdev.PID;
import xxdev.Status;
import xxdev.Type;
import xxdev.XXDevException;

/**
 * A job of several ranks that runs the methods marked {@link Case} one after the other, in the order of their names. Arguments: rank,
 * conf, device. The first failure ends the rank with status 1.
 */
abstract class Program {
	static final int CONTEXT = 7;
	private static final int MEETING = 8;
	/** Short forms of long tests. */
	static final boolean QUICK = System.getenv("IBVDEV_TEST_QUICK") != null;

	final Device dev = Device.newInstance("ibvdev");
	PID[] ids;
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
	final void meet() {
		byte[] nothing = {};
		for (int phase = 0; phase < 2; phase++) {
			if (me == 0)
				for (int rank = 1; rank < size; rank++)
					if (phase == 0)
						dev.recv(nothing, ids[rank], phase, MEETING);
					else
						dev.send(nothing, ids[rank], phase, MEETING);
			else if (phase == 0)
				dev.send(nothing, ids[0], phase, MEETING);
			else
				dev.recv(nothing, ids[0], phase, MEETING);
		}
	}

	/** Notifies the other rank (of two) something by tag, or awaits it. */
	final void signal(int to, int what) {
		dev.send(new byte[0], ids[to], what, MEETING);
	}

	final void await(int from, int what) {
		dev.recv(new byte[0], ids[from], what, MEETING);
	}

	static void equal(Object expected, Object got, String what) {
		if (expected == null ? got != null : !expected.equals(got))
			throw new AssertionError(what + ": expected " + expected + ", got " + got);
	}

	static void check(boolean condition, String what) {
		if (!condition)
			throw new AssertionError(what);
	}

	final void checkStatus(Status status, int source, int tag, Type type, long count) {
		check(status != null, "there is a status");
		equal(ids[source], status.source(), "source of " + status);
		equal(tag, status.tag(), "tag of " + status);
		equal(type, status.type(), "type of " + status);
		equal(count, status.count(), "count of " + status);
	}

	/** The action must fail with an XXDevException whose text contains all the words. */
	static XXDevException fails(Task.Action action, String... words) throws Exception {
		return Task.fails(XXDevException.class, action, words);
	}
}
