// SPDX-License-Identifier: MIT
package xxdev.ibvdev;

import java.util.Arrays;
import java.util.BitSet;
import java.util.List;

/** Which of our classes were announced to a peer. See {@link ObjectCodec}. Any thread. */
final class OutgoingClasses {
	/** What an announcement may have at most, so that it can leave as one packet. */
	private static final int ANNOUNCEMENT_BYTES = 12000;

	private final int peer;
	private final BitSet announced = new BitSet();
	/** Announcements sent so far. */
	private int announcements;

	OutgoingClasses(int peer) {
		this.peer = peer;
	}

	/**
	 * Announces the classes that the peer does not know, in front of the message that uses them. Those for which that cannot be done now
	 * are described in the message itself, behind its end.
	 *
	 * @return how many announcements the receiver of the message must take in
	 */
	synchronized int announce(long endpoint, List<Descriptor> used, ByteSink message) {
		int next = 0;
		while ((next = firstUnknown(used, next)) < used.size()) {
			ByteSink announcement = new ByteSink();
			int end = collect(used, next, announcement);
			byte[] bytes = Arrays.copyOf(announcement.array(), announcement.size());
			int sent = Native.sendAtOnce(endpoint, bytes, peer, 0, IBVDevice.OWN_CONTEXT, Word.DESCRIPTORS);
			if (sent < 0)
				throw Errors.of(sent, "describing classes to rank " + peer);
			for (int i = next; i < end && sent > 0; i++)
				announced.set(used.get(i).id);
			announcements += sent;
			if (sent == 0)
				message.write(bytes, 0, bytes.length);
			next = end;
		}
		return announcements;
	}

	private int firstUnknown(List<Descriptor> used, int from) {
		int i = from;
		while (i < used.size() && announced.get(used.get(i).id))
			i++;
		return i;
	}

	/** The descriptions of unknown ones from there on, as many as fit; the index behind them. */
	private int collect(List<Descriptor> used, int from, ByteSink to) {
		int i = from;
		for (; i < used.size(); i++) {
			Descriptor descriptor = used.get(i);
			if (announced.get(descriptor.id))
				continue;
			if (to.size() > 0 && to.size() + 8 + descriptor.bytes.length > ANNOUNCEMENT_BYTES)
				break;
			to.writeInt(descriptor.id);
			to.writeInt(descriptor.bytes.length);
			to.write(descriptor.bytes, 0, descriptor.bytes.length);
		}
		return i;
	}
}
