// SPDX-License-Identifier: MIT
package mpi;

/**
 * The non-blocking part of {@link Intracomm} (MPI 4.0, section 6.12), by the names that MPJ Express's development branches use. All processes of the group begin the same operations, blocking and
 * non-blocking ones, in the same order; as many as wanted may be under way.
 *
 * <p>Buffers belong to an operation until its request is complete; the buffer that is received is written when the request is completed. Operations of basic types
 * by predefined operations go on without calls of this process; they take direct memory for what is sent and received. Those of objects, and by a {@link User_function}, are
 * executed in order by a thread of the communicator, which calls the function. Requests of collective operations cannot be cancelled; MPI.Finalize must come after all are
 * complete.
 */
abstract class NonBlocking extends Comm {
	NonBlocking(Group group, Group peers, long number) {
		super(group, peers, number);
	}

	abstract Collectives collectives();

	abstract void checkRoot(String operation, int root);

	abstract void checkCounts(String operation, int[] counts, int[] displs);

	/**
	 * Begins a {@link Intracomm#Barrier}; does not block.
	 *
	 * @return the operation
	 */
	public Request Ibarrier() {
		check("Ibarrier");
		return collectives().begin(all -> all.barrier());
	}

	/**
	 * Begins a {@link Intracomm#Bcast}; does not block.
	 *
	 * @param buf    an array or java.nio buffer of the datatype's elements, or an Object[]
	 * @param offset index of the first element
	 * @param count  how many of type
	 * @param type   what
	 * @param root   the rank that has it
	 * @return the operation
	 */
	public Request Ibcast(Object buf, int offset, int count, Datatype type, int root) {
		checkRoot("Ibcast", root);
		return collectives().begin(all -> all.bcast(buf, offset, count, type, root));
	}

	/**
	 * Begins a {@link Intracomm#Gather}; does not block.
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
	 * @return the operation
	 */
	public Request Igather(
			Object sendbuf, int sendoffset, int sendcount, Datatype sendtype, Object recvbuf, int recvoffset, int recvcount, Datatype recvtype, int root) {
		checkRoot("Igather", root);
		return collectives().begin(all -> all.gather(sendbuf, sendoffset, sendcount, sendtype, recvbuf, recvoffset, Parts.even(recvcount), recvtype, root));
	}

	/**
	 * Begins a {@link Intracomm#Gatherv}; does not block.
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
	 * @return the operation
	 */
	public Request Igatherv(Object sendbuf, int sendoffset, int sendcount, Datatype sendtype, Object recvbuf, int recvoffset, int[] recvcount, int[] displs,
			Datatype recvtype, int root) {
		checkRoot("Igatherv", root);
		if (root == group.self())
			checkCounts("Igatherv", recvcount, displs);
		return collectives().begin(
				all -> all.gather(sendbuf, sendoffset, sendcount, sendtype, recvbuf, recvoffset, Parts.of(recvcount, displs), recvtype, root));
	}

	/**
	 * Begins a {@link Intracomm#Scatter}; does not block.
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
	 * @return the operation
	 */
	public Request Iscatter(
			Object sendbuf, int sendoffset, int sendcount, Datatype sendtype, Object recvbuf, int recvoffset, int recvcount, Datatype recvtype, int root) {
		checkRoot("Iscatter", root);
		return collectives().begin(all -> all.scatter(sendbuf, sendoffset, Parts.even(sendcount), sendtype, recvbuf, recvoffset, recvcount, recvtype, root));
	}

	/**
	 * Begins a {@link Intracomm#Scatterv}; does not block.
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
	 * @return the operation
	 */
	public Request Iscatterv(Object sendbuf, int sendoffset, int[] sendcount, int[] displs, Datatype sendtype, Object recvbuf, int recvoffset, int recvcount,
			Datatype recvtype, int root) {
		checkRoot("Iscatterv", root);
		if (root == group.self())
			checkCounts("Iscatterv", sendcount, displs);
		return collectives().begin(
				all -> all.scatter(sendbuf, sendoffset, Parts.of(sendcount, displs), sendtype, recvbuf, recvoffset, recvcount, recvtype, root));
	}

	/**
	 * Begins a {@link Intracomm#Allgather}; does not block.
	 *
	 * @param sendbuf    what is sent
	 * @param sendoffset index of its first element
	 * @param sendcount  how many of sendtype
	 * @param sendtype   what
	 * @param recvbuf    where it goes
	 * @param recvoffset index of its first element
	 * @param recvcount  room for so many of recvtype from each
	 * @param recvtype   what
	 * @return the operation
	 */
	public Request Iallgather(
			Object sendbuf, int sendoffset, int sendcount, Datatype sendtype, Object recvbuf, int recvoffset, int recvcount, Datatype recvtype) {
		check("Iallgather");
		return collectives().begin(all -> all.allgather(sendbuf, sendoffset, sendcount, sendtype, recvbuf, recvoffset, recvcount, recvtype));
	}

	/**
	 * Begins a {@link Intracomm#Allgatherv}; does not block.
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
	 * @return the operation
	 */
	public Request Iallgatherv(Object sendbuf, int sendoffset, int sendcount, Datatype sendtype, Object recvbuf, int recvoffset, int[] recvcount, int[] displs,
			Datatype recvtype) {
		check("Iallgatherv");
		checkCounts("Iallgatherv", recvcount, displs);
		return collectives().begin(all -> all.allgather(sendbuf, sendoffset, sendcount, sendtype, recvbuf, recvoffset, Parts.of(recvcount, displs), recvtype));
	}

	/**
	 * Begins a {@link Intracomm#Alltoall}; does not block.
	 *
	 * @param sendbuf    what is sent
	 * @param sendoffset index of its first element
	 * @param sendcount  how many of sendtype to each
	 * @param sendtype   what
	 * @param recvbuf    where it goes
	 * @param recvoffset index of its first element
	 * @param recvcount  room for so many of recvtype from each
	 * @param recvtype   what
	 * @return the operation
	 */
	public Request Ialltoall(
			Object sendbuf, int sendoffset, int sendcount, Datatype sendtype, Object recvbuf, int recvoffset, int recvcount, Datatype recvtype) {
		check("Ialltoall");
		return collectives().begin(
				all -> all.alltoall(sendbuf, sendoffset, Parts.even(sendcount), sendtype, recvbuf, recvoffset, Parts.even(recvcount), recvtype));
	}

	/**
	 * Begins a {@link Intracomm#Alltoallv}; does not block.
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
	 * @return the operation
	 */
	public Request Ialltoallv(Object sendbuf, int sendoffset, int[] sendcount, int[] sdispls, Datatype sendtype, Object recvbuf, int recvoffset,
			int[] recvcount, int[] rdispls, Datatype recvtype) {
		check("Ialltoallv");
		checkCounts("Ialltoallv", sendcount, sdispls);
		checkCounts("Ialltoallv", recvcount, rdispls);
		return collectives().begin(
				all -> all.alltoall(sendbuf, sendoffset, Parts.of(sendcount, sdispls), sendtype, recvbuf, recvoffset, Parts.of(recvcount, rdispls), recvtype));
	}

	/**
	 * Begins a {@link Intracomm#Reduce}; does not block.
	 *
	 * @param sendbuf    the operands of the calling process
	 * @param sendoffset index of the first one
	 * @param recvbuf    where the result goes, significant at root
	 * @param recvoffset index of its first element
	 * @param count      how many of datatype
	 * @param datatype   what
	 * @param op         how
	 * @param root       the rank that gets the result
	 * @return the operation
	 */
	public Request Ireduce(Object sendbuf, int sendoffset, Object recvbuf, int recvoffset, int count, Datatype datatype, Op op, int root) {
		checkRoot("Ireduce", root);
		return collectives().begin(all -> all.reduce(sendbuf, sendoffset, recvbuf, recvoffset, count, datatype, op, root));
	}

	/**
	 * Begins a {@link Intracomm#Allreduce}; does not block.
	 *
	 * @param sendbuf    the operands of the calling process
	 * @param sendoffset index of the first one
	 * @param recvbuf    where the result goes
	 * @param recvoffset index of its first element
	 * @param count      how many of datatype
	 * @param datatype   what
	 * @param op         how
	 * @return the operation
	 */
	public Request Iallreduce(Object sendbuf, int sendoffset, Object recvbuf, int recvoffset, int count, Datatype datatype, Op op) {
		check("Iallreduce");
		return collectives().begin(all -> all.allreduce(sendbuf, sendoffset, recvbuf, recvoffset, count, datatype, op));
	}

	/**
	 * Begins a {@link Intracomm#Reduce_scatter}; does not block.
	 *
	 * @param sendbuf    the operands of the calling process
	 * @param sendoffset index of the first one
	 * @param recvbuf    where the result goes
	 * @param recvoffset index of its first element
	 * @param recvcounts how many of datatype each rank gets
	 * @param datatype   what
	 * @param op         how
	 * @return the operation
	 */
	public Request Ireduce_scatter(Object sendbuf, int sendoffset, Object recvbuf, int recvoffset, int[] recvcounts, Datatype datatype, Op op) {
		check("Ireduce_scatter");
		checkCounts("Ireduce_scatter", recvcounts, recvcounts);
		return collectives().begin(all -> all.reduceScatter(sendbuf, sendoffset, recvbuf, recvoffset, recvcounts, datatype, op));
	}

	/**
	 * Begins a {@link Intracomm#Scan}; does not block.
	 *
	 * @param sendbuf    the operands of the calling process
	 * @param sendoffset index of the first one
	 * @param recvbuf    where the result goes
	 * @param recvoffset index of its first element
	 * @param count      how many of datatype
	 * @param datatype   what
	 * @param op         how
	 * @return the operation
	 */
	public Request Iscan(Object sendbuf, int sendoffset, Object recvbuf, int recvoffset, int count, Datatype datatype, Op op) {
		check("Iscan");
		return collectives().begin(all -> all.scan(sendbuf, sendoffset, recvbuf, recvoffset, count, datatype, op));
	}
}
