// SPDX-License-Identifier: MIT
package xxdev.ibvdev;

import java.io.IOException;
import java.io.ObjectStreamClass;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * The numbers by which a process calls its classes, the same towards all peers, from 1. A class's number never changes. Any thread.
 */
final class Descriptors {
	private final Map<Class<?>, Descriptor> known = new ConcurrentHashMap<>();
	/** Classes that get no number: too large, or too many. */
	private final Map<Class<?>, Boolean> nameless = new HashMap<>();

	/** The class's, or null: it has none, so its description is part of each message. */
	Descriptor of(ObjectStreamClass model) throws IOException {
		Class<?> type = model.forClass();
		Descriptor descriptor = known.get(type);
		return descriptor != null ? descriptor : add(type, model);
	}

	private synchronized Descriptor add(Class<?> type, ObjectStreamClass model) throws IOException {
		Descriptor descriptor = known.get(type);
		if (descriptor != null || known.size() >= Descriptor.MAX_IDS - 1 || nameless.containsKey(type))
			return descriptor;
		descriptor = Descriptor.of(known.size() + 1, model);
		if (descriptor.bytes.length > Descriptor.MAX_BYTES) {
			nameless.put(type, true);
			return null;
		}
		known.put(type, descriptor);
		return descriptor;
	}
}
