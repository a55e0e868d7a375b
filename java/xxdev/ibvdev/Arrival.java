// SPDX-License-Identifier: MIT
package xxdev.ibvdev;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import xdev.ibvdev.ResultBlock;
import xxdev.ErrorCode;
import xxdev.Status;
import xxdev.XXDevException;

/** Objects or a String that have come, as bytes. */
final class Arrival {
	private final String operation;
	private final ArrayRef ref;
	private final int source;
	private final int tag;
	private final long word;
	private final byte[] message;

	private Arrival(String operation, ArrayRef ref, int source, int tag, long word, byte[] message) {
		this.operation = operation;
		this.ref = ref;
		this.source = source;
		this.tag = tag;
		this.word = word;
		this.message = message;
	}

	/** Takes the message over from the library, which frees it. */
	static Arrival of(String operation, int context, ArrayRef ref, ResultBlock result) {
		long word = result.user();
		long bytes = result.bytes();
		int source = result.source();
		int tag = result.tag();
		int code = Word.code(word);
		boolean known = code == Word.OBJECT || code == Word.STRING;
		int count = known ? Word.count(word) : 0;
		if (!known || count < 0 || count > ref.count) {
			Native.release(result.body());
			throw new XXDevException(known ? ErrorCode.TRUNCATED : ErrorCode.TYPE_MISMATCH, source,
					Texts.operation(operation, "from", source, tag, context) + ": " + Texts.mismatch(word, bytes, ref));
		}
		byte[] message = result.body() == 0 ? new byte[0] : Native.body(result.body(), (int) bytes);
		return new Arrival(operation, ref, source, tag, word, message);
	}

	private boolean isString() {
		return Word.code(word) == Word.STRING;
	}

	/** Copies the objects to the array. */
	Status deliver(IBVDevice device, long endpoint, int context) {
		String what = Texts.operation(operation, "from", source, tag, context);
		Object[] objects = isString() ? new Object[] {text()} : device.codec().unpack(endpoint, what, source, message, Word.count(word));
		Object[] target = (Object[]) ref.buf;
		Class<?> element = target.getClass().getComponentType();
		for (Object object : objects)
			if (object != null && !element.isInstance(object))
				throw new XXDevException(ErrorCode.TYPE_MISMATCH, source,
						what + ": the message holds a " + object.getClass().getTypeName() + ", the receive has " + ref.text()
								+ "; the message is gone, the buffer is unchanged");
		System.arraycopy(objects, 0, target, ref.from, objects.length);
		return device.status(source, tag, word, message.length);
	}

	private String text() {
		if (!Word.wide(word))
			return new String(message, StandardCharsets.ISO_8859_1);
		return ByteBuffer.wrap(message).order(ByteOrder.nativeOrder()).asCharBuffer().toString();
	}

	/** What a String is sent as: a byte[] or char[]; nothing is lost, lone surrogates included. */
	static Object encoded(String text) {
		byte[] narrow = text.getBytes(StandardCharsets.ISO_8859_1);
		return new String(narrow, StandardCharsets.ISO_8859_1).equals(text) ? narrow : text.toCharArray();
	}
}
