// SPDX-License-Identifier: MIT
package xxdev;

/** What kind of failure an {@link XXDevException} reports. Later versions may add codes: treat one that you do not know as {@link #OTHER}. */
public enum ErrorCode {
	/** The message is longer than the receive. It is gone, later ones are not affected. The rank is the sender. */
	TRUNCATED,
	/** The message holds something else than the receive wants. It is gone, later ones are not affected. The rank is the sender. */
	TYPE_MISMATCH,
	/** A process has ended without {@link Device#finish}. The rank is that process, which need not be the one that the operation named. */
	PEER_DIED,
	/** The peer has finished in good order, and cannot answer any more. The rank is the peer. */
	PEER_LEFT,
	/** The connection to the rank could not be made, or has failed. */
	UNREACHABLE,
	/** Not all processes came in time ({@link Device#init}), or what was sent could not be delivered in time ({@link Device#finish}). */
	TIMEOUT,
	/** The memory of the process, or the heap of the JVM, does not suffice. */
	NO_MEMORY,
	/** More is open or registered at once than a limit allows. */
	LIMIT,
	/** An argument, the conf file or a setting is wrong. Nothing has happened. */
	BAD_ARGUMENT,
	/** Something is under way that must end first: operations at {@link Device#finish}, a wait at {@link Request#free}. Nothing has happened. */
	BUSY,
	/** The device is not open: not initialised, being finished, or finished. */
	CLOSED,
	/** The receive was cancelled. */
	CANCELLED,
	/** Objects cannot be serialized, or those of a message not be deserialized here. A message is gone. The rank is its sender. */
	SERIALIZATION,
	/** The arena of a MemorySegment was closed before the receive into it was complete. A message is gone, nothing was written. The rank is its sender. */
	BUFFER_CLOSED,
	/** The native library cannot be loaded. */
	NO_LIBRARY,
	/** Something else: the text describes it. */
	OTHER
}
