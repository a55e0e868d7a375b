// SPDX-License-Identifier: MIT
package xdev.ibvdev;

import mpi.MPI;

/**
 * A job of one rank, with the package mpi that the class path has, that uses what most programs use, for {@code java -XX:ArchiveClassesAtExit}: ibvrun lets every
 * JVM map the classes that are loaded here.
 */
public final class ClassArchive {
	private ClassArchive() {}

	/**
	 * Runs it; prints nothing.
	 *
	 * @param args rank, conf, device
	 */
	public static void main(String[] args) {
		MPI.Init(args);
		int me = MPI.COMM_WORLD.Rank();
		double[] out = {1, 2, 3};
		double[] in = new double[3];
		MPI.COMM_WORLD.Barrier();
		MPI.COMM_WORLD.Allreduce(out, 0, in, 0, in.length, MPI.DOUBLE, MPI.SUM);
		MPI.COMM_WORLD.Bcast(in, 0, in.length, MPI.DOUBLE, 0);
		MPI.COMM_WORLD.Sendrecv(out, 0, 3, MPI.DOUBLE, me, 1, in, 0, 3, MPI.DOUBLE, me, 1);
		Object[] object = {"text"};
		Object[] copy = new Object[1];
		MPI.COMM_WORLD.Sendrecv(object, 0, 1, MPI.OBJECT, me, 1, copy, 0, 1, MPI.OBJECT, me, 1);
		MPI.Finalize();
	}
}
