// SPDX-License-Identifier: MIT
package device;

import mpi.MPI;
import mpjdev.javampjdev.MPJDev;
import xdev.ibvdev.DeviceNames;
import xdev.ibvdev.IBVDevice;

/** A ring through mpi.*; prints which device carried it. */
final class MpiProgram {
	public static void main(String[] args) throws Exception {
		String mode = args.length > 3 ? args[3] : "";
		if (mode.equals("names")) {
			for (String name : new String[] {"ibvdev", "niodev", "smpdev", "hybdev"})
				System.out.println(name + " is " + DeviceNames.create(name).getClass().getName());
			return;
		}
		if (mode.equals("preset"))
			MPJDev.dev = new IBVDevice();
		MPI.Init(args);
		int rank = MPI.COMM_WORLD.Rank();
		int size = MPI.COMM_WORLD.Size();
		int[] sent = {rank};
		int[] got = new int[1];
		MPI.COMM_WORLD.Sendrecv(sent, 0, 1, MPI.INT, (rank + 1) % size, 1, got, 0, 1, MPI.INT, (rank + size - 1) % size, 1);
		if (got[0] != (rank + size - 1) % size)
			throw new AssertionError("rank " + rank + " got " + got[0]);
		System.out.println("carried by " + MPJDev.dev.getClass().getName());
		MPI.Finalize();
		if (mode.equals("twice"))
			MPJDev.finish();
		System.out.println("device after finalize: " + MPJDev.dev);
	}
}
