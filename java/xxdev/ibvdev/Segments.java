// SPDX-License-Identifier: MIT
package xxdev.ibvdev;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.nio.ByteBuffer;
import java.util.Optional;

/**
 * Segments of java.lang.foreign (JDK 22 and later) by method handles, because this library is compiled for Java 11.
 *
 * <p>The library can work only in memory that nobody frees while an operation is under way. No public method keeps an arena from being closed beyond one call, and
 * a direct buffer of a segment does not either. So memory of other arenas than the global one is copied, by methods of the segment, which check its arena.
 */
final class Segments {
	/** MemorySegment, or null: this JDK has none, or as a preview only. */
	private static final Class<?> CLASS = Runtime.version().feature() < 22 ? null : find("java.lang.foreign.MemorySegment");

	private Segments() {}

	private static Class<?> find(String name) {
		try {
			return Class.forName(name);
		} catch (ClassNotFoundException e) {
			return null; /* a run-time image without it */
		}
	}

	/** The methods; loaded when the first segment is seen. Receivers are of type Object. */
	private static final class Methods {
		static final MethodHandle SIZE = of("byteSize", long.class);
		static final MethodHandle ADDRESS = of("address", long.class);
		static final MethodHandle IS_NATIVE = of("isNative", boolean.class);
		static final MethodHandle IS_READ_ONLY = of("isReadOnly", boolean.class);
		static final MethodHandle IS_ACCESSIBLE_BY = of("isAccessibleBy", boolean.class, Thread.class);
		static final MethodHandle HEAP_BASE = of("heapBase", Optional.class);
		static final MethodHandle AS_BYTE_BUFFER = of("asByteBuffer", ByteBuffer.class);
		static final MethodHandle AS_SLICE = erased(virtual(CLASS, "asSlice", CLASS, long.class, long.class));
		static final MethodHandle COPY = erased(statical(CLASS, "copy", void.class, CLASS, long.class, CLASS, long.class, long.class));
		static final MethodHandle OF_ARRAY = erased(statical(CLASS, "ofArray", CLASS, byte[].class));
		static final MethodHandle SCOPE;
		static final MethodHandle IS_ALIVE;
		static final Object GLOBAL;

		static {
			Class<?> arena = find("java.lang.foreign.Arena");
			Class<?> scope = find("java.lang.foreign.MemorySegment$Scope");
			SCOPE = erased(virtual(CLASS, "scope", scope));
			IS_ALIVE = erased(virtual(scope, "isAlive", boolean.class));
			try {
				GLOBAL = erased(virtual(arena, "scope", scope)).invoke(statical(arena, "global", arena).invoke());
			} catch (Throwable e) {
				throw new LinkageError("Arena.global().scope() failed", e);
			}
		}

		private static MethodHandle of(String name, Class<?> result, Class<?>... parameters) {
			return erased(virtual(CLASS, name, result, parameters));
		}

		private static MethodHandle virtual(Class<?> owner, String name, Class<?> result, Class<?>... parameters) {
			try {
				return MethodHandles.publicLookup().findVirtual(owner, name, MethodType.methodType(result, parameters));
			} catch (ReflectiveOperationException e) {
				throw new LinkageError(owner + "." + name, e);
			}
		}

		private static MethodHandle statical(Class<?> owner, String name, Class<?> result, Class<?>... parameters) {
			try {
				return MethodHandles.publicLookup().findStatic(owner, name, MethodType.methodType(result, parameters));
			} catch (ReflectiveOperationException e) {
				throw new LinkageError(owner + "." + name, e);
			}
		}

		/** With Object in place of the types that Java 11 does not know. */
		private static MethodHandle erased(MethodHandle method) {
			MethodType type = method.type();
			for (int i = 0; i < type.parameterCount(); i++)
				if (isForeign(type.parameterType(i)))
					type = type.changeParameterType(i, Object.class);
			return method.asType(isForeign(type.returnType()) ? type.changeReturnType(Object.class) : type);
		}

		private static boolean isForeign(Class<?> type) {
			return type.getName().startsWith("java.lang.foreign.");
		}
	}

	/** What a method of a segment has thrown: all are unchecked. */
	private static RuntimeException thrown(Throwable e) {
		if (e instanceof Error)
			throw(Error) e;
		return e instanceof RuntimeException ? (RuntimeException) e : new IllegalStateException(e);
	}

	/** A MemorySegment? */
	static boolean is(Object buf) {
		return CLASS != null && CLASS.isInstance(buf);
	}

	static long size(Object segment) {
		try {
			return (long) Methods.SIZE.invokeExact(segment);
		} catch (Throwable e) {
			throw thrown(e);
		}
	}

	/** Refuses a segment whose arena is closed, or that the calling thread may not use. */
	static void check(String operation, Object segment) {
		try {
			if (!(boolean) Methods.IS_ALIVE.invokeExact(scope(segment)))
				throw Errors.argument(operation + ": the arena of the MemorySegment is closed");
		} catch (Throwable e) {
			throw thrown(e);
		}
		checkThread(operation, segment);
	}

	/** Refuses a confined segment of another thread. */
	static void checkThread(String operation, Object segment) {
		try {
			if (!(boolean) Methods.IS_ACCESSIBLE_BY.invokeExact(segment, Thread.currentThread()))
				throw Errors.argument(operation + ": the MemorySegment is confined to another thread than this, " + Thread.currentThread().getName()
						+ ": start and complete the operation in the thread of its arena, or use Arena.ofShared()");
		} catch (Throwable e) {
			throw thrown(e);
		}
	}

	static boolean isReadOnly(Object segment) {
		try {
			return (boolean) Methods.IS_READ_ONLY.invokeExact(segment);
		} catch (Throwable e) {
			throw thrown(e);
		}
	}

	private static Object scope(Object segment) throws Throwable {
		return (Object) Methods.SCOPE.invokeExact(segment);
	}

	/** Native memory that is never freed by an arena? */
	static boolean isGlobal(Object segment) {
		try {
			return (boolean) Methods.IS_NATIVE.invokeExact(segment) && scope(segment).equals(Methods.GLOBAL);
		} catch (Throwable e) {
			throw thrown(e);
		}
	}

	/** Bytes from..from+count of native memory as a direct buffer. */
	static ByteBuffer buffer(Object segment, int from, int count) {
		try {
			Object slice = (Object) Methods.AS_SLICE.invokeExact(segment, (long) from, (long) count);
			return (ByteBuffer) Methods.AS_BYTE_BUFFER.invokeExact(slice);
		} catch (Throwable e) {
			throw thrown(e);
		}
	}

	/** The array that it is a part of; null: there is none, or the segment is read-only. */
	static Object array(Object segment) {
		try {
			return ((Optional<?>) Methods.HEAP_BASE.invokeExact(segment)).orElse(null);
		} catch (Throwable e) {
			throw thrown(e);
		}
	}

	/** Where it begins in its array, in bytes. */
	static long offset(Object segment) {
		try {
			return (long) Methods.ADDRESS.invokeExact(segment);
		} catch (Throwable e) {
			throw thrown(e);
		}
	}

	/** A copy of bytes from..from+count. */
	static byte[] copy(String operation, Object segment, int from, int count) {
		byte[] copy = new byte[count];
		try {
			Object to = (Object) Methods.OF_ARRAY.invokeExact(copy);
			Methods.COPY.invokeExact(segment, (long) from, to, 0L, (long) count);
			return copy;
		} catch (IllegalStateException e) { /* by another thread, since check() */
			throw Errors.argument(operation + ": the arena of the MemorySegment is closed");
		} catch (Throwable e) {
			throw thrown(e);
		}
	}

	/** The first count bytes of the copy, to byte from and on. False: its arena was closed, and nothing was written. */
	static boolean put(Object segment, int from, int count, byte[] copy) {
		try {
			Object source = (Object) Methods.OF_ARRAY.invokeExact(copy);
			Methods.COPY.invokeExact(source, 0L, segment, (long) from, (long) count);
			return true;
		} catch (IllegalStateException e) {
			return false;
		} catch (Throwable e) {
			throw thrown(e);
		}
	}
}
