// SPDX-License-Identifier: MIT
package xxdevtest;

import xxdev.Request;
import xxdev.Type;

/** One message of 64 MB each way, blocking and not, for where everything is slow. Two ranks. */
final class Large extends Program {
	private static final int DOUBLES = 8 << 20;

	public static void main(String[] args) throws Exception {
		new Large().launch(args);
	}

	private double[] pattern(int seed) {
		double[] data = new double[DOUBLES];
		for (int i = 0; i < DOUBLES; i++)
			data[i] = i + 0.5 * seed;
		return data;
	}

	@Case
	void bothWays() {
		double[] in = new double[DOUBLES];
		if (me == 0) {
			dev.send(pattern(0), ids[1], 1, CONTEXT);
			Request receive = dev.irecv(in, ids[1], 2, CONTEXT);
			checkStatus(receive.iwait(), 1, 2, Type.DOUBLE, DOUBLES);
		} else {
			checkStatus(dev.recv(in, ids[0], 1, CONTEXT), 0, 1, Type.DOUBLE, DOUBLES);
			dev.isend(pattern(1), ids[0], 2, CONTEXT).iwait();
		}
		check(java.util.Arrays.equals(pattern(1 - me), in), "the contents");
	}
}
