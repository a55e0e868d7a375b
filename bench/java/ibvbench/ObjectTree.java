// SPDX-License-Identifier: MIT
package ibvbench;

import java.io.Serializable;
import java.util.Arrays;
import mpi.MPI;
import xxdev.Device;
import xxdev.PID;

/**
 * Objects there and back, as MPJ/Ibis measured them: a binary tree of 1,023 nodes with four ints each. Two ranks, started by ibvrun;
 * rank 0 prints half the time of a round trip. {@code bench/objects} compares.
 */
public final class ObjectTree {
	private static final int TAG = 1;

	/** A node. */
	static final class Node implements Serializable {
		private static final long serialVersionUID = 1;
		int a;
		int b;
		int c;
		int d;
		Node left;
		Node right;

		Node(int depth, int number) {
			a = number;
			b = -number;
			c = depth;
			d = number * 31;
			if (depth > 1) {
				left = new Node(depth - 1, 2 * number);
				right = new Node(depth - 1, 2 * number + 1);
			}
		}

		int count() {
			return 1 + (left == null ? 0 : left.count()) + (right == null ? 0 : right.count());
		}
	}

	/** What sends and receives an object. */
	private interface Way {
		void send(Object object) throws Exception;

		Object recv() throws Exception;
	}

	private ObjectTree() {}

	/**
	 * Runs one rank.
	 *
	 * @param args rank, conf, device, then: xxdev or mpi, levels of the tree, samples, milliseconds a sample
	 * @throws Exception if anything fails
	 */
	public static void main(String[] args) throws Exception {
		boolean first = args[0].equals("0");
		int depth = Integer.parseInt(args[4]);
		int samples = Integer.parseInt(args[5]);
		long sampleNs = Integer.parseInt(args[6]) * 1_000_000L;
		Way way = args[3].equals("xxdev") ? device(args) : mpi(args);
		Node tree = new Node(depth, 1);
		int batch = 1;
		double[] times = new double[samples];
		if (first) {
			for (long begin = System.nanoTime(); System.nanoTime() - begin < 20 * sampleNs;) // compiled by then
				there(way, tree);
			long begin = System.nanoTime();
			for (int i = 0; i < 10; i++)
				there(way, tree);
			batch = (int) Math.max(1, sampleNs * 10 / (System.nanoTime() - begin));
			for (int s = 0; s < samples; s++) {
				begin = System.nanoTime();
				for (int i = 0; i < batch; i++)
					there(way, tree);
				times[s] = (System.nanoTime() - begin) / 2000.0 / batch;
			}
			way.send("over");
			Arrays.sort(times);
			for (double time : times)
				System.out.println("us " + time);
		} else {
			for (Object object = way.recv(); object instanceof Node; object = way.recv())
				way.send(object);
		}
		System.out.flush();
		Runtime.getRuntime().halt(0); // niodev's threads stay
	}

	private static void there(Way way, Node tree) throws Exception {
		way.send(tree);
		Node back = (Node) way.recv();
		if (back.left != null && back.right.a != tree.right.a)
			throw new IllegalStateException("the tree has changed");
	}

	private static Way device(String[] args) {
		Device device = Device.newInstance(args[2]);
		PID[] ids = device.init(args);
		PID other = ids[1 - device.id().rank()];
		Object[] in = new Object[1];
		return new Way() {
			@Override
			public void send(Object object) {
				device.send(object, other, TAG, 0);
			}

			@Override
			public Object recv() {
				device.recv(in, other, TAG, 0);
				return in[0];
			}
		};
	}

	private static Way mpi(String[] args) {
		MPI.Init(args);
		int other = 1 - MPI.COMM_WORLD.Rank();
		Object[] box = new Object[1];
		return new Way() {
			@Override
			public void send(Object object) {
				box[0] = object;
				MPI.COMM_WORLD.Send(box, 0, 1, MPI.OBJECT, other, TAG);
			}

			@Override
			public Object recv() {
				MPI.COMM_WORLD.Recv(box, 0, 1, MPI.OBJECT, other, TAG);
				return box[0];
			}
		};
	}
}
