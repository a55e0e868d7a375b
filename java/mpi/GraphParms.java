// SPDX-License-Identifier: MIT
package mpi;

/** What {@link Graphcomm#Get} returns (MPI 4.0, section 8.5.5). */
public class GraphParms {
	/** Entry i: how many neighbours the nodes 0 to i have together. */
	public int[] index;
	/** The neighbours of all nodes, one after the other. */
	public int[] edges;

	/** Empty. */
	public GraphParms() {}
}
