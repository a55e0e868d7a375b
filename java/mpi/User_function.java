// SPDX-License-Identifier: MIT
package mpi;

/** An operation of the user's for reductions (MPI 4.0, section 6.9.5). */
public abstract class User_function {
	/** For subclasses. */
	public User_function() {}

	/**
	 * Computes inoutvec[i] = invec[i] op inoutvec[i]; invec comes from lower ranks. The arrays have the base type of the datatype; of a derived one
	 * its elements lie as it describes.
	 *
	 * @param invec       first operands
	 * @param inoffset    index of the first one
	 * @param inoutvec    second operands and results
	 * @param inoutoffset index of the first one
	 * @param count       how many of the datatype
	 * @param datatype    as the reduction names it
	 */
	public abstract void Call(Object invec, int inoffset, Object inoutvec, int inoutoffset, int count, Datatype datatype);
}
