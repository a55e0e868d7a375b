// SPDX-License-Identifier: MIT
package xxdev.ibvdev;

import java.util.BitSet;
import java.util.List;
import xxdev.XXDevException;

/**
 * Which of our classes a peer has been told of. See {@link ObjectCodec}. Any thread.
 */
final class OutgoingClasses {
	private final IBVDevice device;
	private final int peer;
	private final BitSet told = new BitSet();
	/** Messages with descriptors sent so far. */
	private int announcements;
	/** The latest of those that are not complete, which asks for the ones before it; usually null. */
	private IBVRequest unfinished;

	OutgoingClasses(IBVDevice device, int peer) {
		this.device = device;
		this.peer = peer;
	}

	/**
	 * Describes the classes that the peer does not know, before the message that uses them is sent, in the same stream.
	 *
	 * @return how many announcements the receiver of that message needs
	 */
	synchronized int announce(long endpoint, List<Descriptor> used) {
		ByteSink message = null;
		for (Descriptor descriptor : used) {
			if (told.get(descriptor.id))
				continue;
			if (message == null)
				message = new ByteSink();
			message.writeInt(descriptor.id);
			message.writeInt(descriptor.bytes.length);
			message.write(descriptor.bytes, 0, descriptor.bytes.length);
		}
		if (message != null) {
			send(endpoint, message);
			for (Descriptor descriptor : used)
				told.set(descriptor.id);
			announcements++;
		}
		return announcements;
	}

	private void send(long endpoint, ByteSink message) {
		IBVRequest request = IBVRequest.internal(device, endpoint, "isend", peer);
		request.after(unfinished());
		request.handle = Native.isend(endpoint, message.array(), Native.BYTE, 0, message.size(), peer, 0, IBVDevice.OWN_CONTEXT,
			Word.DESCRIPTORS);
		if (Native.failed(request.handle))
			throw new XXDevException("describing classes to rank " + peer + ": " + Texts.last());
		device.pending.add(request);
		unfinished = request;
	}

	/**
	 * What a send must wait for besides its own message: an announcement that could not leave at once. Without this the receiver of a complete
	 * send might have to wait for its sender to come back into the library.
	 *
	 * @return null as a rule
	 */
	synchronized IBVRequest unfinished() {
		if (unfinished != null && unfinished.test() != null)
			unfinished = null;
		return unfinished;
	}
}
