// SPDX-License-Identifier: MIT
package xxdev.ibvdev;

import java.io.IOException;
import java.io.InputStream;
import java.io.ObjectInputStream;
import java.io.ObjectStreamClass;
import java.io.StreamCorruptedException;
import java.lang.reflect.Proxy;

/** Reads what {@link Encoder} writes, one message after the other. One thread at a time; after an exception it is of no use any more. */
final class Decoder extends ObjectInputStream {
	/** Makes the stream forget the objects of a message: a reset, and a null to be read behind it. */
	private static final byte[] FORGET = {TC_RESET, TC_NULL};

	/** The numbered descriptors of a message's sender. */
	interface Names {
		/** The sender's descriptor of that number, or null. */
		Descriptor get(int id);
	}

	/** What the stream reads from: another array for each message. */
	private static final class Feed extends InputStream {
		private byte[] bytes = FORGET;
		private int at;
		private int end;

		void set(byte[] from, int start, int stop) {
			bytes = from;
			at = start;
			end = stop;
		}

		@Override
		public int read() {
			return at < end ? bytes[at++] & 0xff : -1;
		}

		@Override
		public int read(byte[] to, int offset, int length) {
			if (at >= end)
				return length == 0 ? 0 : -1;
			int some = Math.min(length, end - at);
			System.arraycopy(bytes, at, to, offset, some);
			at += some;
			return some;
		}

		@Override
		public int available() {
			return end - at;
		}
	}

	private final Feed feed;
	private final Limits.Filter filter;
	private Names names;
	private ClassLoader loader;
	/** The one that readClassDescriptor gave last; resolveClass is asked about it next. */
	private Descriptor latest;

	private Decoder(Feed feed, Limits limits) throws IOException {
		super(feed);
		this.feed = feed;
		filter = limits.new Filter(getObjectInputFilter());
		setObjectInputFilter(filter);
	}

	static Decoder open(Limits limits) throws IOException {
		return new Decoder(new Feed(), limits);
	}

	/** Reads count objects, which have to be all there is. */
	Object[] decode(byte[] from, int start, int end, int count, Names sender) throws IOException, ClassNotFoundException {
		names = sender;
		ClassLoader context = Thread.currentThread().getContextClassLoader();
		loader = context != null ? context : Decoder.class.getClassLoader();
		feed.set(from, start, end);
		filter.begin(end - start);
		Object[] objects = new Object[count];
		for (int i = 0; i < count; i++)
			objects[i] = readObject();
		if (feed.available() != 0)
			throw new StreamCorruptedException(feed.available() + " bytes follow the last of " + count + " objects");
		feed.set(FORGET, 0, FORGET.length);
		readObject();
		names = null;
		loader = null;
		latest = null;
		feed.set(FORGET, 0, 0);
		return objects;
	}

	/** Why the filter refused. */
	String rejection() {
		return filter.reason();
	}

	@Override
	protected void readStreamHeader() {}

	@Override
	protected ObjectStreamClass readClassDescriptor() throws IOException, ClassNotFoundException {
		int id = readId();
		if (id == 0) {
			latest = null;
			return super.readClassDescriptor();
		}
		latest = names.get(id);
		if (latest == null)
			throw new StreamCorruptedException("class number " + id + ", which its sender has not described");
		return latest.model;
	}

	private int readId() throws IOException {
		int id = 0;
		for (int shift = 0; shift < 21; shift += 7) {
			int part = readUnsignedByte();
			id |= (part & 0x7f) << shift;
			if (part < 0x80)
				return id;
		}
		throw new StreamCorruptedException("a class number of more than three bytes");
	}

	@Override
	protected Class<?> resolveClass(ObjectStreamClass model) throws IOException, ClassNotFoundException {
		Descriptor described = latest != null && latest.model == model ? latest : null;
		Class<?> type = described == null ? null : described.resolved(loader);
		if (type == null) {
			type = find(model);
			if (described != null)
				described.remember(loader, type);
		}
		return type;
	}

	private Class<?> find(ObjectStreamClass model) throws IOException, ClassNotFoundException {
		try {
			return Class.forName(model.getName(), false, loader);
		} catch (ClassNotFoundException e) {
			return super.resolveClass(model); /* primitive types; classes that only our own loader knows */
		}
	}

	@Override
	@SuppressWarnings("deprecation") /* getProxyClass: newProxyInstance would want an object */
	protected Class<?> resolveProxyClass(String[] names) throws IOException, ClassNotFoundException {
		try {
			Class<?>[] interfaces = new Class<?>[ names.length ];
			for (int i = 0; i < names.length; i++)
				interfaces[i] = Class.forName(names[i], false, loader);
			return Proxy.getProxyClass(loader, interfaces);
		} catch (ClassNotFoundException | IllegalArgumentException e) {
			return super.resolveProxyClass(names);
		}
	}
}
