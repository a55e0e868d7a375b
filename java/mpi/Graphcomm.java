// SPDX-License-Identifier: MIT
package mpi;

import java.util.Arrays;

/** A communicator whose processes are the nodes of a graph (MPI 4.0, section 8.5.3). */
public class Graphcomm extends Intracomm {
	private final int[] index;
	private final int[] edges;

	Graphcomm(Intracomm made, int[] index, int[] edges) {
		super(made);
		this.index = index;
		this.edges = edges;
	}

	/** Refuses what is no graph of at most so many nodes. */
	static void check(int[] index, int[] edges, int size) {
		if (index == null || edges == null || index.length > size)
			throw Errors.of("Create_graph: " + (index == null ? "no" : index.length) + " nodes, " + (edges == null ? "no" : edges.length)
					+ " edges: there must be at most " + size + " nodes, and an array of edges");
		int before = 0;
		for (int end : index) {
			if (end < before || end > edges.length)
				throw Errors.of("Create_graph: the index " + Arrays.toString(index) + " does not rise to at most the " + edges.length + " edges: correct it");
			before = end;
		}
		for (int node : edges)
			if (node < 0 || node >= index.length)
				throw Errors.of("Create_graph: an edge leads to node " + node + ": use 0 to " + (index.length - 1));
	}

	@Override
	public Object clone() {
		check("clone");
		return new Graphcomm(part(group.ranks), index, edges);
	}

	/**
	 * The graph.
	 *
	 * @return as it was made
	 */
	public GraphParms Get() {
		check("Get");
		GraphParms parms = new GraphParms();
		parms.index = index.clone();
		parms.edges = edges.clone();
		return parms;
	}

	/**
	 * The neighbours of a process.
	 *
	 * @param rank whose
	 * @return their ranks
	 */
	public int[] Neighbours(int rank) {
		world("Neighbours", "rank", rank);
		return Arrays.copyOfRange(edges, rank == 0 ? 0 : index[rank - 1], index[rank]);
	}

	/**
	 * Where the calling process would be in a graph.
	 *
	 * @param index as in Create_graph
	 * @param edges as in Create_graph
	 * @return its rank there, or MPI.UNDEFINED
	 */
	public int Map(int[] index, int[] edges) {
		check("Map");
		check(index, edges, group.ranks.length);
		return group.self() < index.length ? group.self() : MPI.UNDEFINED;
	}

	@Override
	public int Topo_test() {
		check("Topo_test");
		return MPI.GRAPH;
	}
}
