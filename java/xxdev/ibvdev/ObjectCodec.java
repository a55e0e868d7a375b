// SPDX-License-Identifier: MIT
package xxdev.ibvdev;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InvalidClassException;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicReferenceArray;

/**
 * Objects to bytes and back. A message of objects is
 *
 * <pre>
 *   [serializer: 4 bytes, big-endian] [announcements: 4] [length: 4] [so much of what the serializer wrote] [descriptions]
 *   descriptions: { [number: 4] [length: 4] [a class's descriptor as ObjectOutputStream writes it] } ...
 * </pre>
 *
 * Java serialization describes each class in each stream. Here a stream has numbers instead, a process's own for its classes; they are the same towards
 * all peers, and what a number means never changes. A peer learns it once, by an <i>announcement</i>: descriptions as a message of their own, in a
 * context that is the device's ({@link IBVDevice#OWN_CONTEXT}).
 *
 * <p><b>Rules.</b> (1) A message that uses numbers that were not announced to the peer is preceded by an announcement of them in the same stream, if that can leave eagerly at once
 * (it waits for nobody, and is no request); else the message itself has the descriptions, and the next message tries again. Deciding, announcing and counting are
 * under one lock for each peer. (2) The message states how many announcements had been sent to the peer by then. (3) The receiver first takes in as many of its
 * sender's announcements, and the message's own descriptions.
 *
 * <p><b>Why it holds.</b> The packets of one sender arrive in the order in which they left, so a rank that has a message finds the announcements that it needs among
 * the unexpected messages, complete. It does not matter in which order messages are received, by which thread, by wildcards, after a probe, or whether they are dropped (cancelled,
 * freed, received into something that does not fit): announcements are in no message that could get lost, and are counted. Descriptions inside a
 * message are repeated until an announcement has left, so nothing depends on that message either. No send waits for more than without all this,
 * and no receive for more than its message. If a message is dropped, the announcements in front of it stay with the unexpected messages until the next: a
 * few hundred bytes for each class, once.
 *
 * <p>A class whose descriptor is large, and classes beyond 65,535, have no number; they are described in the stream each time. Any thread.
 */
final class ObjectCodec {
	private static final int HEADER_BYTES = 12;
	/** Streams that have carried more than this are given to the collector: their tables are as large as their largest message. */
	private static final int KEPT_BYTES = 1 << 20;

	/** What turns one message at a time into bytes; used again. */
	final class Packer {
		final ByteSink sink = new ByteSink();
		private Encoder encoder;

		private void pack(Object[] objects, int from, int count) throws IOException {
			sink.restart(HEADER_BYTES);
			if (serializer != null) {
				serializer.write(objects, from, count, sink);
				return;
			}
			if (encoder == null)
				encoder = new Encoder(sink, descriptors);
			encoder.encode(objects, from, count);
		}

		/** Makes the message ready for a peer. */
		void address(long endpoint, int peer) {
			sink.putInt(0, serializerId);
			sink.putInt(8, sink.size() - HEADER_BYTES);
			sink.putInt(4, serializer != null ? 0 : outgoing(peer).announce(endpoint, encoder.used(), sink));
		}

		/** For the next message. */
		void giveBack() {
			if (sink.array().length <= KEPT_BYTES)
				packers.add(this);
		}
	}

	private final Descriptors descriptors = new Descriptors();
	private final AtomicReferenceArray<OutgoingClasses> outgoing;
	private final AtomicReferenceArray<IncomingClasses> incoming;
	private final Queue<Packer> packers = new ConcurrentLinkedQueue<>();
	private final Queue<Decoder> decoders = new ConcurrentLinkedQueue<>();
	private final Serializer serializer;
	private final int serializerId;
	final Limits limits;

	ObjectCodec(int size, Limits limits, Serializer serializer) {
		this.limits = limits;
		this.serializer = serializer;
		serializerId = serializer == null ? 0 : serializer.getClass().getName().hashCode() | 1;
		outgoing = new AtomicReferenceArray<>(size);
		incoming = new AtomicReferenceArray<>(size);
	}

	/** The serializer that the system property names; null: Java's. */
	static Serializer serializer() {
		String name = System.getProperty("xxdev.serializer");
		if (name == null)
			return null;
		ClassLoader context = Thread.currentThread().getContextClassLoader();
		try {
			Class<?> type = Class.forName(name, true, context != null ? context : ObjectCodec.class.getClassLoader());
			return type.asSubclass(Serializer.class).getDeclaredConstructor().newInstance();
		} catch (ReflectiveOperationException | LinkageError | ClassCastException e) {
			throw new IllegalArgumentException("system property xxdev.serializer is \"" + name + "\", which cannot be used: " + e, e);
		}
	}

	private OutgoingClasses outgoing(int peer) {
		OutgoingClasses classes = outgoing.get(peer);
		if (classes == null) {
			outgoing.compareAndSet(peer, null, new OutgoingClasses(peer));
			classes = outgoing.get(peer);
		}
		return classes;
	}

	private IncomingClasses incoming(int peer) {
		IncomingClasses classes = incoming.get(peer);
		if (classes == null) {
			incoming.compareAndSet(peer, null, new IncomingClasses(peer));
			classes = incoming.get(peer);
		}
		return classes;
	}

	/** Serializes; give the packer back when its bytes have been sent. */
	Packer pack(String operation, Object[] objects, int from, int count) {
		Packer packer = packers.poll();
		if (packer == null)
			packer = new Packer();
		try {
			packer.pack(objects, from, count);
			return packer;
		} catch (IOException e) {
			throw Errors.objects(-1, operation + ": the object cannot be serialized: " + e, e);
		} catch (StackOverflowError e) {
			throw Errors.objects(-1, operation + ": the object cannot be serialized: it is nested too deep for this thread's stack (-Xss)", e);
		}
	}

	/** Deserializes a message. */
	Object[] unpack(long endpoint, String operation, int source, byte[] message, int count) {
		int stream = message.length < HEADER_BYTES ? -1 : ByteSink.getInt(message, 8);
		boolean possible = stream >= 0 && stream <= message.length - HEADER_BYTES;
		if (!possible || count < 0 || count > (serializer == null ? stream : limits.array))
			throw Errors.objects(source, operation + ": " + count + " objects in " + message.length + " bytes: not a message of this device", null);
		int id = ByteSink.getInt(message, 0);
		if (id != serializerId)
			throw Errors.objects(source,
					operation + ": the sender serialized by " + (id == 0 ? "Java serialization" : "a class of its own") + ", this process by "
							+ (serializer == null ? "Java serialization" : serializer.getClass().getName())
							+ ": set the system property xxdev.serializer to the same in all processes",
					null);
		if (serializer == null) {
			IncomingClasses classes = incoming(source);
			classes.takeIn(endpoint, ByteSink.getInt(message, 4));
			classes.enter(message, HEADER_BYTES + stream, message.length);
		}
		return deserialize(operation, source, message, HEADER_BYTES + stream, count);
	}

	private Object[] deserialize(String operation, int source, byte[] message, int end, int count) {
		Decoder decoder = null;
		try {
			if (serializer != null)
				return custom(message, end, count);
			decoder = decoders.poll();
			if (decoder == null)
				decoder = Decoder.open(limits);
			Object[] objects = decoder.decode(message, HEADER_BYTES, end, count, incoming(source));
			if (message.length <= KEPT_BYTES)
				decoders.add(decoder);
			return objects;
		} catch (InvalidClassException e) {
			boolean filter = String.valueOf(e.getMessage()).contains("REJECTED");
			throw Errors.objects(source, operation + ": the message was " + (filter ? "rejected: " + decoder.rejection() : "not understood") + ": " + e, e);
		} catch (IOException | ClassNotFoundException | RuntimeException | LinkageError e) {
			throw Errors.objects(source, operation + ": the objects cannot be deserialized: " + e, e);
		} catch (StackOverflowError e) {
			throw Errors.objects(source, operation + ": the objects cannot be deserialized: they are nested too deep for this thread's stack (-Xss)", e);
		}
	}

	private Object[] custom(byte[] message, int end, int count) throws IOException, ClassNotFoundException {
		Object[] objects = new Object[count];
		serializer.read(objects, count, new ByteArrayInputStream(message, HEADER_BYTES, end - HEADER_BYTES));
		return objects;
	}
}
