// SPDX-License-Identifier: MIT
package xxdev.ibvdev;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InvalidClassException;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicReferenceArray;
import xxdev.XXDevException;

/**
 * Objects to bytes and back. A message of objects is
 *
 * <pre>
 *   [serializer: 4 bytes, big-endian] [announcements: 4 bytes] [what the serializer wrote]
 * </pre>
 *
 * Java serialization describes each class in each stream. Here a stream has numbers instead, a process's own for its classes, and a peer is told once what
 * a number means, by an <i>announcement</i>: a message in a context of the device's own ({@link IBVDevice#OWN_CONTEXT}) with
 * <pre>
 *   { [number] [length] [the descriptor as ObjectOutputStream writes it] } ...
 * </pre>
 *
 * <b>Rules.</b> (1) Before a message that uses a number is sent to a peer, an announcement of it has been sent to that peer; both under one lock for each
 * peer. (2) The message says how many announcements the peer had been sent by then. (3) Who decodes a message first takes in as many announcements of its sender.
 *
 * <p><b>Why it holds.</b> The envelopes of one sender arrive in the order of its sends, so at a receiver that has a message the envelopes of the announcements it needs
 * have arrived, and a receive for them matches at once. It does not matter in which order messages are received, by which thread, by wildcards, after a probe, or whether
 * they are dropped (cancelled, freed, received into something that does not fit): announcements are in no message that
 * could get lost, and are counted. An announcement that cannot leave eagerly (a full window) is a rendezvous and needs its sender's progress: then
 * the sends behind it are not complete before it is, as if they were rendezvous themselves; they are until then in the library, or will ask again.
 *
 * <p>A class whose descriptor is large, and classes beyond 65,535, have no number and are described in each message. Numbers are towards all peers the same,
 * so a message is serialized without a lock and without regard to who gets it. Any thread.
 */
final class ObjectCodec {
	private static final int HEADER_BYTES = 8;
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
			sink.putInt(4, serializer != null ? 0 : outgoing(peer).announce(endpoint, encoder.used()));
		}

		/** For the next message. */
		void giveBack() {
			if (sink.array().length <= KEPT_BYTES)
				packers.add(this);
		}
	}

	private final IBVDevice device;
	private final Descriptors descriptors = new Descriptors();
	private final AtomicReferenceArray<OutgoingClasses> outgoing;
	private final AtomicReferenceArray<IncomingClasses> incoming;
	private final Queue<Packer> packers = new ConcurrentLinkedQueue<>();
	private final Queue<Decoder> decoders = new ConcurrentLinkedQueue<>();
	private final Serializer serializer;
	private final int serializerId;
	final Limits limits;

	ObjectCodec(IBVDevice device, int size, Limits limits, Serializer serializer) {
		this.device = device;
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
			outgoing.compareAndSet(peer, null, new OutgoingClasses(device, peer));
			classes = outgoing.get(peer);
		}
		return classes;
	}

	private IncomingClasses incoming(int peer) {
		IncomingClasses classes = incoming.get(peer);
		if (classes == null) {
			incoming.compareAndSet(peer, null, new IncomingClasses(device, peer));
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
			throw new XXDevException(operation + ": the object cannot be serialized: " + e, e);
		} catch (StackOverflowError e) {
			throw new XXDevException(operation + ": the object cannot be serialized: it is nested too deep for this thread's stack (-Xss)", e);
		}
	}

	/** What a send to that peer must wait for besides its own message; null as a rule. */
	IBVRequest unfinished(int peer) {
		OutgoingClasses classes = outgoing.get(peer);
		return classes == null ? null : classes.unfinished();
	}

	/** Is everything here that the message needs? Blocks for it if it may. */
	boolean ready(long endpoint, int source, byte[] message, boolean block) {
		int needed = message.length < HEADER_BYTES ? 0 : ByteSink.getInt(message, 4);
		return needed <= 0 || incoming(source).ready(endpoint, needed, block);
	}

	/** Deserializes a message that is ready. */
	Object[] unpack(String operation, int source, byte[] message, int count) {
		if (message.length < HEADER_BYTES || count < 0 || count > (serializer == null ? message.length - HEADER_BYTES : limits.array))
			throw new XXDevException(operation + ": " + count + " objects in " + message.length + " bytes: not a message of this device");
		int id = ByteSink.getInt(message, 0);
		if (id != serializerId)
			throw new XXDevException(operation + ": the sender serialized by " + (id == 0 ? "Java serialization" : "a class of its own")
				+ ", this process by " + (serializer == null ? "Java serialization" : serializer.getClass().getName())
				+ ": set the system property xxdev.serializer to the same in all processes");
		Decoder decoder = null;
		try {
			if (serializer != null)
				return custom(message, count);
			decoder = decoders.poll();
			if (decoder == null)
				decoder = Decoder.open(limits);
			Object[] objects = decoder.decode(message, HEADER_BYTES, message.length, count, incoming(source));
			if (message.length <= KEPT_BYTES)
				decoders.add(decoder);
			return objects;
		} catch (InvalidClassException e) {
			boolean filter = String.valueOf(e.getMessage()).contains("REJECTED");
			throw new XXDevException(operation + ": the message was " + (filter ? "rejected: " + decoder.rejection() : "not understood") + ": " + e, e);
		} catch (IOException | ClassNotFoundException | RuntimeException | LinkageError e) {
			throw new XXDevException(operation + ": the objects cannot be deserialized: " + e, e);
		} catch (StackOverflowError e) {
			throw new XXDevException(operation + ": the objects cannot be deserialized: they are nested too deep for this thread's stack (-Xss)", e);
		}
	}

	private Object[] custom(byte[] message, int count) throws IOException, ClassNotFoundException {
		Object[] objects = new Object[count];
		serializer.read(objects, count, new ByteArrayInputStream(message, HEADER_BYTES, message.length - HEADER_BYTES));
		return objects;
	}
}
