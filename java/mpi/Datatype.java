// SPDX-License-Identifier: MIT
package mpi;

import java.nio.Buffer;
import java.nio.ByteBuffer;

/**
 * What elements of an array or java.nio buffer a message consists of (MPI 4.0, section 5.1, as mpiJava 1.2 has it).
 *
 * <p>Extents, sizes and displacements are counted in elements of the array. Offsets of Vector and Indexed are multiples of the old type's extent, those of
 * Hvector, Hindexed and Struct are numbers of elements. A Struct of several basic types describes bytes: its displacements are bytes, its buffers are byte[] or
 * ByteBuffer. A derived type must be committed before a message uses it. Not blocking; a type may be used by any thread.
 */
public abstract class Datatype {
	/** The number of the basic type of the elements: 1 byte, 2 char, 3 short, 4 boolean, 5 int, 6 long, 7 float, 8 double, 9 packed, 12 Object. */
	public int baseType;

	/** Of the elements, see Kinds; -1: of none (NULL, LB, UB). */
	int kind = -1;
	/** Elements of one item. */
	int size;
	int lb;
	int ub;
	/** The lowest element, and the one behind the highest; bounds that the program has set left out. */
	int lowest;
	int highest;
	boolean committed;
	boolean freed;
	/** The item is size elements from offset on, and items are adjacent. */
	boolean dense;

	/** For this package. */
	public Datatype() {}

	/** Copies elements first..first+elements of the items at offset to an array (out), or back. */
	abstract void copy(boolean out, Object buf, int offset, int first, int elements, Object packed, int at);

	/** Its name in texts. */
	abstract String name();

	/** The blocks of an item, shifted by so many elements of so many units, are added to a new type. */
	abstract void addTo(Layout.Builder builder, int origin, int unit);

	int extent() {
		return ub - lb;
	}

	int unitBytes() {
		return kind < 0 ? 0 : kind == Kinds.OBJECT ? 0 : 1 << Kinds.shift(kind);
	}

	/** Refuses what no message can have. */
	static void check(String operation, Datatype type) {
		if (type == null || type.kind < 0)
			throw Errors.of(operation + ": the datatype is " + (type == null ? "null" : type.name()) + ": name one such as MPI.INT");
		if (!type.committed || type.freed)
			throw Errors.of(
					operation + ": the datatype " + type.name() + (type.freed ? " has been freed: make another" : " is not committed: call Commit first"));
	}

	/** buf, or a view of it, with elements of this type's kind; of no message a null is replaced. */
	Object elementsOf(String operation, Object buf, int count) {
		int found = Kinds.of(buf);
		if (found == kind)
			return buf;
		if (buf instanceof ByteBuffer && kind != Kinds.OBJECT && kind != Kinds.BOOLEAN)
			return Kinds.view(kind, (ByteBuffer) buf);
		if (buf == null && count == 0)
			return Kinds.array(kind, 0);
		throw Errors.of(operation + ": the buffer is " + (buf == null ? "null" : "a " + buf.getClass().getTypeName()) + ", the datatype is " + name()
				+ ": name " + (kind == Kinds.OBJECT ? "an Object[]" : "a " + Kinds.name(kind) + "[] or a java.nio buffer of that type"));
	}

	/** Refuses items that do not lie in a buffer of elementsOf(). */
	void checkRange(String operation, Object buf, int offset, int count) {
		if (count < 0)
			throw Errors.of(operation + ": the count is " + count + ": it must not be negative");
		if (count == 0 || size == 0)
			return;
		long last = (long) (count - 1) * extent();
		long from = offset + Math.min(0, last) + lowest;
		long to = offset + Math.max(0, last) + highest;
		int length = Kinds.length(buf);
		if (from < 0 || to > length)
			throw Errors.of(operation + ": offset " + offset + ", count " + count + " of " + name() + " needs elements " + from + " to " + (to - 1)
					+ ", the buffer has " + length + ": correct offset or count, or take a longer buffer");
		if ((long) count * size > Integer.MAX_VALUE)
			throw Errors.of(operation + ": " + count + " of " + name() + " are more than 2^31 - 1 elements: send them in parts");
	}

	/** The elements of count items as an array of their own. */
	Object pack(Object buf, int offset, int count) {
		Object packed = Kinds.array(kind, count * size);
		copy(true, buf, offset, 0, count * size, packed, 0);
		return packed;
	}

	/**
	 * The number of the basic type of the elements.
	 *
	 * @return {@link #baseType}
	 */
	public int getType() {
		return baseType;
	}

	/**
	 * How many bytes the elements of one item have.
	 *
	 * @return bytes; 0 for objects
	 */
	public int getByteSize() {
		return baseType == MPI.PACKED_TYPE ? 0 : size * unitBytes();
	}

	/**
	 * The distance of one item to the next.
	 *
	 * @return elements
	 */
	public int Extent() {
		return extent();
	}

	/**
	 * How many elements one item has.
	 *
	 * @return elements, without gaps
	 */
	public int Size() {
		return size;
	}

	/**
	 * The lower bound.
	 *
	 * @return elements, from the offset of an item
	 */
	public int Lb() {
		return lb;
	}

	/**
	 * The upper bound.
	 *
	 * @return elements, from the offset of an item
	 */
	public int Ub() {
		return ub;
	}

	/** Makes the type ready for messages. */
	public void Commit() {
		if (freed)
			throw Errors.of("Commit: the datatype " + name() + " has been freed: make another");
		committed = true;
	}

	/** Does nothing: the collector frees types. */
	@Override
	@SuppressWarnings({"deprecation", "removal"})
	public void finalize() {}

	/** Gives the type up; operations under way end as they would, no other may use it. A basic type stays. */
	public void free() {
		freed = this instanceof Layout;
	}

	/**
	 * Items one after the other.
	 *
	 * @param count   how many
	 * @param oldtype of what
	 * @return a new type
	 */
	public static Datatype Contiguous(int count, Datatype oldtype) {
		Layout.Builder builder = Layout.builder("Contiguous", oldtype);
		builder.block("Contiguous", 0, count, oldtype);
		return builder.build("Contiguous(" + count + ")");
	}

	/**
	 * Blocks at equal distances.
	 *
	 * @param count       how many blocks
	 * @param blocklength items of each
	 * @param stride      from the beginning of one to that of the next, in extents of oldtype
	 * @param oldtype     of what
	 * @return a new type
	 */
	public static Datatype Vector(int count, int blocklength, int stride, Datatype oldtype) {
		return vector("Vector", count, blocklength, stride, oldtype, true);
	}

	/**
	 * As Vector, and the distance is counted in elements.
	 *
	 * @param count       how many blocks
	 * @param blocklength items of each
	 * @param stride      from the beginning of one to that of the next, in elements
	 * @param oldtype     of what
	 * @return a new type
	 */
	public static Datatype Hvector(int count, int blocklength, int stride, Datatype oldtype) {
		return vector("Hvector", count, blocklength, stride, oldtype, false);
	}

	private static Datatype vector(String name, int count, int blocklength, int stride, Datatype oldtype, boolean inExtents) {
		Layout.Builder builder = Layout.builder(name, oldtype);
		if (count < 0)
			throw Errors.of(name + ": the count is " + count + ": it must not be negative");
		int step = inExtents ? Math.multiplyExact(stride, oldtype.extent()) : stride;
		for (int i = 0; i < count; i++)
			builder.block(name, Math.multiplyExact(i, step), blocklength, oldtype);
		return builder.build(name + "(" + count + ", " + blocklength + ", " + stride + ")");
	}

	/**
	 * Blocks of any length anywhere.
	 *
	 * @param array_of_blocklengths  items of each block
	 * @param array_of_displacements where each begins, in extents of oldtype
	 * @param oldtype                of what
	 * @return a new type
	 */
	public static Datatype Indexed(int[] array_of_blocklengths, int[] array_of_displacements, Datatype oldtype) {
		return indexed("Indexed", array_of_blocklengths, array_of_displacements, oldtype, true);
	}

	/**
	 * As Indexed, and the displacements are counted in elements.
	 *
	 * @param array_of_blocklengths  items of each block
	 * @param array_of_displacements where each begins, in elements
	 * @param oldtype                of what
	 * @return a new type
	 */
	public static Datatype Hindexed(int[] array_of_blocklengths, int[] array_of_displacements, Datatype oldtype) {
		return indexed("Hindexed", array_of_blocklengths, array_of_displacements, oldtype, false);
	}

	private static Datatype indexed(String name, int[] lengths, int[] displacements, Datatype oldtype, boolean inExtents) {
		Layout.Builder builder = Layout.builder(name, oldtype);
		checkLists(name, lengths, displacements, lengths == null ? 0 : lengths.length);
		int unit = inExtents ? oldtype.extent() : 1;
		for (int i = 0; i < lengths.length; i++)
			builder.block(name, Math.multiplyExact(displacements[i], unit), lengths[i], oldtype);
		return builder.build(name + " of " + lengths.length + " blocks");
	}

	private static void checkLists(String name, int[] lengths, int[] displacements, int types) {
		if (lengths == null || displacements == null || lengths.length != displacements.length || lengths.length != types)
			throw Errors.of(name + ": " + (lengths == null ? "no" : lengths.length) + " block lengths, " + (displacements == null ? "no" : displacements.length)
					+ " displacements, " + types + " blocks: the arrays must be there and equally long");
	}

	/**
	 * Blocks of several types. MPI.LB and MPI.UB set the bounds.
	 *
	 * @param array_of_blocklengths  items of each block
	 * @param array_of_displacements where each begins, in elements; in bytes if the basic types differ
	 * @param array_of_types         of what each consists
	 * @return a new type
	 */
	public static Datatype Struct(int[] array_of_blocklengths, int[] array_of_displacements, Datatype[] array_of_types) {
		checkLists("Struct", array_of_blocklengths, array_of_displacements, array_of_types == null ? 0 : array_of_types.length);
		Layout.Builder builder = Layout.builder("Struct", array_of_types);
		for (int i = 0; i < array_of_types.length; i++)
			builder.block("Struct", array_of_displacements[i], array_of_blocklengths[i], array_of_types[i]);
		return builder.build("Struct of " + array_of_types.length + " blocks");
	}

	@Override
	public String toString() {
		return name();
	}

	/** Is this what arrays of basic elements are sent as, without a copy? */
	static boolean isBuffer(Object buf) {
		return buf instanceof Buffer;
	}
}
