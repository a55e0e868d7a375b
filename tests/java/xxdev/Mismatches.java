// SPDX-License-Identifier: MIT
package xxdevtest;

import java.nio.ByteBuffer;
import java.nio.IntBuffer;
import java.util.Arrays;
import xxdev.Device;
import xxdev.PID;
import xxdev.Request;
import xxdev.Type;

/** What does not fit, and wrong arguments. Two ranks. */
final class Mismatches extends Program {
	public static void main(String[] args) throws Exception {
		new Mismatches().launch(args);
	}

	/** Sends out, receives it by each of four calls in something that it does not fit; the words must be in the error. */
	private void refused(Object out, Object in, String... words) throws Exception {
		for (int method = 0; method < 4; method++) {
			Request send = method % 2 == 0 ? dev.isend(out, ids[1 - me], 1, CONTEXT) : dev.issend(out, ids[1 - me], 1, CONTEXT);
			if (method < 2) {
				fails(() -> dev.recv(in, ids[1 - me], 1, CONTEXT), words);
			} else {
				Request receive = dev.irecv(in, Device.ANY_SRC, 1, CONTEXT);
				if (method == 2) {
					fails(receive::iwait, words);
				} else {
					fails(() -> {
						while (receive.test() == null)
							Thread.onSpinWait();
					}, words);
				}
				fails(receive::iwait, words); /* every time the same */
				check(receive.isnull(), "its outcome was taken");
			}
			send.iwait();
		}
		/* The stream goes on. */
		int[] after = new int[1];
		Request receive = dev.irecv(after, ids[1 - me], 2, CONTEXT);
		dev.send(new int[] {5}, ids[1 - me], 2, CONTEXT);
		checkStatus(receive.iwait(), 1 - me, 2, Type.INT, 1);
		equal(5, after[0], "what follows");
	}

	@Case
	void otherTypes() throws Exception {
		double[] doubles = new double[20];
		refused(new int[10], doubles, "holds 10 int", "40 bytes", "20 double", "double[20]");
		refused(new long[100000], doubles, "holds 100000 long", "20 double");
		refused(IntBuffer.allocate(3), new float[9], "holds 3 int", "float[9]");
		refused(new byte[4], new boolean[4], "holds 4 byte", "4 boolean");
		refused(new char[4], new short[4], "holds 4 char", "4 short");
		refused(new short[4], ByteBuffer.allocateDirect(100), "holds 4 short", "DirectByteBuffer");
		check(Arrays.equals(doubles, new double[20]), "the buffer is unchanged");
	}

	@Case
	void tooLong() throws Exception {
		int[] ints = new int[9];
		refused(new int[10], ints, "holds 10 int", "40 bytes", "9 int", "int[9]");
		refused(new int[100000], ints, "holds 100000 int", "400000 bytes", "9 int");
		refused(new byte[10], ByteBuffer.allocate(9), "holds 10 byte", "9 byte");
		check(Arrays.equals(ints, new int[9]), "the buffer is unchanged");
		dev.isend(new int[10], ids[me], 3, CONTEXT);
		fails(() -> dev.recv(ints, 2, 5, ids[me], 3, CONTEXT), "holds 10 int", "5 int", "int[9]", "elements 2 to 6");
		dev.isend(new Object[] {1, 2, 3}, ids[me], 3, CONTEXT);
		fails(() -> dev.recv(new Object[2], ids[me], 3, CONTEXT), "3 objects", "2 objects", "Object[2]");
	}

	@Case
	void objectsAndArrays() throws Exception {
		refused("text", new int[10], "a String", "10 int");
		refused("text", new byte[10], "a String", "10 byte");
		refused(java.util.List.of(1), new byte[1000], "1 object", "1000 byte");
		refused(new int[3], new Object[3], "3 int", "3 objects");
	}

	@Case
	void arraysOfArrays() throws Exception {
		refused(new int[2][3], new int[6], "2 rows of int[][]", "6 int");
		refused(new int[6], new int[2][3], "6 int", "2 rows of int[][]");
		refused(new int[2][3], new double[2][3], "2 rows of int[][]", "2 rows of double[][]");
		refused(new int[2][3], new int[1][6], "2 rows of int[][]", "1 row of int[][]");
		refused(new int[2][3], new int[3][3], "2 rows of int[][]", "3 rows of int[][]");
		int[][] rows = {new int[3], new int[2]};
		refused(new int[2][3], rows, "2 rows of int[][]");
		check(Arrays.deepEquals(rows, new int[][] {new int[3], new int[2]}), "unchanged");
	}

	@Case
	void elementsOfOtherClasses() throws Exception {
		Integer[] numbers = {1};
		refused("text", numbers, "java.lang.String", "Integer[1]");
		refused(new Object[] {7, "x"}, new Integer[3], "java.lang.String", "Integer[3]");
		equal(1, numbers[0], "unchanged");
	}

	@Case
	void wrongArguments() throws Exception {
		PID other = ids[1 - me];
		int[] five = new int[5];
		fails(() -> dev.send(null, other, 1, CONTEXT), "send", "null");
		fails(() -> dev.recv(null, other, 1, CONTEXT), "recv", "null");
		fails(() -> dev.send(five, null, 1, CONTEXT), "destination", "null");
		fails(() -> dev.send(five, Device.ANY_SRC, 1, CONTEXT), "destination", "ANY_SRC");
		fails(() -> dev.recv(five, null, 1, CONTEXT), "source", "null");
		int[][] portions = {{-1, 1}, {0, -1}, {0, 6}, {5, 1}, {1, Integer.MAX_VALUE}, {Integer.MAX_VALUE, 1}, {Integer.MIN_VALUE, 0}};
		Object[] buffers = {five, IntBuffer.allocate(5), new String[5], new int[5][1], ByteBuffer.allocateDirect(5)};
		for (int[] p : portions)
			for (Object buf : buffers) {
				fails(() -> dev.send(buf, p[0], p[1], other, 1, CONTEXT), "send", "" + p[1]);
				fails(() -> dev.isend(buf, p[0], p[1], other, 1, CONTEXT), "isend", "" + p[1]);
				fails(() -> dev.recv(buf, p[0], p[1], other, 1, CONTEXT), "recv", "" + p[1]);
				fails(() -> dev.irecv(buf, p[0], p[1], other, 1, CONTEXT), "irecv", "" + p[1]);
			}
		fails(() -> dev.send("text", 1, 2, other, 1, CONTEXT), "portion");
		fails(() -> dev.recv("text", other, 1, CONTEXT), "java.lang.String", "array of one element");
		fails(() -> dev.recv(new java.util.ArrayList<>(), other, 1, CONTEXT), "ArrayList");
		fails(() -> dev.recv(ByteBuffer.allocate(3).asReadOnlyBuffer(), other, 1, CONTEXT), "read-only");
		fails(() -> dev.send(new int[][] {{1}, null}, other, 1, CONTEXT), "row 1", "null");
		fails(() -> dev.recv(new int[3][], other, 1, CONTEXT), "row 0", "null");
		fails(() -> dev.send(five, other, 1, Integer.MIN_VALUE), "context", "another");
		fails(() -> dev.iprobe(other, 1, Integer.MIN_VALUE), "context");
		fails(() -> dev.init(new String[] {"0", "x", "ibvdev"}), "already");
		dev.isend(ByteBuffer.allocateDirect(8).asReadOnlyBuffer(), ids[me], 4, CONTEXT);
		dev.isend(ByteBuffer.allocate(8).asReadOnlyBuffer(), ids[me], 4, CONTEXT);
		byte[] in = new byte[8];
		checkStatus(dev.recv(in, ids[me], 4, CONTEXT), me, 4, Type.BYTE, 8);
		checkStatus(dev.recv(in, ids[me], 4, CONTEXT), me, 4, Type.BYTE, 8);
	}

	@Case
	void extremeTagsAndContexts() {
		int[] tags = {0, -1, -2, -3, Integer.MAX_VALUE, Integer.MIN_VALUE};
		for (int tag : tags)
			for (int context : new int[] {0, -1, Integer.MAX_VALUE, Integer.MIN_VALUE + 1}) {
				dev.isend(new byte[] {1}, ids[me], tag, context);
				checkStatus(dev.recv(new byte[1], ids[me], Device.ANY_TAG, context), me, tag, Type.BYTE, 1);
			}
	}
}
