// SPDX-License-Identifier: MIT
package xxdev;

/** What is known of a message that was received or probed, or of a send that is complete (F-MPJ 2009, listing of xxdev.Device). Immutable. */
public final class Status {
	private final PID source;
	private final int tag;
	private final long count;
	private final long bytes;
	private final Type type;
	private final int depth;
	private final int index;

	/**
	 * For devices.
	 *
	 * @param source the sender; of a send: the receiver
	 * @param tag    as sent
	 * @param count  elements; of arrays of arrays: rows
	 * @param bytes  how long the message is
	 * @param type   what its elements are; null: not known (a send)
	 * @param depth  1, or for arrays of arrays the number of dimensions
	 */
	public Status(PID source, int tag, long count, long bytes, Type type, int depth) {
		this(source, tag, count, bytes, type, depth, -1);
	}

	private Status(PID source, int tag, long count, long bytes, Type type, int depth, int index) {
		this.source = source;
		this.tag = tag;
		this.count = count;
		this.bytes = bytes;
		this.type = type;
		this.depth = depth;
		this.index = index;
	}

	/**
	 * The same for the request at this index of an array.
	 *
	 * @param index what {@link #index} is to be
	 * @return another Status
	 */
	public Status at(int index) {
		return new Status(source, tag, count, bytes, type, depth, index);
	}

	/**
	 * The sender; of a send the receiver.
	 *
	 * @return one of the processes that init returned
	 */
	public PID source() {
		return source;
	}

	/**
	 * The message's tag.
	 *
	 * @return as sent
	 */
	public int tag() {
		return tag;
	}

	/**
	 * How many elements the message has.
	 *
	 * @return elements; rows of arrays of arrays; 1 for a String or a single object
	 */
	public long count() {
		return count;
	}

	/**
	 * How long the message is.
	 *
	 * @return bytes as they travel
	 */
	public long bytes() {
		return bytes;
	}

	/**
	 * What the elements are.
	 *
	 * @return the type; null for a send
	 */
	public Type type() {
		return type;
	}

	/**
	 * How deep arrays are nested: 2 for an int[][].
	 *
	 * @return at least 1
	 */
	public int depth() {
		return depth;
	}

	/**
	 * Which request of {@link Request#iwaitany} this belongs to.
	 *
	 * @return its index in the array; -1 if this comes from elsewhere
	 */
	public int index() {
		return index;
	}

	@Override
	public String toString() {
		StringBuilder text = new StringBuilder();
		if (type != null)
			text.append(count).append(' ').append(type.name().toLowerCase(java.util.Locale.ROOT)).append("[]".repeat(depth - 1)).append(", ");
		return text.append(bytes).append(" bytes, ").append(source).append(", tag ").append(tag).toString();
	}
}
