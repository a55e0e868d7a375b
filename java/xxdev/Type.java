// SPDX-License-Identifier: MIT
package xxdev;

/** What the elements of a message are. */
public enum Type {
	/** Elements of a boolean[]. */
	BOOLEAN(1),
	/** Elements of a byte[], or bytes of a ByteBuffer. */
	BYTE(1),
	/** Elements of a char[] or a CharBuffer. */
	CHAR(2),
	/** Elements of a short[] or a ShortBuffer. */
	SHORT(2),
	/** Elements of an int[] or an IntBuffer. */
	INT(4),
	/** Elements of a long[] or a LongBuffer. */
	LONG(8),
	/** Elements of a float[] or a FloatBuffer. */
	FLOAT(4),
	/** Elements of a double[] or a DoubleBuffer. */
	DOUBLE(8),
	/** One String. */
	STRING(0),
	/** Serializable objects. */
	OBJECT(0);

	private final int bytes;

	Type(int bytes) {
		this.bytes = bytes;
	}

	/**
	 * The size of one element.
	 *
	 * @return bytes; 0 where it differs from element to element
	 */
	public int bytes() {
		return bytes;
	}
}
