// SPDX-License-Identifier: MIT
package xxdev.ibvdev;

import java.io.IOException;
import java.util.Arrays;
import xdev.ibvdev.ResultBlock;
import xxdev.XXDevException;

/** What a peer has announced of its classes. See {@link ObjectCodec}. Any thread. */
final class IncomingClasses implements Decoder.Names {
	private final int peer;
	/** By number. Replaced when it grows; written under the lock. */
	private volatile Descriptor[] known = new Descriptor[16];
	/** Announcements taken in; written after what they bring. */
	private volatile int taken;

	IncomingClasses(int peer) {
		this.peer = peer;
	}

	@Override
	public Descriptor get(int id) {
		Descriptor[] now = known;
		return id < now.length ? now[id] : null;
	}

	/** Takes in the first so many announcements. They have come, because the message that needs them came after them. */
	void takeIn(long endpoint, int needed) {
		if (taken >= needed)
			return;
		synchronized (this) {
			while (taken < needed) {
				byte[] announcement = fetch(endpoint);
				enter(announcement, 0, announcement.length);
				taken++;
			}
		}
	}

	private byte[] fetch(long endpoint) {
		ResultBlock result = ResultBlock.take();
		try {
			return fetch(endpoint, result);
		} finally {
			result.giveBack();
		}
	}

	private byte[] fetch(long endpoint, ResultBlock result) {
		long message = Native.improbe(endpoint, peer, Peers.ANY, IBVDevice.OWN_CONTEXT, result.address);
		if (message == 0)
			throw broken("it relies on descriptions of classes that it has not sent");
		long rc = Native.failed(message) ? message : Native.mrecv(endpoint, message, null, Native.BODY, 0, Integer.MAX_VALUE, Word.DESCRIPTORS, result.address);
		if (rc < 0)
			throw Errors.of(rc, "receiving descriptions of classes from rank " + peer);
		return Native.body(result.body(), (int) result.bytes());
	}

	/** Takes in descriptions: {@code { number, length, descriptor } ...}. */
	synchronized void enter(byte[] from, int start, int end) {
		for (int at = start; at < end;) {
			int left = end - at - 8;
			int id = left < 0 ? 0 : ByteSink.getInt(from, at);
			int length = left < 0 ? 0 : ByteSink.getInt(from, at + 4);
			if (left < 0 || id < 1 || id >= Descriptor.MAX_IDS || length < 0 || length > left)
				throw broken("a description of its classes is malformed");
			enter(id, from, at + 8, length);
			at += 8 + length;
		}
	}

	/** A number's meaning never changes, so what is known stays. */
	private void enter(int id, byte[] from, int offset, int length) {
		Descriptor[] now = known;
		if (id < now.length && now[id] != null)
			return;
		Descriptor descriptor;
		try {
			descriptor = Descriptor.received(id, from, offset, length);
		} catch (IOException e) {
			throw broken("a description of its classes cannot be read: " + e);
		}
		if (id >= now.length)
			now = Arrays.copyOf(now, Math.max(id + 1, 2 * now.length));
		now[id] = descriptor;
		known = now;
	}

	private XXDevException broken(String text) {
		return Errors.objects(peer, "objects from rank " + peer + ": " + text + ": are all processes of the job of one version?", null);
	}
}
