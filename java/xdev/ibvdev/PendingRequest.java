// SPDX-License-Identifier: MIT
package xdev.ibvdev;

/** A request as {@link PendingRequests} keeps it, with the fields that it uses. For the devices of this jar only. */
public interface PendingRequest {
	/**
	 * Slot and generation.
	 *
	 * @return set once, before anybody else sees the request
	 */
	long handle();

	/**
	 * PendingRequests' own link.
	 *
	 * @return what setNext was given
	 */
	PendingRequest next();

	/**
	 * Keeps the link.
	 *
	 * @param next the next in its list
	 */
	void setNext(PendingRequest next);

	/**
	 * Has the library taken the request back?
	 *
	 * @return true after setConsumed
	 */
	boolean consumed();

	/** The library has taken the request back. */
	void setConsumed();

	/** The endpoint is gone: lets go of what the operation needed. */
	void abandon();
}
