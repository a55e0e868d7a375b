// SPDX-License-Identifier: MIT
package xxdev.ibvdev;

import java.util.concurrent.locks.ReentrantLock;
import xdev.ibvdev.ResultBlock;
import xxdev.XXDevException;

/**
 * What a peer has told us of its classes. See {@link ObjectCodec}. Any thread.
 */
final class IncomingClasses implements Decoder.Names {
	private final IBVDevice device;
	private final int peer;
	private final ReentrantLock lock = new ReentrantLock();
	/** By number. Grows, and is replaced then; written under the lock. */
	private volatile Descriptor[] known = new Descriptor[16];
	/** Announcements taken in; written after what they bring. */
	private volatile int taken;
	/** The announcement that has matched and is under way; null: none. */
	private IBVRequest arriving;

	IncomingClasses(IBVDevice device, int peer) {
		this.device = device;
		this.peer = peer;
	}

	@Override
	public Descriptor get(int id) {
		Descriptor[] now = known;
		return id < now.length ? now[id] : null;
	}

	/**
	 * Takes in the first so many announcements. Their envelopes have come, because the message that needs them came after them.
	 *
	 * @return false: one is still under way; only if it may not block
	 */
	boolean ready(long endpoint, int needed, boolean block) {
		if (taken >= needed)
			return true;
		if (block)
			lock.lock();
		else if (!lock.tryLock())
			return false;
		try {
			while (taken < needed)
				if (!take(endpoint, block))
					return false;
			return true;
		} finally {
			lock.unlock();
		}
	}

	private boolean take(long endpoint, boolean block) {
		if (arriving == null) {
			IBVRequest request = IBVRequest.internal(device, endpoint, "irecv", peer);
			request.handle = Native.irecv(endpoint, null, Native.BODY, 0, Integer.MAX_VALUE, peer, Peers.ANY, IBVDevice.OWN_CONTEXT,
				Word.DESCRIPTORS);
			if (Native.failed(request.handle))
				throw new XXDevException("receiving descriptions of classes from rank " + peer + ": " + Texts.last());
			device.pending.add(request);
			arriving = request;
		}
		ResultBlock result = ResultBlock.own();
		int rc = Native.test(endpoint, arriving.handle, null, Native.BODY, 0, Integer.MAX_VALUE, result.address);
		if (rc == 0 && Native.cancel(endpoint, arriving.handle) == 0) {
			Native.waitFor(endpoint, arriving.handle, null, Native.BODY, 0, Integer.MAX_VALUE, 0);
			forget();
			throw broken("it relies on descriptions of classes that it has not sent");
		}
		if (rc == 0) {
			if (!block)
				return false;
			rc = Native.waitFor(endpoint, arriving.handle, null, Native.BODY, 0, Integer.MAX_VALUE, result.address);
		}
		forget();
		if (rc < 0)
			throw new XXDevException("receiving descriptions of classes from rank " + peer + ": " + Texts.last());
		takeIn(Native.body(result.body(), (int) result.bytes()));
		taken++;
		return true;
	}

	private void forget() {
		device.pending.remove(arriving);
		arriving = null;
	}

	private void takeIn(byte[] message) {
		for (int at = 0; at < message.length;) {
			int left = message.length - at - 8;
			int id = left < 0 ? 0 : ByteSink.getInt(message, at);
			int length = left < 0 ? 0 : ByteSink.getInt(message, at + 4);
			if (left < 0 || id < 1 || id >= Descriptor.MAX_IDS || length < 0 || length > left)
				throw broken("a description of its classes is malformed");
			enter(id, message, at + 8, length);
			at += 8 + length;
		}
	}

	private void enter(int id, byte[] message, int offset, int length) {
		Descriptor descriptor;
		try {
			descriptor = Descriptor.received(id, message, offset, length);
		} catch (java.io.IOException e) {
			throw broken("a description of its classes cannot be read: " + e);
		}
		Descriptor[] now = known;
		if (id >= now.length)
			now = java.util.Arrays.copyOf(now, Math.max(id + 1, 2 * now.length));
		now[id] = descriptor;
		known = now;
	}

	private XXDevException broken(String text) {
		return new XXDevException("objects from rank " + peer + ": " + text + ": are all processes of the job of one version?");
	}
}
