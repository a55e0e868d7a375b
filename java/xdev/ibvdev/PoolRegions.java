// SPDX-License-Identifier: MIT
package xdev.ibvdev;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.Set;
import mpjbuf.Buddy1Buffer;
import mpjbuf.Buddy1RegionFreeList;
import mpjbuf.RawBuffer;

/**
 * The regions of memory from which MPJ Express's pool cuts its buffers. The pool never frees a region, so an adapter registers each one once; buffers that
 * are not the pool's are registered for each message.
 */
final class PoolRegions {
	/** An adapter is not used for shorter messages. */
	static final int MIN_BYTES = 32768;

	/** Where the pool keeps a buffer's region; null if another version has no such fields: then nothing is kept. */
	private static final VarHandle LIST = field(Buddy1Buffer.class, "list", Buddy1RegionFreeList.class);
	private static final VarHandle MEMORY = field(Buddy1RegionFreeList.class, "memory", ByteBuffer.class);

	private final RegisteredBuffers registered;
	/** All regions seen, also those that could not be registered. */
	private final Set<ByteBuffer> seen = Collections.newSetFromMap(new IdentityHashMap<>());
	private volatile ByteBuffer last;
	/** There is no adapter. */
	private volatile boolean useless = LIST == null || MEMORY == null;

	PoolRegions(RegisteredBuffers registered) {
		this.registered = registered;
	}

	private static VarHandle field(Class<?> owner, String name, Class<?> type) {
		try {
			return MethodHandles.privateLookupIn(owner, MethodHandles.lookup()).findVarHandle(owner, name, type);
		} catch (ReflectiveOperationException e) {
			return null;
		}
	}

	/** A message of so many bytes from or to this buffer is about to start. */
	void use(RawBuffer buffer, int bytes) {
		if (bytes < MIN_BYTES || useless || !(buffer instanceof Buddy1Buffer))
			return;
		Object list = LIST.get((Buddy1Buffer) buffer);
		ByteBuffer region = list == null ? null : (ByteBuffer) MEMORY.get((Buddy1RegionFreeList) list);
		if (region != null && region != last && region.isDirect())
			add(region);
	}

	private synchronized void add(ByteBuffer region) {
		if (seen.add(region) && registered.register(region) == 0)
			useless = true;
		last = region;
	}
}
