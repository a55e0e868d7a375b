// SPDX-License-Identifier: MIT
package xxdevtest;

import java.lang.management.ManagementFactory;
import java.lang.reflect.Array;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import xxdev.Request;
import xxdev.Status;

/**
 * What the steady state of an operation allocates in the Java heap, on the thread that calls it: nothing for a send of an array or direct buffer, the status for a
 * receive, the request and the status for a non-blocking operation. Two ranks.
 */
final class Allocations extends Program {
	private static final com.sun.management.ThreadMXBean THREADS = (com.sun.management.ThreadMXBean) ManagementFactory.getThreadMXBean();
	private static final int MESSAGES = 4000;
	/** The compiler works meanwhile: the least of these counts. */
	private static final int ROUNDS = 12;
	/** Sizes of objects in every JVM of 64 bits; a status is 48 with short references. */
	private static final double STATUS = 56;
	private static final double REQUEST = 128;
	/** What describes the memory of a request. */
	private static final double REFERENCE = 72;

	private Status last;

	public static void main(String[] args) throws Exception {
		new Allocations().launch(args);
	}

	private interface Operation {
		void run(boolean mine);
	}

	/** Both ranks run the operation in turns; its bytes on this thread each time that this rank has its part "mine", and the other part. */
	private double[] allocated(Operation operation) {
		double[] least = {Double.MAX_VALUE, Double.MAX_VALUE};
		long id = Thread.currentThread().getId();
		for (int round = 0; round < ROUNDS; round++) {
			for (int part = 0; part < 2; part++) {
				boolean mine = part == 0;
				meet();
				long before = THREADS.getThreadAllocatedBytes(id);
				for (int i = 0; i < MESSAGES; i++)
					operation.run(mine == (me == 0));
				long bytes = THREADS.getThreadAllocatedBytes(id) - before;
				int which = mine == (me == 0) ? 0 : 1;
				least[which] = Math.min(least[which], (double) bytes / MESSAGES);
			}
		}
		return least;
	}

	private void expect(String what, double first, double second, Operation operation) {
		double[] got = allocated(operation);
		System.out.println(what + ": " + got[0] + " and " + got[1] + " bytes");
		/* the counter itself costs some bytes a round */
		check(got[0] <= first + 1 && got[1] <= second + 1,
				what + " allocates " + got[0] + " and " + got[1] + " bytes, at most " + first + " and " + second + " are due");
	}

	private static List<Object> arrays(int bytes) {
		List<Object> arrays = new ArrayList<>();
		arrays.add(new boolean[bytes]);
		arrays.add(new byte[bytes]);
		arrays.add(new char[bytes / 2]);
		arrays.add(new short[bytes / 2]);
		arrays.add(new int[bytes / 4]);
		arrays.add(new long[bytes / 8]);
		arrays.add(new float[bytes / 4]);
		arrays.add(new double[bytes / 8]);
		return arrays;
	}

	@Case
	void blockingArrays() {
		for (int bytes : new int[] {8, 3000, 60000}) {
			for (Object array : arrays(bytes)) {
				String name = array.getClass().getSimpleName() + " of " + bytes + " bytes";
				expect(name + ", send and recv", 0, STATUS, mine -> {
					if (mine)
						dev.send(array, ids[1 - me], 1, CONTEXT);
					else
						last = dev.recv(array, ids[1 - me], 1, CONTEXT);
				});
			}
		}
	}

	@Case
	void blockingPortions() {
		for (Object array : arrays(3000)) {
			int n = Array.getLength(array);
			expect("a portion of " + array.getClass().getSimpleName() + ", ssend and recv", 0, STATUS, mine -> {
				if (mine)
					dev.ssend(array, n / 3, n / 2, ids[1 - me], 1, CONTEXT);
				else
					last = dev.recv(array, n / 3, n / 2, ids[1 - me], 1, CONTEXT);
			});
		}
	}

	@Case
	void directBuffers() {
		ByteBuffer buffer = ByteBuffer.allocateDirect(1000);
		expect("a direct buffer, send and recv", 0, REFERENCE + STATUS, mine -> {
			if (mine)
				dev.send(buffer, ids[1 - me], 1, CONTEXT);
			else
				last = dev.recv(buffer, ids[1 - me], 1, CONTEXT);
		});
	}

	@Case
	void nonBlocking() {
		int[] small = new int[2];
		double[] large = new double[1000];
		expect("isend and irecv of a short array, iwait", REQUEST + STATUS, REQUEST + REFERENCE + STATUS, mine -> {
			Request request = mine ? dev.isend(small, ids[1 - me], 1, CONTEXT) : dev.irecv(small, ids[1 - me], 1, CONTEXT);
			last = request.iwait();
		});
		expect("isend and irecv, test", REQUEST + REFERENCE + STATUS, REQUEST + REFERENCE + STATUS, mine -> {
			Request request = mine ? dev.isend(large, ids[1 - me], 1, CONTEXT) : dev.irecv(large, ids[1 - me], 1, CONTEXT);
			do
				last = request.test();
			while (last == null);
		});
	}
}
