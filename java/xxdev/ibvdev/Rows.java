// SPDX-License-Identifier: MIT
package xxdev.ibvdev;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** Arrays of arrays of primitives: the rows that travel are the innermost arrays, in order. */
final class Rows {
	private Rows() {}

	/** The number of dimensions of an array of primitives; 0: it is none. */
	static int depth(Object array) {
		int depth = 0;
		Class<?> type = array == null ? Object.class : array.getClass();
		for (; type.isArray(); type = type.getComponentType())
			depth++;
		return type.isPrimitive() ? depth : 0;
	}

	/** The kind of the innermost elements. */
	static int kind(Object[] array) {
		Class<?> type = array.getClass();
		while (type.getComponentType().isArray())
			type = type.getComponentType();
		return ArrayRef.kindOf(java.lang.reflect.Array.newInstance(type.getComponentType(), 0));
	}

	/** The innermost arrays below rows from..from+count, in an array of our own: nobody changes it while the natives look. */
	static Object[] leaves(String operation, Object[] array, int from, int count, int depth) {
		Object[] rows = Arrays.copyOfRange(array, from, from + count, Object[].class);
		for (int row = 0; row < count; row++)
			if (rows[row] == null)
				throw Errors.argument(
						operation + ": row " + (from + row) + " of the " + ArrayRef.name(array, array.length) + " is null: rows must be there on both sides");
		if (depth == 2)
			return rows;
		List<Object> leaves = new ArrayList<>();
		for (Object row : rows) {
			Object[] below = (Object[]) row;
			leaves.addAll(Arrays.asList(leaves(operation, below, 0, below.length, depth - 1)));
		}
		return leaves.toArray();
	}

	/** Describes how three and more dimensions divide the innermost arrays; 0 for two. */
	static int checksum(Object[] array, int from, int count, int depth) {
		int sum = 0;
		for (int row = from; depth > 2 && row < from + count; row++) {
			Object[] below = (Object[]) array[row];
			sum = 31 * sum + below.length + 7 * checksum(below, 0, below.length, depth - 1);
		}
		return (sum ^ sum >>> 16) & 0xffff;
	}
}
