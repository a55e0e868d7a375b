// SPDX-License-Identifier: MIT
package xxdev.ibvdev;

import java.io.IOException;
import java.io.ObjectOutputStream;
import java.io.ObjectStreamClass;
import java.util.ArrayList;
import java.util.List;

/**
 * An object stream that is used for one message after the other, each complete in itself but for the classes' descriptors: where one would stand
 * stands its number (7 bits a byte, low bits first, all but the last with bit 7 set), or 0 and the descriptor. One thread at a time.
 */
final class Encoder extends ObjectOutputStream {
	private final ByteSink sink;
	private final Descriptors descriptors;
	private final List<Descriptor> used = new ArrayList<>();

	Encoder(ByteSink sink, Descriptors descriptors) throws IOException {
		super(sink);
		this.sink = sink;
		this.descriptors = descriptors;
	}

	ByteSink sink() {
		return sink;
	}

	/** The numbers in the last message. */
	List<Descriptor> used() {
		return used;
	}

	/** Puts the objects behind what the sink has. After an exception this stream is of no use any more. */
	void encode(Object[] objects, int offset, int count) throws IOException {
		used.clear();
		for (int i = 0; i < count; i++)
			writeObject(objects[offset + i]);
		flush();
		int end = sink.size();
		reset(); /* lets go of the objects; what it writes is not part of the message */
		flush();
		sink.restart(end);
	}

	@Override
	protected void writeStreamHeader() {}

	@Override
	protected void writeClassDescriptor(ObjectStreamClass model) throws IOException {
		Descriptor descriptor = descriptors.of(model);
		if (descriptor == null) {
			writeByte(0);
			super.writeClassDescriptor(model);
			return;
		}
		int id = descriptor.id;
		for (; id > 0x7f; id >>>= 7)
			writeByte(id & 0x7f | 0x80);
		writeByte(id);
		used.add(descriptor);
	}
}
