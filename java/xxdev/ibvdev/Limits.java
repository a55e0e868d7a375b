// SPDX-License-Identifier: MIT
package xxdev.ibvdev;

import java.io.ObjectInputFilter;

/**
 * What a received object stream may do. The filter asks, in this order: how deep objects are nested ({@code xxdev.maxdepth}), how long an array is
 * ({@code xxdev.maxarray} elements, and never longer than the message makes possible), how long the message is ({@code xxdev.maxbytes});
 * then the result of the JVM's own filter ({@code jdk.serialFilter}), with numbers that count from the start of the message. The
 * properties are read when the device is initialised.
 */
final class Limits {
	final int depth;
	final long array;
	final long bytes;

	/** From the system properties. */
	Limits() {
		depth = (int) property("xxdev.maxdepth", 1000, Integer.MAX_VALUE);
		array = property("xxdev.maxarray", 1 << 28, Integer.MAX_VALUE);
		bytes = property("xxdev.maxbytes", 1 << 30, Integer.MAX_VALUE - 16);
	}

	private static long property(String name, long standard, long largest) {
		String text = System.getProperty(name);
		if (text == null)
			return standard;
		try {
			long value = Long.parseLong(text.trim());
			if (value >= 1 && value <= largest)
				return value;
		} catch (NumberFormatException e) {
			/* reported below */
		}
		throw new IllegalArgumentException("system property " + name + " is \"" + text + "\": it must be a whole number from 1 to " + largest);
	}

	/** One decoder's filter. Its stream carries many messages, and the JVM's counters go on from one to the next. */
	final class Filter implements ObjectInputFilter {
		private final ObjectInputFilter jvm;
		private long messageBytes;
		private boolean first;
		private long bytesBefore;
		private long referencesBefore;
		/** Why the last stream was rejected; null: it was not, or by the JVM's filter. */
		private String reason;

		/** @param jvm the JVM's own, or null */
		Filter(ObjectInputFilter jvm) {
			this.jvm = jvm;
		}

		void begin(long length) {
			messageBytes = length;
			first = true;
			reason = null;
		}

		String reason() {
			return reason != null ? reason : "jdk.serialFilter does not allow it";
		}

		@Override
		public Status checkInput(FilterInfo info) {
			if (first) {
				first = false;
				bytesBefore = info.streamBytes();
				referencesBefore = info.references() - 1;
			}
			/* Every element takes a byte at least; tables of collections are a few times as long as what they hold. */
			long possible = 64 + 16 * messageBytes;
			if (info.depth() > depth)
				reason = "its objects are nested " + info.depth() + " deep, xxdev.maxdepth is " + depth;
			else if (info.arrayLength() > array)
				reason = "it has an array of " + info.arrayLength() + " elements, xxdev.maxarray is " + array;
			else if (info.arrayLength() > possible)
				reason = "it claims an array of " + info.arrayLength() + " elements in " + messageBytes + " bytes";
			else
				return jvm == null ? Status.UNDECIDED : jvm.checkInput(new Since(info, bytesBefore, referencesBefore));
			return Status.REJECTED;
		}
	}

	/** What has happened since the message began. */
	private static final class Since implements ObjectInputFilter.FilterInfo {
		private final ObjectInputFilter.FilterInfo all;
		private final long bytesBefore;
		private final long referencesBefore;

		Since(ObjectInputFilter.FilterInfo all, long bytesBefore, long referencesBefore) {
			this.all = all;
			this.bytesBefore = bytesBefore;
			this.referencesBefore = referencesBefore;
		}

		@Override
		public Class<?> serialClass() {
			return all.serialClass();
		}

		@Override
		public long arrayLength() {
			return all.arrayLength();
		}

		@Override
		public long depth() {
			return all.depth();
		}

		@Override
		public long references() {
			return all.references() - referencesBefore;
		}

		@Override
		public long streamBytes() {
			return all.streamBytes() - bytesBefore;
		}
	}
}
