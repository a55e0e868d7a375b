// SPDX-License-Identifier: MIT
package xxdev.ibvdev;

import java.io.OutputStream;
import java.util.Arrays;

/** Collects bytes in an array that grows and is used again. One thread at a time. */
final class ByteSink extends OutputStream {
	private static final int LARGEST = Integer.MAX_VALUE - 16;

	private byte[] bytes = new byte[1024];
	private int size;

	/** The bytes; from 0 to size() they mean something. Valid until the next write. */
	byte[] array() {
		return bytes;
	}

	int size() {
		return size;
	}

	/** Empties it but for so many bytes in front, which are the caller's to fill. */
	void restart(int front) {
		size = front;
	}

	private void need(int more) {
		if (more > bytes.length - size) {
			if (more > LARGEST - size)
				throw new OutOfMemoryError("the objects of a message take more than 2 GB");
			int wanted = size + more;
			bytes = Arrays.copyOf(bytes, Math.max(wanted, bytes.length > LARGEST / 2 ? LARGEST : 2 * bytes.length));
		}
	}

	@Override
	public void write(int value) {
		need(1);
		bytes[size++] = (byte) value;
	}

	@Override
	public void write(byte[] from, int offset, int length) {
		need(length);
		System.arraycopy(from, offset, bytes, size, length);
		size += length;
	}

	void writeInt(int value) {
		need(4);
		putInt(size, value);
		size += 4;
	}

	void putInt(int at, int value) {
		bytes[at] = (byte) (value >>> 24);
		bytes[at + 1] = (byte) (value >>> 16);
		bytes[at + 2] = (byte) (value >>> 8);
		bytes[at + 3] = (byte) value;
	}

	/** What writeInt or putInt wrote. */
	static int getInt(byte[] from, int at) {
		return from[at] << 24 | (from[at + 1] & 0xff) << 16 | (from[at + 2] & 0xff) << 8 | from[at + 3] & 0xff;
	}
}
