// SPDX-License-Identifier: MIT
package xxdevtest;

import java.nio.Buffer;
import java.util.Random;
import xxdev.Device;
import xxdev.PID;
import xxdev.Request;
import xxdev.Status;
import xxdev.Type;
import xxdev.ibvdev.IBVDevice;

/** Elements of every type, portions, sizes, modes; arrays of arrays. Two ranks. */
final class Messages extends Program {
	private static final int LARGEST_BYTES = Integer.getInteger("xxdevtest.largest", QUICK ? 4 << 20 : 64 << 20);

	public static void main(String[] args) throws Exception {
		new Messages().launch(args);
	}

	/** How a message goes and how it is awaited. */
	private void exchange(int mode, Object out, int from, int n, Object in, int at, int room, Type type) {
		PID other = ids[1 - me];
		int tag = mode;
		PID source = mode % 2 == 0 ? other : Device.ANY_SRC;
		int wanted = mode % 3 == 0 ? Device.ANY_TAG : tag;
		if (mode < 4) { /* blocking on one side: the ranks take turns */
			for (int turn = 0; turn < 2; turn++)
				if (turn == me && mode < 2)
					dev.send(out, from, n, other, tag, CONTEXT);
				else if (turn == me)
					dev.ssend(out, from, n, other, tag, CONTEXT);
				else
					checkStatus(dev.recv(in, at, room, source, wanted, CONTEXT), 1 - me, tag, type, n);
			return;
		}
		Request receive = dev.irecv(in, at, room, source, wanted, CONTEXT);
		Request send = mode == 4 || mode == 6 ? dev.isend(out, from, n, other, tag, CONTEXT) : dev.issend(out, from, n, other, tag, CONTEXT);
		Status status = null;
		while (mode > 5 && (status = receive.test()) == null)
			send.test();
		checkStatus(status != null ? status : receive.iwait(), 1 - me, tag, type, n);
		checkStatus(send.iwait(), 1 - me, tag, type, n);
	}

	private static final int MODES = 8;

	@Case
	void everyTypeAndPortion() {
		int[] lengths = {0, 1, 2, 9, 100, 1500, 70000};
		for (Kind kind : Kind.values())
			for (int n : lengths)
				for (int mode = QUICK ? n % 3 : 0; mode < MODES; mode += QUICK ? 3 : 1) {
					int seed = n + mode;
					/* at the start, at the end, in the middle; the receiver has some room to spare */
					int from = mode % 3 == 0 ? 0 : 5;
					int after = mode % 3 == 1 ? 0 : 7;
					Object out = kind.make(from + n + after);
					kind.fill(out, from, n, seed + me);
					Object in = kind.make(from + n + after);
					exchange(mode, out, from, n, in, from, n + (mode % 4 == 3 ? after : 0), kind.type);
					kind.verify(in, from + n + after, from, n, seed + 1 - me);
				}
	}

	@Case
	void wholeBuffers() {
		for (Kind kind : Kind.values()) {
			Object out = kind.make(50);
			Object in = kind.make(60);
			kind.fill(out, 0, 50, me);
			Request receive = dev.irecv(in, ids[1 - me], 1, CONTEXT);
			dev.send(out, ids[1 - me], 1, CONTEXT);
			checkStatus(receive.iwait(), 1 - me, 1, kind.type, 50);
			kind.verify(in, 60, 0, 50, 1 - me);
			if (!(out instanceof Buffer))
				continue;
			/* from position to limit, both of which stay as they are */
			((Buffer) out).position(10).limit(30);
			Object part = kind.make(60);
			((Buffer) part).position(4).limit(40);
			receive = dev.irecv(part, ids[1 - me], 2, CONTEXT);
			dev.ssend(out, ids[1 - me], 2, CONTEXT);
			checkStatus(receive.iwait(), 1 - me, 2, kind.type, 20);
			equal(10, ((Buffer) out).position(), "position");
			equal(4, ((Buffer) part).position(), "position");
			equal(40, ((Buffer) part).limit(), "limit");
			Object expected = kind.make(60);
			kind.fill(expected, 0, 50, 1 - me);
			((Buffer) part).clear();
			dev.isend(part, 4, 20, ids[me], 3, CONTEXT);
			Object received = kind.make(60);
			dev.recv(received, 10, 20, ids[me], 3, CONTEXT);
			dev.isend(expected, 10, 20, ids[me], 3, CONTEXT);
			Object same = kind.make(60);
			dev.recv(same, 10, 20, ids[me], 3, CONTEXT);
			equal(same instanceof Buffer ? clear(same) : same, received instanceof Buffer ? clear(received) : received, "elements 10 to 29");
		}
	}

	private static Object clear(Object buf) {
		return ((Buffer) buf).clear();
	}

	@Case
	void arraysAndBuffersMix() {
		for (Kind one : Kind.values())
			for (Kind two : Kind.values()) {
				if (one.type != two.type)
					continue;
				Object out = one.make(40);
				one.fill(out, 0, 40, 3);
				Object in = two.make(40);
				Request send = dev.isend(out, ids[me], 4, CONTEXT);
				dev.recv(in, ids[me], 4, CONTEXT);
				send.iwait();
				two.verify(in, 40, 0, 40, 3);
			}
	}

	@Case
	void manySizes() {
		Random random = new Random(12);
		for (int bytes = 1; bytes <= LARGEST_BYTES; bytes *= 2) {
			int more = bytes < 100 ? 0 : random.nextInt(bytes / 4);
			int n = bytes >= LARGEST_BYTES ? bytes : bytes + more;
			for (int mode = 0; mode<MODES; mode += bytes> 1 << 22 ? 3 : 1) {
				Kind kind = mode % 2 == 0 ? Kind.BYTES : Kind.DIRECT;
				Object out = kind.make(n);
				Object in = kind.make(n);
				kind.fill(out, 0, n, mode + me);
				exchange(mode, out, 0, n, in, 0, n, Type.BYTE);
				kind.verify(in, n, 0, n, mode + 1 - me);
			}
		}
	}

	@Case
	void largeDoublesAtBothEnds() {
		int n = LARGEST_BYTES / 8;
		for (int mode : new int[] {0, 3, 5, 6}) {
			int from = mode % 2 == 0 ? 0 : 100;
			double[] out = new double[n + 100];
			double[] in = new double[n + 100];
			for (int i = 0; i < n; i++)
				out[from + i] = (i ^ mode) + me * 0.5;
			exchange(mode, out, from, n, in, 100 - from, n, Type.DOUBLE);
			for (int i = 0; i < n; i++)
				if (in[100 - from + i] != (i ^ mode) + (1 - me) * 0.5)
					throw new AssertionError("element " + i + " in mode " + mode + " is " + in[100 - from + i]);
		}
	}

	@Case
	void arraysOfArrays() {
		int[][] shapes = {{}, {0}, {3}, {1, 0, 5}, {100, 1, 70000, 3}, new int[300]};
		for (int[] shape : shapes)
			for (int mode = 0; mode < MODES; mode++) {
				int[][] out = new int[shape.length + 2][];
				double[][] outD = new double[shape.length][];
				int[][] in = new int[shape.length + 2][];
				double[][] inD = new double[shape.length][];
				for (int row = 0; row < in.length; row++) {
					int length = row == 0 || row > shape.length ? 2 : shape[row - 1];
					out[row] = new int[length];
					in[row] = new int[length + row % 2]; /* some have room to spare */
					for (int i = 0; i < length; i++)
						out[row][i] = row * 1000 + i + me;
					if (row >= 1 && row <= shape.length) {
						outD[row - 1] = new double[length];
						inD[row - 1] = new double[length];
						java.util.Arrays.fill(outD[row - 1], row + 0.25 * me);
					}
				}
				exchange(mode, out, 1, shape.length, in, 1, shape.length, Type.INT);
				exchange(mode, outD, 0, shape.length, inD, 0, shape.length, Type.DOUBLE);
				verifyRows(shape, out, in, outD, inD);
			}
	}

	private void verifyRows(int[] shape, int[][] out, int[][] in, double[][] outD, double[][] inD) {
		for (int row = 0; row < in.length; row++)
			for (int i = 0; i < in[row].length; i++) {
				boolean received = row >= 1 && row <= shape.length && i < out[row].length;
				equal(received ? out[row][i] - me + 1 - me : 0, in[row][i], "element " + row + ", " + i);
				if (received)
					equal(outD[row - 1][i] + 0.25 * (1 - 2 * me), inD[row - 1][i], "double " + row + ", " + i);
			}
	}

	@Case
	void deeperArraysAreOneMessage() throws Exception {
		byte[][][] out = {{{1, 2}, {3}}, {}, {{4, 5, 6}}};
		byte[][][] in = {{new byte[2], new byte[1]}, {}, {new byte[3]}};
		Request send = dev.isend(out, ids[1 - me], 5, CONTEXT);
		Status there = dev.probe(ids[1 - me], 5, CONTEXT);
		equal(3, there.depth(), "dimensions");
		equal(3L, there.count(), "rows");
		checkStatus(dev.recv(in, ids[1 - me], 5, CONTEXT), 1 - me, 5, Type.BYTE, 3);
		check(dev.iprobe(ids[1 - me], 5, CONTEXT) == null, "there was one message");
		send.iwait();
		check(java.util.Arrays.deepEquals(out, in), java.util.Arrays.deepToString(in));
		Request other = dev.isend(out, ids[1 - me], 6, CONTEXT);
		byte[][][] wrong = {{new byte[2]}, {new byte[1]}, {new byte[3]}};
		fails(() -> dev.recv(wrong, ids[1 - me], 6, CONTEXT), "3 rows of byte[][][]", "divides");
		other.iwait();
	}

	@Case
	void probesReportWhatIsThere() {
		Status status;
		do
			status = dev.iprobe(ids[me], 7, CONTEXT);
		while (status != null);
		dev.isend(new float[33], 1, 30, ids[me], 7, CONTEXT);
		checkStatus(dev.probe(Device.ANY_SRC, Device.ANY_TAG, CONTEXT), me, 7, Type.FLOAT, 30);
		checkStatus(dev.iprobe(ids[me], 7, CONTEXT), me, 7, Type.FLOAT, 30);
		equal(120L, dev.probe(ids[me], 7, CONTEXT).bytes(), "bytes");
		float[] in = new float[30];
		checkStatus(dev.recv(in, ids[me], 7, CONTEXT), me, 7, Type.FLOAT, 30);
	}

	/** Of messages to and from this peer; a name that does not exist is an error. */
	private long counter(PID peer, String name) {
		for (String line : ((IBVDevice) dev).counters(peer).split("\n"))
			if (line.startsWith(name + " "))
				return Long.parseLong(line.substring(name.length() + 1));
		throw new AssertionError("there is no counter " + name);
	}

	/** From array to array with one copy: the job requires it. */
	@Case
	void arraysGoByLeases() {
		if (!Boolean.getBoolean("xxdevtest.leases"))
			return;
		double[] data = new double[1 << 17];
		for (int i = 0; i < 50; i++) {
			if (me == 0)
				dev.send(data, ids[1], 9, CONTEXT);
			else
				dev.recv(data, ids[0], 9, CONTEXT);
		}
		if (me == 0)
			check(counter(ids[1], "leased_segments") > 0, "no segment was copied straight to its array");
	}

	@Case
	void orderIsKept() {
		int n = 300;
		if (me == 0) {
			for (int i = 0; i < n; i++) {
				Object[] forms = {new int[] {i}, new int[] {i, 0, 0}, new int[i % 7 == 0 ? 40000 : 1]};
				int[] message = (int[]) forms[i % 3];
				message[0] = i;
				if (i % 2 == 0)
					dev.send(message, ids[1], 8, CONTEXT);
				else
					dev.isend(message, ids[1], 8, CONTEXT);
			}
		} else {
			int[] in = new int[40000];
			for (int i = 0; i < n; i++) {
				dev.recv(in, i % 2 == 0 ? ids[0] : Device.ANY_SRC, i % 3 == 0 ? Device.ANY_TAG : 8, CONTEXT);
				equal(i, in[0], "number in the stream");
			}
		}
	}
}
