// SPDX-License-Identifier: MIT
package ibvbench;

import java.util.List;
import mpi.Datatype;
import mpi.MPI;

/**
 * What the messages between two ranks are at the levels mpi and xxdev: bytes (byte[]; at the level xxdev double[] where they are
 * long); doubles (double[]); a column of a square matrix of doubles (a Vector type, mpi only), whose size is that of the column;
 * a tree of objects, whose size is the number of its nodes, one less than a power of two.
 */
final class Messages {
	static final String BYTES = "bytes";
	static final String DOUBLES = "doubles";
	static final String COLUMN = "column";
	static final String TREE = "tree";
	static final List<String> KINDS = List.of(BYTES, DOUBLES, COLUMN, TREE);

	private Messages() {}

	/** A new message of mpi: what its methods take as buffer. */
	static Object buffer(String kind, int size) {
		switch (kind) {
		case DOUBLES:
			return new double[size / Double.BYTES];
		case COLUMN:
			return new double[side(size) * side(size)];
		case TREE:
			return new Object[] {tree(size)};
		default:
			return new byte[size];
		}
	}

	/** So many of the datatype are one message. */
	static int count(String kind, int size) {
		return kind.equals(BYTES) ? size : kind.equals(DOUBLES) ? size / Double.BYTES : 1;
	}

	/** Of one element. */
	static Datatype type(String kind, int size) {
		switch (kind) {
		case DOUBLES:
			return MPI.DOUBLE;
		case COLUMN:
			Datatype column = Datatype.Vector(side(size), 1, side(size), MPI.DOUBLE);
			column.Commit();
			return column;
		case TREE:
			return MPI.OBJECT;
		default:
			return MPI.BYTE;
		}
	}

	/** Rows and columns of the matrix. */
	private static int side(int size) {
		return size / Double.BYTES;
	}

	static Object tree(int nodes) {
		return new ObjectTree.Node(Integer.SIZE - Integer.numberOfLeadingZeros(nodes), 1);
	}
}
