// SPDX-License-Identifier: MIT
package mpi;

/** The predefined operations on arrays: inout[i] = in[i] op inout[i]. Integers wrap around; of a NaN and a number, MAX and MIN give the number, MAXLOC and MINLOC its pair. */
final class Kernels {
	private Kernels() {}

	/** Is the operation defined for elements of this type? */
	static boolean exists(int op, Datatype type) {
		int kind = type.kind;
		boolean whole = kind >= Kinds.BYTE && kind <= Kinds.LONG;
		switch (op) {
		case Op.CODE_MAX:
		case Op.CODE_MIN:
		case Op.CODE_SUM:
		case Op.CODE_PROD:
			return kind >= Kinds.BYTE && kind <= Kinds.DOUBLE;
		case Op.CODE_MAXLOC:
		case Op.CODE_MINLOC:
			return kind >= Kinds.BYTE && kind <= Kinds.DOUBLE && type.size % 2 == 0;
		default:
			return whole || kind == Kinds.BOOLEAN;
		}
	}

	/** Combines n elements, of MAXLOC and MINLOC n / 2 pairs. */
	static void combine(int op, int kind, Object in, Object inout, int n) {
		switch (kind) {
		case Kinds.BOOLEAN:
			combine(op, (boolean[]) in, (boolean[]) inout, n);
			break;
		case Kinds.BYTE:
			combine(op, (byte[]) in, (byte[]) inout, n);
			break;
		case Kinds.CHAR:
			combine(op, (char[]) in, (char[]) inout, n);
			break;
		case Kinds.SHORT:
			combine(op, (short[]) in, (short[]) inout, n);
			break;
		case Kinds.INT:
			combine(op, (int[]) in, (int[]) inout, n);
			break;
		case Kinds.LONG:
			combine(op, (long[]) in, (long[]) inout, n);
			break;
		case Kinds.FLOAT:
			combine(op, (float[]) in, (float[]) inout, n);
			break;
		default:
			combine(op, (double[]) in, (double[]) inout, n);
		}
	}

	private static void combine(int op, boolean[] in, boolean[] inout, int n) {
		for (int i = 0; i < n; i++) {
			if (op == Op.CODE_LAND || op == Op.CODE_BAND)
				inout[i] &= in[i];
			else if (op == Op.CODE_LOR || op == Op.CODE_BOR)
				inout[i] |= in[i];
			else
				inout[i] ^= in[i];
		}
	}

	private static void combine(int op, byte[] in, byte[] inout, int n) {
		switch (op) {
		case Op.CODE_MAX:
			for (int i = 0; i < n; i++)
				inout[i] = (byte) Math.max(in[i], inout[i]);
			break;
		case Op.CODE_MIN:
			for (int i = 0; i < n; i++)
				inout[i] = (byte) Math.min(in[i], inout[i]);
			break;
		case Op.CODE_SUM:
			for (int i = 0; i < n; i++)
				inout[i] = (byte) (in[i] + inout[i]);
			break;
		case Op.CODE_PROD:
			for (int i = 0; i < n; i++)
				inout[i] = (byte) (in[i] * inout[i]);
			break;
		case Op.CODE_BAND:
			for (int i = 0; i < n; i++)
				inout[i] = (byte) (in[i] & inout[i]);
			break;
		case Op.CODE_BOR:
			for (int i = 0; i < n; i++)
				inout[i] = (byte) (in[i] | inout[i]);
			break;
		case Op.CODE_BXOR:
			for (int i = 0; i < n; i++)
				inout[i] = (byte) (in[i] ^ inout[i]);
			break;
		case Op.CODE_LAND:
			for (int i = 0; i < n; i++)
				inout[i] = (byte) (in[i] != 0 && inout[i] != 0 ? 1 : 0);
			break;
		case Op.CODE_LOR:
			for (int i = 0; i < n; i++)
				inout[i] = (byte) (in[i] != 0 || inout[i] != 0 ? 1 : 0);
			break;
		case Op.CODE_LXOR:
			for (int i = 0; i < n; i++)
				inout[i] = (byte) (in[i] != 0 != (inout[i] != 0) ? 1 : 0);
			break;
		default:
			for (int i = 0; i < n; i += 2) {
				boolean better = op == Op.CODE_MAXLOC ? in[i] > inout[i] : in[i] < inout[i];
				if (better || in[i] == inout[i] && in[i + 1] < inout[i + 1]) {
					inout[i] = in[i];
					inout[i + 1] = in[i + 1];
				}
			}
		}
	}

	private static void combine(int op, char[] in, char[] inout, int n) {
		switch (op) {
		case Op.CODE_MAX:
			for (int i = 0; i < n; i++)
				inout[i] = (char) Math.max(in[i], inout[i]);
			break;
		case Op.CODE_MIN:
			for (int i = 0; i < n; i++)
				inout[i] = (char) Math.min(in[i], inout[i]);
			break;
		case Op.CODE_SUM:
			for (int i = 0; i < n; i++)
				inout[i] = (char) (in[i] + inout[i]);
			break;
		case Op.CODE_PROD:
			for (int i = 0; i < n; i++)
				inout[i] = (char) (in[i] * inout[i]);
			break;
		case Op.CODE_BAND:
			for (int i = 0; i < n; i++)
				inout[i] = (char) (in[i] & inout[i]);
			break;
		case Op.CODE_BOR:
			for (int i = 0; i < n; i++)
				inout[i] = (char) (in[i] | inout[i]);
			break;
		case Op.CODE_BXOR:
			for (int i = 0; i < n; i++)
				inout[i] = (char) (in[i] ^ inout[i]);
			break;
		case Op.CODE_LAND:
			for (int i = 0; i < n; i++)
				inout[i] = (char) (in[i] != 0 && inout[i] != 0 ? 1 : 0);
			break;
		case Op.CODE_LOR:
			for (int i = 0; i < n; i++)
				inout[i] = (char) (in[i] != 0 || inout[i] != 0 ? 1 : 0);
			break;
		case Op.CODE_LXOR:
			for (int i = 0; i < n; i++)
				inout[i] = (char) (in[i] != 0 != (inout[i] != 0) ? 1 : 0);
			break;
		default:
			for (int i = 0; i < n; i += 2) {
				boolean better = op == Op.CODE_MAXLOC ? in[i] > inout[i] : in[i] < inout[i];
				if (better || in[i] == inout[i] && in[i + 1] < inout[i + 1]) {
					inout[i] = in[i];
					inout[i + 1] = in[i + 1];
				}
			}
		}
	}

	private static void combine(int op, short[] in, short[] inout, int n) {
		switch (op) {
		case Op.CODE_MAX:
			for (int i = 0; i < n; i++)
				inout[i] = (short) Math.max(in[i], inout[i]);
			break;
		case Op.CODE_MIN:
			for (int i = 0; i < n; i++)
				inout[i] = (short) Math.min(in[i], inout[i]);
			break;
		case Op.CODE_SUM:
			for (int i = 0; i < n; i++)
				inout[i] = (short) (in[i] + inout[i]);
			break;
		case Op.CODE_PROD:
			for (int i = 0; i < n; i++)
				inout[i] = (short) (in[i] * inout[i]);
			break;
		case Op.CODE_BAND:
			for (int i = 0; i < n; i++)
				inout[i] = (short) (in[i] & inout[i]);
			break;
		case Op.CODE_BOR:
			for (int i = 0; i < n; i++)
				inout[i] = (short) (in[i] | inout[i]);
			break;
		case Op.CODE_BXOR:
			for (int i = 0; i < n; i++)
				inout[i] = (short) (in[i] ^ inout[i]);
			break;
		case Op.CODE_LAND:
			for (int i = 0; i < n; i++)
				inout[i] = (short) (in[i] != 0 && inout[i] != 0 ? 1 : 0);
			break;
		case Op.CODE_LOR:
			for (int i = 0; i < n; i++)
				inout[i] = (short) (in[i] != 0 || inout[i] != 0 ? 1 : 0);
			break;
		case Op.CODE_LXOR:
			for (int i = 0; i < n; i++)
				inout[i] = (short) (in[i] != 0 != (inout[i] != 0) ? 1 : 0);
			break;
		default:
			for (int i = 0; i < n; i += 2) {
				boolean better = op == Op.CODE_MAXLOC ? in[i] > inout[i] : in[i] < inout[i];
				if (better || in[i] == inout[i] && in[i + 1] < inout[i + 1]) {
					inout[i] = in[i];
					inout[i + 1] = in[i + 1];
				}
			}
		}
	}

	private static void combine(int op, int[] in, int[] inout, int n) {
		switch (op) {
		case Op.CODE_MAX:
			for (int i = 0; i < n; i++)
				inout[i] = Math.max(in[i], inout[i]);
			break;
		case Op.CODE_MIN:
			for (int i = 0; i < n; i++)
				inout[i] = Math.min(in[i], inout[i]);
			break;
		case Op.CODE_SUM:
			for (int i = 0; i < n; i++)
				inout[i] = in[i] + inout[i];
			break;
		case Op.CODE_PROD:
			for (int i = 0; i < n; i++)
				inout[i] = in[i] * inout[i];
			break;
		case Op.CODE_BAND:
			for (int i = 0; i < n; i++)
				inout[i] = in[i] & inout[i];
			break;
		case Op.CODE_BOR:
			for (int i = 0; i < n; i++)
				inout[i] = in[i] | inout[i];
			break;
		case Op.CODE_BXOR:
			for (int i = 0; i < n; i++)
				inout[i] = in[i] ^ inout[i];
			break;
		case Op.CODE_LAND:
			for (int i = 0; i < n; i++)
				inout[i] = (in[i] != 0 && inout[i] != 0 ? 1 : 0);
			break;
		case Op.CODE_LOR:
			for (int i = 0; i < n; i++)
				inout[i] = (in[i] != 0 || inout[i] != 0 ? 1 : 0);
			break;
		case Op.CODE_LXOR:
			for (int i = 0; i < n; i++)
				inout[i] = (in[i] != 0 != (inout[i] != 0) ? 1 : 0);
			break;
		default:
			for (int i = 0; i < n; i += 2) {
				boolean better = op == Op.CODE_MAXLOC ? in[i] > inout[i] : in[i] < inout[i];
				if (better || in[i] == inout[i] && in[i + 1] < inout[i + 1]) {
					inout[i] = in[i];
					inout[i + 1] = in[i + 1];
				}
			}
		}
	}

	private static void combine(int op, long[] in, long[] inout, int n) {
		switch (op) {
		case Op.CODE_MAX:
			for (int i = 0; i < n; i++)
				inout[i] = Math.max(in[i], inout[i]);
			break;
		case Op.CODE_MIN:
			for (int i = 0; i < n; i++)
				inout[i] = Math.min(in[i], inout[i]);
			break;
		case Op.CODE_SUM:
			for (int i = 0; i < n; i++)
				inout[i] = in[i] + inout[i];
			break;
		case Op.CODE_PROD:
			for (int i = 0; i < n; i++)
				inout[i] = in[i] * inout[i];
			break;
		case Op.CODE_BAND:
			for (int i = 0; i < n; i++)
				inout[i] = in[i] & inout[i];
			break;
		case Op.CODE_BOR:
			for (int i = 0; i < n; i++)
				inout[i] = in[i] | inout[i];
			break;
		case Op.CODE_BXOR:
			for (int i = 0; i < n; i++)
				inout[i] = in[i] ^ inout[i];
			break;
		case Op.CODE_LAND:
			for (int i = 0; i < n; i++)
				inout[i] = (in[i] != 0 && inout[i] != 0 ? 1 : 0);
			break;
		case Op.CODE_LOR:
			for (int i = 0; i < n; i++)
				inout[i] = (in[i] != 0 || inout[i] != 0 ? 1 : 0);
			break;
		case Op.CODE_LXOR:
			for (int i = 0; i < n; i++)
				inout[i] = (in[i] != 0 != (inout[i] != 0) ? 1 : 0);
			break;
		default:
			for (int i = 0; i < n; i += 2) {
				boolean better = op == Op.CODE_MAXLOC ? in[i] > inout[i] : in[i] < inout[i];
				if (better || in[i] == inout[i] && in[i + 1] < inout[i + 1]) {
					inout[i] = in[i];
					inout[i + 1] = in[i + 1];
				}
			}
		}
	}

	private static void combine(int op, float[] in, float[] inout, int n) {
		switch (op) {
		case Op.CODE_MAX:
			for (int i = 0; i < n; i++)
				inout[i] = in[i] > inout[i] || inout[i] != inout[i] ? in[i] : inout[i];
			break;
		case Op.CODE_MIN:
			for (int i = 0; i < n; i++)
				inout[i] = in[i] < inout[i] || inout[i] != inout[i] ? in[i] : inout[i];
			break;
		case Op.CODE_SUM:
			for (int i = 0; i < n; i++)
				inout[i] = in[i] + inout[i];
			break;
		case Op.CODE_PROD:
			for (int i = 0; i < n; i++)
				inout[i] = in[i] * inout[i];
			break;
		default:
			for (int i = 0; i < n; i += 2) {
				boolean better = in[i] == in[i] && (inout[i] != inout[i] || (op == Op.CODE_MAXLOC ? in[i] > inout[i] : in[i] < inout[i]));
				boolean equal = in[i] == inout[i] || in[i] != in[i] && inout[i] != inout[i];
				if (better || equal && in[i + 1] < inout[i + 1]) {
					inout[i] = in[i];
					inout[i + 1] = in[i + 1];
				}
			}
		}
	}

	private static void combine(int op, double[] in, double[] inout, int n) {
		switch (op) {
		case Op.CODE_MAX:
			for (int i = 0; i < n; i++)
				inout[i] = in[i] > inout[i] || inout[i] != inout[i] ? in[i] : inout[i];
			break;
		case Op.CODE_MIN:
			for (int i = 0; i < n; i++)
				inout[i] = in[i] < inout[i] || inout[i] != inout[i] ? in[i] : inout[i];
			break;
		case Op.CODE_SUM:
			for (int i = 0; i < n; i++)
				inout[i] = in[i] + inout[i];
			break;
		case Op.CODE_PROD:
			for (int i = 0; i < n; i++)
				inout[i] = in[i] * inout[i];
			break;
		default:
			for (int i = 0; i < n; i += 2) {
				boolean better = in[i] == in[i] && (inout[i] != inout[i] || (op == Op.CODE_MAXLOC ? in[i] > inout[i] : in[i] < inout[i]));
				boolean equal = in[i] == inout[i] || in[i] != in[i] && inout[i] != inout[i];
				if (better || equal && in[i + 1] < inout[i + 1]) {
					inout[i] = in[i];
					inout[i + 1] = in[i + 1];
				}
			}
		}
	}
}
