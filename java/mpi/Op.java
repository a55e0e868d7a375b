// SPDX-License-Identifier: MIT
package mpi;

/** An operation of reductions (MPI 4.0, section 6.9): a predefined one, or a {@link User_function}. Ranks are combined in their order. */
public class Op {
	static final int CODE_MAX = 1;
	static final int CODE_MIN = 2;
	static final int CODE_SUM = 3;
	static final int CODE_PROD = 4;
	static final int CODE_LAND = 5;
	static final int CODE_BAND = 6;
	static final int CODE_LOR = 7;
	static final int CODE_BOR = 8;
	static final int CODE_LXOR = 9;
	static final int CODE_BXOR = 10;
	static final int CODE_MAXLOC = 11;
	static final int CODE_MINLOC = 12;

	/** The number of a predefined operation; 0: a user's. */
	public int opCode;

	private final String name;
	private final User_function function;
	private final boolean commutes;
	private boolean freed;

	Op(String name, int code) {
		this.name = name;
		opCode = code;
		function = null;
		commutes = true;
	}

	/**
	 * An operation of the user's.
	 *
	 * @param function what computes it; it must be associative
	 * @param commute  false: operands stay in the order of ranks
	 */
	public Op(User_function function, boolean commute) {
		this(function, commute, 0);
	}

	/**
	 * As the other constructor.
	 *
	 * @param function what computes it; it must be associative
	 * @param commute  false: operands stay in the order of ranks
	 * @param code     without effect
	 */
	public Op(User_function function, boolean commute, int code) {
		if (function == null)
			throw Errors.of("Op: the function is null: name a User_function");
		name = "a user's operation";
		this.function = function;
		commutes = commute;
	}

	final boolean commutes() {
		return commutes;
	}

	final boolean isUsers() {
		return function != null;
	}

	/** Gives the operation up; a predefined one stays. */
	public void free() {
		freed = function != null;
	}

	/** Does nothing: the collector frees operations. */
	@Override
	@SuppressWarnings({"deprecation", "removal"})
	public void finalize() {}

	@Override
	public String toString() {
		return function == null ? "MPI." + name : name;
	}

	/** Refuses what cannot be combined. */
	static void check(String operation, Op op, Datatype type) {
		if (op == null || op.freed)
			throw Errors.of(operation + ": the operation " + (op == null ? "is null" : "has been freed") + ": name one such as MPI.SUM");
		if (op.function == null && !Kernels.exists(op.opCode, type))
			throw Errors.of(operation + ": " + op + " is not defined for " + type.name() + ": take another operation or datatype");
	}

	/** inout = in op inout, of count items packed in arrays. */
	void combine(Object in, Object inout, int count, Datatype type) {
		if (function == null)
			Kernels.combine(opCode, type.kind, in, inout, count * type.size);
		else if (type.dense)
			function.Call(in, 0, inout, 0, count, type);
		else
			spread(in, inout, count, type);
	}

	/** The function gets the elements where the datatype has them. */
	private void spread(Object in, Object inout, int count, Datatype type) {
		int elements = count * type.size;
		if (elements == 0)
			return;
		int step = type.extent();
		int low = Math.min(0, (count - 1) * step) + Math.min(0, type.lowest);
		int high = Math.max(0, (count - 1) * step) + type.highest;
		Object left = Kinds.array(type.kind, high - low);
		Object right = Kinds.array(type.kind, high - low);
		type.copy(false, left, -low, 0, elements, in, 0);
		type.copy(false, right, -low, 0, elements, inout, 0);
		function.Call(left, -low, right, -low, count, type);
		type.copy(true, right, -low, 0, elements, inout, 0);
	}
}
