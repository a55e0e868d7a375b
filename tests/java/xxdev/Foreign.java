// SPDX-License-Identifier: MIT
package xxdevtest;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.Arrays;

/** Arenas and segments of java.lang.foreign (JDK 22 and later) by reflection: the tests are compiled for Java 11. */
final class Foreign {
	private static final Class<?> ARENA = find("java.lang.foreign.Arena");
	private static final Class<?> SEGMENT = find("java.lang.foreign.MemorySegment");

	private Foreign() {}

	private static Class<?> find(String name) {
		try {
			return Class.forName(name);
		} catch (ClassNotFoundException e) {
			throw new AssertionError("this program needs JDK 22 or later", e);
		}
	}

	private static Object call(Class<?> owner, Object target, String name, Object... args) {
		for (Method method : owner.getMethods()) {
			boolean fits = method.getName().equals(name) && method.getParameterCount() == args.length;
			for (int i = 0; fits && i < args.length; i++) {
				Class<?> type = method.getParameterTypes()[i];
				fits = type == long.class ? args[i] instanceof Long : type.isInstance(args[i]);
			}
			if (!fits)
				continue;
			try {
				return method.invoke(target, args);
			} catch (InvocationTargetException e) {
				throw new AssertionError(name + " failed", e.getCause());
			} catch (IllegalAccessException e) {
				throw new AssertionError(e);
			}
		}
		throw new AssertionError("no method " + name + Arrays.toString(args) + " of " + owner);
	}

	/** One of the arenas: "global", "ofAuto", "ofConfined", "ofShared". */
	static Object arena(String kind) {
		return call(ARENA, null, kind);
	}

	static void close(Object arena) {
		call(ARENA, arena, "close");
	}

	static Object allocate(Object arena, long bytes) {
		return call(ARENA, arena, "allocate", bytes);
	}

	static Object ofArray(Object array) {
		return call(SEGMENT, null, "ofArray", array);
	}

	static Object slice(Object segment, long from, long bytes) {
		return call(SEGMENT, segment, "asSlice", from, bytes);
	}

	static Object readOnly(Object segment) {
		return call(SEGMENT, segment, "asReadOnly");
	}

	/** The same address with another size. */
	static Object resized(Object segment, long bytes) {
		return call(SEGMENT, segment, "reinterpret", bytes);
	}

	static long size(Object segment) {
		return (long) call(SEGMENT, segment, "byteSize");
	}

	/** All bytes. */
	static byte[] read(Object segment) {
		byte[] bytes = new byte[(int) size(segment)];
		call(SEGMENT, null, "copy", segment, 0L, ofArray(bytes), 0L, (long) bytes.length);
		return bytes;
	}

	static void write(Object segment, byte[] bytes) {
		call(SEGMENT, null, "copy", ofArray(bytes), 0L, segment, 0L, (long) bytes.length);
	}
}
