// SPDX-License-Identifier: MIT
package xdev.ibvdev;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;

/** Is the calling thread a virtual one (JDK 21 and later)? Those must not block in native code, which would hold their carrier. For the devices of this jar only. */
public final class VirtualThreads {
	/** For tests: all threads are treated as virtual ones, on any JDK. */
	private static final boolean ALWAYS = Boolean.getBoolean("xxdev.park_all_threads");
	/** Thread.isVirtual, or null. A constant to the compiler: the question costs a comparison of classes, and nothing where there is no such method. */
	private static final MethodHandle IS_VIRTUAL = find();

	private VirtualThreads() {}

	private static MethodHandle find() {
		try {
			return MethodHandles.lookup().findVirtual(Thread.class, "isVirtual", MethodType.methodType(boolean.class));
		} catch (ReflectiveOperationException e) {
			return null;
		}
	}

	/**
	 * Must the calling thread park instead of waiting in native code?
	 *
	 * @return true for virtual threads
	 */
	public static boolean current() {
		if (ALWAYS)
			return true;
		if (IS_VIRTUAL == null)
			return false;
		try {
			return (boolean) IS_VIRTUAL.invokeExact(Thread.currentThread());
		} catch (Throwable e) {
			throw new LinkageError("Thread.isVirtual failed", e);
		}
	}
}
