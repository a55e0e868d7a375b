// SPDX-License-Identifier: MIT
package mpi;

/** What {@link Cartcomm#Shift} returns (MPI 4.0, section 8.5.6). */
public class ShiftParms {
	/** The rank to receive from; MPI.PROC_NULL at the edge. */
	public int rank_source;
	/** The rank to send to; MPI.PROC_NULL at the edge. */
	public int rank_dest;

	ShiftParms() {}
}
