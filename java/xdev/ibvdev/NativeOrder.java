// SPDX-License-Identifier: MIT
package xdev.ibvdev;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import mpjbuf.BufferFactory;
import mpjbuf.NIOBuffer;
import mpjbuf.RawBuffer;

/**
 * MPJ Express's pool of buffers, with the buffers in the byte order of this machine.
 *
 * <p>The pool's own are big-endian, and to pack a double[] into one means to turn every number around, which takes longer
 * than all of the transfer. Each message states in which order it is (see {@link Envelope}), and the receiver's buffer takes
 * that order on; so buffers of both kinds, and ranks with and without this, go together.
 */
final class NativeOrder extends BufferFactory {
	/** Where MPJ Express keeps the pool; null if another version has no such field: then its order stays. */
	private static final VarHandle FACTORY = factoryField();

	private final BufferFactory pool;

	private NativeOrder(BufferFactory pool) {
		this.pool = pool;
	}

	private static VarHandle factoryField() {
		try {
			return MethodHandles.privateLookupIn(BufferFactory.class, MethodHandles.lookup())
					.findStaticVarHandle(BufferFactory.class, "factory", BufferFactory.class);
		} catch (ReflectiveOperationException e) {
			return null;
		}
	}

	/** From now on buffers of the pool have this machine's order. */
	static synchronized void install() {
		if (FACTORY == null || ByteOrder.nativeOrder() == ByteOrder.BIG_ENDIAN || !BufferFactory.initialized())
			return;
		BufferFactory now = (BufferFactory) FACTORY.getVolatile();
		if (!(now instanceof NativeOrder))
			FACTORY.setVolatile(new NativeOrder(now));
	}

	/** The pool is as it was: another device would not expect this order. */
	static synchronized void remove() {
		if (FACTORY == null)
			return;
		BufferFactory now = (BufferFactory) FACTORY.getVolatile();
		if (now instanceof NativeOrder)
			FACTORY.setVolatile(((NativeOrder) now).pool);
	}

	@Override
	public RawBuffer createBuffer(int bytes) {
		RawBuffer raw = pool.createBuffer(bytes);
		if (raw instanceof NIOBuffer)
			((NIOBuffer) raw).setEncoding(ByteOrder.nativeOrder());
		return raw;
	}

	@Override
	public void destroyBuffer(RawBuffer raw) {
		pool.destroyBuffer(raw);
	}

	@Override
	public void init() {
		pool.init();
	}

	@Override
	public void finalixe() {
		pool.finalixe();
	}
}
