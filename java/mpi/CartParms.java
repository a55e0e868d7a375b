// SPDX-License-Identifier: MIT
package mpi;

/** What {@link Cartcomm#Get} returns (MPI 4.0, section 8.5.5). */
public class CartParms {
	/** The number of processes of each dimension. */
	public int[] dims;
	/** Which dimensions are periodic. */
	public boolean[] periods;
	/** The coordinates of the calling process. */
	public int[] coords;

	CartParms() {}
}
