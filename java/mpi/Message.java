// SPDX-License-Identifier: MIT
package mpi;

import xxdev.ibvdev.MatchedMessage;

/**
 * A message that {@link Comm#Mprobe} or {@link Comm#Improbe} has matched (MPI 4.0, section 3.8.2): no other receive or probe finds it, and it must be received by Mrecv or
 * Imrecv, once. Any thread may do that.
 *
 * <p>mpiJava 1.2 and MPJ Express have no matched probe. The names are those of the standard in the manner of mpiJava; that the communicator's probe returns the message is
 * how mpi4py has it, and Open MPI's bindings for Java, whose names are {@code mProbe} and {@code mRecv}, have the other methods here as well.
 */
public class Message {
	private final Messages comm;
	/** Null: {@link MPI#MESSAGE_NO_PROC}. */
	private final MatchedMessage matched;
	private final Status status;

	/** MESSAGE_NO_PROC. */
	Message() {
		this(MPI.COMM_NULL, null, Status.ofNull());
	}

	Message(Messages comm, MatchedMessage matched, Status status) {
		this.comm = comm;
		this.matched = matched;
		this.status = status;
	}

	/**
	 * What the probe found.
	 *
	 * @return source, tag and length of the message
	 */
	public Status Status() {
		return status;
	}

	/**
	 * Has its receive begun?
	 *
	 * @return true: nothing is left to receive; of {@link MPI#MESSAGE_NO_PROC} always false
	 */
	public boolean Is_null() {
		return matched != null && matched.isReceived();
	}

	/**
	 * Receives it (MPI 4.0, section 3.8.3); blocks. {@link MPI#MESSAGE_NO_PROC} leaves buf as it is. If an argument is refused the message is still there; if it is longer than buf that is an
	 * error, it is gone, and buf is unchanged.
	 *
	 * @param buf      an array or java.nio buffer of the datatype's elements, or an Object[]
	 * @param offset   index of the first element
	 * @param count    room for so many of datatype
	 * @param datatype what
	 * @return what came
	 */
	public Status Mrecv(Object buf, int offset, int count, Datatype datatype) {
		return start("Mrecv", buf, offset, count, datatype).Wait();
	}

	/**
	 * Starts to receive it (MPI 4.0, section 3.8.3); does not block. buf belongs to it until the request is complete. It cannot be cancelled.
	 *
	 * @param buf      an array or java.nio buffer of the datatype's elements, or an Object[]
	 * @param offset   index of the first element
	 * @param count    room for so many of datatype
	 * @param datatype what
	 * @return the operation
	 */
	public Request Imrecv(Object buf, int offset, int count, Datatype datatype) {
		return start("Imrecv", buf, offset, count, datatype);
	}

	private Request start(String operation, Object buf, int offset, int count, Datatype datatype) {
		Request request = new Request(comm);
		comm.startMatched(request, operation, matched, buf, offset, count, datatype);
		return request;
	}
}
