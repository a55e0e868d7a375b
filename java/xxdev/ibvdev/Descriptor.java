// SPDX-License-Identifier: MIT
package xxdev.ibvdev;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.io.ObjectStreamClass;
import java.io.StreamCorruptedException;

/**
 * What the receiver of an object must know of its class: name, serialVersionUID, fields. Of a sender's own class ({@link Descriptors}),
 * with its bytes, or as a receiver has it from those. Immutable, but for a memory of what class was found.
 */
final class Descriptor {
	/** Ids are below this; 0 is not one. */
	static final int MAX_IDS = 1 << 16;
	/** Longer ones are not worth a message of their own. */
	static final int MAX_BYTES = 8192;

	private static final class Resolved {
		final ClassLoader loader;
		final Class<?> type;

		Resolved(ClassLoader loader, Class<?> type) {
			this.loader = loader;
			this.type = type;
		}
	}

	final int id;
	final byte[] bytes;
	final ObjectStreamClass model;
	private volatile Resolved resolved;

	private Descriptor(int id, byte[] bytes, ObjectStreamClass model) {
		this.id = id;
		this.bytes = bytes;
		this.model = model;
	}

	/** A sender's. */
	static Descriptor of(int id, ObjectStreamClass model) throws IOException {
		return new Descriptor(id, encode(model), model);
	}

	/** A receiver's. */
	static Descriptor received(int id, byte[] from, int offset, int length) throws IOException {
		return new Descriptor(id, null, decode(from, offset, length));
	}

	/** The class of that loader that was found last time, or null. */
	Class<?> resolved(ClassLoader loader) {
		Resolved known = resolved;
		return known != null && known.loader == loader ? known.type : null;
	}

	void remember(ClassLoader loader, Class<?> type) {
		resolved = new Resolved(loader, type);
	}

	/** The JDK's own form, from a stream that has nothing else in it. */
	private static byte[] encode(ObjectStreamClass model) throws IOException {
		ByteSink sink = new ByteSink();
		class Writer extends ObjectOutputStream {
			Writer() throws IOException {
				super(sink);
				super.writeClassDescriptor(model);
				flush();
			}

			@Override
			protected void writeStreamHeader() {}
		}
		new Writer().flush();
		return java.util.Arrays.copyOf(sink.array(), sink.size());
	}

	private static ObjectStreamClass decode(byte[] from, int offset, int length) throws IOException {
		class Reader extends ObjectInputStream {
			ObjectStreamClass model;

			Reader() throws IOException {
				super(new ByteArrayInputStream(from, offset, length));
				try {
					model = super.readClassDescriptor();
				} catch (ClassNotFoundException e) {
					throw new IOException(e);
				}
				if (read() >= 0)
					throw new StreamCorruptedException("a class descriptor with something behind it");
			}

			@Override
			protected void readStreamHeader() {}
		}
		return new Reader().model;
	}
}
