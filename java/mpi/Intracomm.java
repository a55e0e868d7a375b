// SPDX-License-Identifier: MIT
package mpi;

/**
 * A communicator of one group, with collective operations (MPI 4.0, section 6). All processes of the group call the same ones in the same order; each blocks until its own part is
 * complete. Buffers that are not significant at a process are not looked at. Displacements are multiples of the datatype's extent. Counts that do not match are an error of
 * the program: an {@link MPIException} at one process at least; but where they differ so that processes choose different algorithms, by size, these may wait for each
 * other.
 */
public class Intracomm extends NonBlocking {
	final Collectives collectives;

	/** engine: null, or one that its members share. */
	Intracomm(Group group, long number, Engine engine) {
		super(group, group, number);
		collectives = new Collectives(this, engine);
	}

	/** The same communicator, to be one with a topology. */
	Intracomm(Intracomm made) {
		this(made.group, made.context / 2, made.collectives.engine);
	}

	/** A new communicator of these ranks of the job, null: none for the calling process; collective. */
	final Intracomm part(int[] members) {
		long number = agree();
		Engine engine = collectives.divided(members);
		return members == null ? null : new Intracomm(new Group(members), number, engine);
	}

	/** A new communicator of the first ranks; collective. */
	private Intracomm first(int count) {
		return part(group.self() < count ? java.util.Arrays.copyOf(group.ranks, count) : null);
	}

	@Override
	public void Free() {
		collectives.drain();
		super.Free();
		collectives.free();
	}

	/**
	 * Are they the same?
	 *
	 * @param comm1 a communicator
	 * @param comm2 another one
	 * @return as {@link Comm#Compare}
	 */
	public static int Compare(Comm comm1, Comm comm2) {
		return Comm.Compare(comm1, comm2);
	}

	/** A number for a new communicator, the same at all processes; collective. */
	final long agree() {
		long[] number = {Job.current().propose()};
		collectives.highest(number);
		return number[0];
	}

	/**
	 * Divides the group (MPI 4.0, section 7.4.2).
	 *
	 * @param colour processes with the same one come together; MPI.UNDEFINED: into none
	 * @param key    the order in the new group; equal ones keep the order that they have
	 * @return the new communicator of the calling process; null for MPI.UNDEFINED
	 */
	public Intracomm Split(int colour, int key) {
		check("Split");
		if (colour < 0 && colour != MPI.UNDEFINED)
			throw Errors.of("Split: the colour is " + colour + ": it must be 0 or more, or MPI.UNDEFINED");
		return part(members(colour, key));
	}

	/** The ranks in the job of those with this colour, in order of the keys; null for MPI.UNDEFINED. Collective. */
	final int[] members(int colour, int key) {
		int size = group.ranks.length;
		int[] all = new int[2 * size];
		collectives.allgather(new int[] {colour, key}, 0, 2, MPI.INT, all, 0, 2, MPI.INT);
		if (colour == MPI.UNDEFINED)
			return null;
		return java.util.stream.IntStream.range(0, size)
				.filter(rank -> all[2 * rank] == colour)
				.boxed()
				.sorted(java.util.Comparator.comparingInt(rank -> all[2 * rank + 1]))
				.mapToInt(rank -> group.ranks[rank])
				.toArray();
	}

	@Override
	public Object clone() {
		check("clone");
		return part(group.ranks);
	}

	/**
	 * A communicator of some processes; called by all of this one.
	 *
	 * @param group a part of this group; different ones at different processes must not overlap
	 * @return the new communicator; null at processes that are not in the group
	 */
	public Intracomm Create(Group group) {
		check("Create");
		if (group == null || group.ranks == null)
			throw Errors.of("Create: the group is " + (group == null ? "null" : "MPI.GROUP_NULL") + ": name a part of this communicator's");
		for (int world : group.ranks)
			if (this.group.rankOf(world) < 0)
				throw Errors.of("Create: rank " + world + " of MPI.COMM_WORLD is in the group but not in this communicator: name a part of its group");
		return part(group.self() < 0 ? null : group.ranks);
	}

	/** Blocks until all processes have come to it. */
	public void Barrier() {
		check("Barrier");
		collectives.barrier();
	}

	/**
	 * Brings what root has to all.
	 *
	 * @param buf    an array or java.nio buffer of the datatype's elements, or an Object[]
	 * @param offset index of the first element
	 * @param count  how many of type
	 * @param type   what
	 * @param root   the rank that has it
	 */
	public void Bcast(Object buf, int offset, int count, Datatype type, int root) {
		checkRoot("Bcast", root);
		collectives.bcast(buf, offset, count, type, root);
	}

	@Override
	final Collectives collectives() {
		return collectives;
	}

	@Override
	final void checkRoot(String operation, int root) {
		check(operation);
		if (root < 0 || root >= group.ranks.length)
			throw Errors.of(operation + ": the root is " + root + ": use 0 to " + (group.ranks.length - 1));
	}

	@Override
	final void checkCounts(String operation, int[] counts, int[] displs) {
		if (counts == null || counts.length < group.ranks.length || displs == null || displs.length < group.ranks.length)
			throw Errors.of(operation + ": " + (counts == null ? "no" : counts.length) + " counts, " + (displs == null ? "no" : displs.length)
					+ " displacements: there must be one for each of the " + group.ranks.length + " processes");
	}

	/**
	 * Brings a part of each to root, in the order of ranks.
	 *
	 * @param sendbuf    what is sent
	 * @param sendoffset index of its first element
	 * @param sendcount  how many of sendtype
	 * @param sendtype   what
	 * @param recvbuf    where it goes, significant at root
	 * @param recvoffset index of its first element
	 * @param recvcount  room for so many of recvtype from each
	 * @param recvtype   what
	 * @param root       the rank that gets all
	 */
	public void Gather(
			Object sendbuf, int sendoffset, int sendcount, Datatype sendtype, Object recvbuf, int recvoffset, int recvcount, Datatype recvtype, int root) {
		checkRoot("Gather", root);
		collectives.gather(sendbuf, sendoffset, sendcount, sendtype, recvbuf, recvoffset, Parts.even(recvcount), recvtype, root);
	}

	/**
	 * As Gather, parts of different lengths.
	 *
	 * @param sendbuf    what is sent
	 * @param sendoffset index of its first element
	 * @param sendcount  how many of sendtype
	 * @param sendtype   what
	 * @param recvbuf    where it goes, significant at root
	 * @param recvoffset index of its first element
	 * @param recvcount  room for so many of recvtype from each rank
	 * @param displs     where the part of each begins, in extents of recvtype
	 * @param recvtype   what
	 * @param root       the rank that gets all
	 */
	public void Gatherv(Object sendbuf, int sendoffset, int sendcount, Datatype sendtype, Object recvbuf, int recvoffset, int[] recvcount, int[] displs,
			Datatype recvtype, int root) {
		checkRoot("Gatherv", root);
		if (root == group.self())
			checkCounts("Gatherv", recvcount, displs);
		collectives.gather(sendbuf, sendoffset, sendcount, sendtype, recvbuf, recvoffset, Parts.of(recvcount, displs), recvtype, root);
	}

	/**
	 * Brings a part of what root has to each, in the order of ranks.
	 *
	 * @param sendbuf    what is sent, significant at root
	 * @param sendoffset index of its first element
	 * @param sendcount  how many of sendtype to each
	 * @param sendtype   what
	 * @param recvbuf    where it goes
	 * @param recvoffset index of its first element
	 * @param recvcount  room for so many of recvtype
	 * @param recvtype   what
	 * @param root       the rank that has it
	 */
	public void Scatter(
			Object sendbuf, int sendoffset, int sendcount, Datatype sendtype, Object recvbuf, int recvoffset, int recvcount, Datatype recvtype, int root) {
		checkRoot("Scatter", root);
		collectives.scatter(sendbuf, sendoffset, Parts.even(sendcount), sendtype, recvbuf, recvoffset, recvcount, recvtype, root);
	}

	/**
	 * As Scatter, parts of different lengths.
	 *
	 * @param sendbuf    what is sent, significant at root
	 * @param sendoffset index of its first element
	 * @param sendcount  how many of sendtype to each rank
	 * @param displs     where the part of each begins, in extents of sendtype
	 * @param sendtype   what
	 * @param recvbuf    where it goes
	 * @param recvoffset index of its first element
	 * @param recvcount  room for so many of recvtype
	 * @param recvtype   what
	 * @param root       the rank that has it
	 */
	public void Scatterv(Object sendbuf, int sendoffset, int[] sendcount, int[] displs, Datatype sendtype, Object recvbuf, int recvoffset, int recvcount,
			Datatype recvtype, int root) {
		checkRoot("Scatterv", root);
		if (root == group.self())
			checkCounts("Scatterv", sendcount, displs);
		collectives.scatter(sendbuf, sendoffset, Parts.of(sendcount, displs), sendtype, recvbuf, recvoffset, recvcount, recvtype, root);
	}

	/**
	 * Brings a part of each to all, in the order of ranks.
	 *
	 * @param sendbuf    what is sent
	 * @param sendoffset index of its first element
	 * @param sendcount  how many of sendtype
	 * @param sendtype   what
	 * @param recvbuf    where it goes
	 * @param recvoffset index of its first element
	 * @param recvcount  room for so many of recvtype from each
	 * @param recvtype   what
	 */
	public void Allgather(Object sendbuf, int sendoffset, int sendcount, Datatype sendtype, Object recvbuf, int recvoffset, int recvcount, Datatype recvtype) {
		check("Allgather");
		collectives.allgather(sendbuf, sendoffset, sendcount, sendtype, recvbuf, recvoffset, recvcount, recvtype);
	}

	/**
	 * As Allgather, parts of different lengths.
	 *
	 * @param sendbuf    what is sent
	 * @param sendoffset index of its first element
	 * @param sendcount  how many of sendtype
	 * @param sendtype   what
	 * @param recvbuf    where it goes
	 * @param recvoffset index of its first element
	 * @param recvcount  room for so many of recvtype from each rank
	 * @param displs     where the part of each begins, in extents of recvtype
	 * @param recvtype   what
	 */
	public void Allgatherv(Object sendbuf, int sendoffset, int sendcount, Datatype sendtype, Object recvbuf, int recvoffset, int[] recvcount, int[] displs,
			Datatype recvtype) {
		check("Allgatherv");
		checkCounts("Allgatherv", recvcount, displs);
		collectives.allgather(sendbuf, sendoffset, sendcount, sendtype, recvbuf, recvoffset, Parts.of(recvcount, displs), recvtype);
	}

	/**
	 * Brings a part of each to each.
	 *
	 * @param sendbuf    what is sent
	 * @param sendoffset index of its first element
	 * @param sendcount  how many of sendtype to each
	 * @param sendtype   what
	 * @param recvbuf    where it goes
	 * @param recvoffset index of its first element
	 * @param recvcount  room for so many of recvtype from each
	 * @param recvtype   what
	 */
	public void Alltoall(Object sendbuf, int sendoffset, int sendcount, Datatype sendtype, Object recvbuf, int recvoffset, int recvcount, Datatype recvtype) {
		check("Alltoall");
		collectives.alltoall(sendbuf, sendoffset, Parts.even(sendcount), sendtype, recvbuf, recvoffset, Parts.even(recvcount), recvtype);
	}

	/**
	 * As Alltoall, parts of different lengths.
	 *
	 * @param sendbuf    what is sent
	 * @param sendoffset index of its first element
	 * @param sendcount  how many of sendtype to each rank
	 * @param sdispls    where the part for each begins, in extents of sendtype
	 * @param sendtype   what
	 * @param recvbuf    where it goes
	 * @param recvoffset index of its first element
	 * @param recvcount  room for so many of recvtype from each rank
	 * @param rdispls    where the part of each begins, in extents of recvtype
	 * @param recvtype   what
	 */
	public void Alltoallv(Object sendbuf, int sendoffset, int[] sendcount, int[] sdispls, Datatype sendtype, Object recvbuf, int recvoffset, int[] recvcount,
			int[] rdispls, Datatype recvtype) {
		check("Alltoallv");
		checkCounts("Alltoallv", sendcount, sdispls);
		checkCounts("Alltoallv", recvcount, rdispls);
		collectives.alltoall(sendbuf, sendoffset, Parts.of(sendcount, sdispls), sendtype, recvbuf, recvoffset, Parts.of(recvcount, rdispls), recvtype);
	}

	/**
	 * Combines the operands of all processes, in the order of ranks.
	 *
	 * @param sendbuf    the operands of the calling process
	 * @param sendoffset index of the first one
	 * @param recvbuf    where the result goes, significant at root
	 * @param recvoffset index of its first element
	 * @param count      how many of datatype
	 * @param datatype   what
	 * @param op         how
	 * @param root       the rank that gets the result
	 */
	public void Reduce(Object sendbuf, int sendoffset, Object recvbuf, int recvoffset, int count, Datatype datatype, Op op, int root) {
		checkRoot("Reduce", root);
		collectives.reduce(sendbuf, sendoffset, recvbuf, recvoffset, count, datatype, op, root);
	}

	/**
	 * As Reduce, and all get the result, the same bits.
	 *
	 * @param sendbuf    the operands of the calling process
	 * @param sendoffset index of the first one
	 * @param recvbuf    where the result goes
	 * @param recvoffset index of its first element
	 * @param count      how many of datatype
	 * @param datatype   what
	 * @param op         how
	 */
	public void Allreduce(Object sendbuf, int sendoffset, Object recvbuf, int recvoffset, int count, Datatype datatype, Op op) {
		check("Allreduce");
		collectives.allreduce(sendbuf, sendoffset, recvbuf, recvoffset, count, datatype, op);
	}

	/**
	 * As Reduce, and each gets a part of the result.
	 *
	 * @param sendbuf    the operands of the calling process
	 * @param sendoffset index of the first one
	 * @param recvbuf    where the result goes
	 * @param recvoffset index of its first element
	 * @param recvcounts how many of datatype each rank gets
	 * @param datatype   what
	 * @param op         how
	 */
	public void Reduce_scatter(Object sendbuf, int sendoffset, Object recvbuf, int recvoffset, int[] recvcounts, Datatype datatype, Op op) {
		check("Reduce_scatter");
		checkCounts("Reduce_scatter", recvcounts, recvcounts);
		collectives.reduceScatter(sendbuf, sendoffset, recvbuf, recvoffset, recvcounts, datatype, op);
	}

	/**
	 * Combines the operands of the ranks up to the calling one.
	 *
	 * @param sendbuf    the operands of the calling process
	 * @param sendoffset index of the first one
	 * @param recvbuf    where the result goes
	 * @param recvoffset index of its first element
	 * @param count      how many of datatype
	 * @param datatype   what
	 * @param op         how
	 */
	public void Scan(Object sendbuf, int sendoffset, Object recvbuf, int recvoffset, int count, Datatype datatype, Op op) {
		check("Scan");
		collectives.scan(sendbuf, sendoffset, recvbuf, recvoffset, count, datatype, op);
	}

	/**
	 * A communicator with a grid (MPI 4.0, section 8.5.1).
	 *
	 * @param dims    the number of processes of each dimension
	 * @param periods which dimensions are periodic
	 * @param reorder without effect: ranks stay
	 * @return the new communicator; null at processes for which the grid has no room
	 */
	public Cartcomm Create_cart(int[] dims, boolean[] periods, boolean reorder) {
		check("Create_cart");
		int cells = Cartcomm.cells("Create_cart", dims, periods, group.ranks.length);
		Intracomm part = first(cells);
		return part == null ? null : new Cartcomm(part, dims.clone(), periods.clone());
	}

	/**
	 * A communicator with a graph (MPI 4.0, section 8.5.3).
	 *
	 * @param index   entry i: how many neighbours nodes 0 to i have together
	 * @param edges   the neighbours of all nodes
	 * @param reorder without effect: ranks stay
	 * @return the new communicator; null at processes for which the graph has no node
	 */
	public Graphcomm Create_graph(int[] index, int[] edges, boolean reorder) {
		check("Create_graph");
		Graphcomm.check(index, edges, group.ranks.length);
		Intracomm part = first(index.length);
		return part == null ? null : new Graphcomm(part, index.clone(), edges.clone());
	}
}
