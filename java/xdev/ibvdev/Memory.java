// SPDX-License-Identifier: MIT
package xdev.ibvdev;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import mpjbuf.Buffer;
import mpjbuf.BufferException;
import mpjbuf.NIOBuffer;
import mpjbuf.RawBuffer;

/**
 * What of an mpjbuf.Buffer is sent and received. A direct static section is used in place; one on the heap (a slice of the
 * user's Bsend buffer) and an isend's dynamic section go through a bounce buffer.
 */
final class Memory {
	/** Whether an mpjbuf.Buffer has been freed, which it does not report; null if another version has no such field. */
	private static final VarHandle FREED = freedField();

	private Memory() {}

	private static VarHandle freedField() {
		try {
			return MethodHandles.privateLookupIn(Buffer.class, MethodHandles.lookup()).findVarHandle(Buffer.class, "freed", boolean.class);
		} catch (ReflectiveOperationException e) {
			return null;
		}
	}

	private static ByteBuffer memory(String operation, Buffer buf) {
		if (buf == null)
			throw Errors.argument(operation + ": the buffer is null");
		if (FREED != null && (boolean) FREED.get(buf))
			throw Errors.argument(operation + ": the buffer has been freed: free it after the operation, and use a new one");
		RawBuffer raw = buf.getStaticBuffer();
		ByteBuffer memory = raw instanceof NIOBuffer ? ((NIOBuffer) raw).getBuffer() : null;
		if (memory == null)
			throw Errors.argument(operation + ": the buffer has no static section in a ByteBuffer: it is " + (raw == null ? "null" : raw.getClass().getName()));
		return memory;
	}

	static ByteBuffer readable(String operation, Buffer buf) {
		ByteBuffer memory = memory(operation, buf);
		try {
			if (buf.isWritable())
				buf.commit();
		} catch (BufferException e) {
			throw Errors.wrap(Native.EINVAL, operation + ": the buffer cannot be committed: " + e.getMessage(), e);
		}
		int size = buf.getSize();
		int offset = buf.offset();
		if (size < 0 || offset < 0 || size > memory.capacity() - offset)
			throw Errors.argument(operation + ": the buffer claims " + size + " bytes at offset " + offset + ", its memory has " + memory.capacity());
		return memory;
	}

	static ByteBuffer writable(String operation, Buffer buf) {
		ByteBuffer memory = memory(operation, buf);
		if (buf.offset() < 0 || buf.offset() > memory.capacity())
			throw Errors.argument(operation + ": the buffer's offset is " + buf.offset() + ", its memory has " + memory.capacity() + " bytes");
		if (memory.isReadOnly())
			throw Errors.argument(operation + ": the buffer is read-only");
		return memory;
	}

	static byte[] dynamic(Buffer buf) {
		byte[] body = buf.getDynamicBuffer();
		return body == null || body.length == 0 ? null : body;
	}

	static long allocate(String operation, int length) {
		long at = Native.allocate(length);
		if (Native.failed(at))
			throw Errors.of(at, operation);
		return at;
	}

	static long bounce(String operation, byte[] array, int offset, int length) {
		long at = allocate(operation, length);
		Native.copyIn(array, offset, length, at);
		return at;
	}

	/** A copy of a heap buffer's static section in native memory. */
	static long bounce(String operation, ByteBuffer memory, int offset, int size) {
		if (memory.hasArray())
			return bounce(operation, memory.array(), memory.arrayOffset() + offset, size);
		byte[] copy = new byte[size];
		ByteBuffer view = memory.duplicate();
		view.clear();
		view.position(offset);
		view.get(copy);
		return bounce(operation, copy, 0, size);
	}

	/** Copies what was received for a heap buffer into it. */
	static void copyBack(long bounce, Buffer buf, int size) {
		ByteBuffer memory = ((NIOBuffer) buf.getStaticBuffer()).getBuffer();
		Native.copyOut(bounce, memory.array(), memory.arrayOffset() + buf.offset(), size);
	}
}
