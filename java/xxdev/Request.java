// SPDX-License-Identifier: MIT
package xxdev;

import java.util.concurrent.TimeUnit;

/**
 * A non-blocking operation under way (F-MPJ 2009 and Expósito et al. 2015: what isend, issend, irecv and peek return).
 *
 * <p>Any thread may call any method at any time. A request that is complete and whose outcome was taken is null ({@link #isnull}); taking
 * the outcome again gives the same again. {@link Thread#interrupt} ends no wait; the thread's interrupt status is kept.
 */
public abstract class Request {
	/** For devices. */
	protected Request() {}

	/**
	 * Blocks until the operation is complete.
	 *
	 * @return its status
	 * @throws XXDevException if the operation failed, or was cancelled
	 */
	public abstract Status iwait();

	/**
	 * As {@link #iwait()}, with a time limit. If the time is over the request goes on as before: it can be waited for, tested or cancelled, and nothing is lost.
	 *
	 * @param timeout how long to wait; 0 or less: as {@link #test}
	 * @param unit    of timeout
	 * @return its status, or null if it is not complete
	 * @throws XXDevException if the operation failed, or was cancelled
	 */
	public abstract Status iwait(long timeout, TimeUnit unit);

	/**
	 * Asks whether the operation is complete, and drives it on. Does not block.
	 *
	 * @return its status, or null if it is not complete
	 * @throws XXDevException if the operation failed, or was cancelled
	 */
	public abstract Status test();

	/**
	 * Cancels a receive that has not matched a message.
	 *
	 * @return true: it will not get one, and iwait and test throw; false: it has matched, or is complete, or is a send
	 * @throws XXDevException if the device has been finished
	 */
	public abstract boolean cancel();

	/**
	 * Gives the request up: it goes on by itself, nobody will ask about it, and this object is null from now on. What it reads and
	 * writes must be left alone as before; of a receive into an array or of objects nothing will be seen.
	 *
	 * @throws XXDevException if another thread waits for it
	 */
	public abstract void free();

	/**
	 * Is there nothing left to wait for?
	 *
	 * @return true if the outcome was taken by iwait, test or iwaitany, or the request was freed
	 */
	public abstract boolean isnull();

	/**
	 * Blocks until one of the requests is complete, and takes its outcome. Of several that are complete any may be given.
	 *
	 * @param requests of one device; entries that are null or {@link #isnull} are passed over
	 * @return its status, whose {@link Status#index} is its position in the array; null if no entry is left
	 * @throws XXDevException if the operation of the one that is complete failed
	 */
	public static Status iwaitany(Request[] requests) {
		for (Request request : requests)
			if (request != null && !request.isnull())
				return request.waitany(requests);
		return null;
	}

	/**
	 * What {@link #iwaitany} does, for the device of this request.
	 *
	 * @param requests as iwaitany
	 * @return as iwaitany
	 */
	protected abstract Status waitany(Request[] requests);
}
