// SPDX-License-Identifier: MIT
package xdev.ibvdev;

import java.nio.ByteBuffer;
import java.util.IdentityHashMap;
import java.util.Map;

/**
 * The direct buffers of one endpoint that adapters keep registered between messages. Each is referred to from here, so that it is not collected meanwhile.
 * For the devices of this jar only.
 *
 * <p>Nothing else is kept: an address alone does not show whose memory it is. A buffer can be freed by hand ({@code Unsafe.invokeCleaner}), and another one
 * can be mapped at its address, which an old registration would not reach.
 *
 * <p>Any thread.
 */
public final class RegisteredBuffers {
	/** Of a device that is not open. */
	public static final RegisteredBuffers NONE = new RegisteredBuffers(0);

	private final long endpoint;
	/** How often each was registered. */
	private final Map<ByteBuffer, Integer> buffers = new IdentityHashMap<>();

	/**
	 * None yet.
	 *
	 * @param endpoint whose adapters
	 */
	public RegisteredBuffers(long endpoint) {
		this.endpoint = endpoint;
	}

	/**
	 * Registers the memory of a direct buffer, from its first byte to its capacity.
	 *
	 * @param buffer the same object is to be released
	 * @return 1; 0: no adapter has a use for it; or a negative errno value, whose text the library has
	 */
	public synchronized int register(ByteBuffer buffer) {
		int rc = Native.register(endpoint, Native.address(buffer), buffer.capacity());
		if (rc > 0)
			buffers.merge(buffer, 1, Integer::sum);
		return rc;
	}

	/**
	 * Releases a buffer, once for each registration; one that is not registered is ignored.
	 *
	 * @param buffer what was registered
	 */
	public synchronized void release(ByteBuffer buffer) {
		Integer count = buffers.get(buffer);
		if (count == null)
			return;
		Native.unregister(endpoint, Native.address(buffer), buffer.capacity());
		if (count == 1)
			buffers.remove(buffer);
		else
			buffers.put(buffer, count - 1);
	}
}
