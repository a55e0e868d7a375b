// SPDX-License-Identifier: MIT
package mpi;

/** What a request stands for if it is not a message: a collective operation that is under way. */
interface Pending {
	/** Completes it, or (block is false) tries to. True: it is complete. An exception: it is complete, and has failed. */
	boolean complete(boolean block);

	/** Nobody completes it any more; it ends as it would. */
	void abandon();
}
