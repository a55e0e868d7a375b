// SPDX-License-Identifier: MIT
package xxdev.ibvdev;

import java.lang.reflect.Array;

/** Anything that a program sends, made ready for the natives. */
final class Message {
	/** As a count: the whole of it. */
	static final int ALL = -1;

	private final ArrayRef ref;
	/** Of objects; null: of something else. */
	final ObjectCodec.Packer packer;

	private Message(ArrayRef ref, ObjectCodec.Packer packer) {
		this.ref = ref;
		this.packer = packer;
	}

	/** Serializes objects; everything else stays where it is. */
	static Message of(ObjectCodec codec, String operation, Object buf, int offset, int count) {
		if (buf == null)
			throw Errors.argument(operation + ": the buffer is null: a null can be sent as an element of an Object[]");
		int kind = ArrayRef.kindOf(buf);
		if (kind >= 0)
			return new Message(array(kind, operation, buf, offset, count), null);
		if (buf instanceof String) {
			single(operation, buf, offset, count);
			return new Message(ArrayRef.text((String) buf), null);
		}
		ArrayRef ref = ArrayRef.of(operation, buf, offset, count, false);
		return ref != null ? new Message(ref, null) : objects(codec, operation, buf, offset, count);
	}

	static ArrayRef array(int kind, String operation, Object buf, int offset, int count) {
		int size = Array.getLength(buf);
		if (count == ALL)
			return ArrayRef.array(kind, buf, 0, size);
		ArrayRef.check(operation, buf, size, offset, count);
		return ArrayRef.array(kind, buf, offset, count);
	}

	/** Of objects, also where their class could travel as rows. */
	static Message objects(ObjectCodec codec, String operation, Object buf, int offset, int count) {
		boolean many = buf instanceof Object[];
		Object[] objects = many ? (Object[]) buf : new Object[] {buf};
		int from = many && count != ALL ? offset : 0;
		int number = many && count != ALL ? count : objects.length;
		if (many)
			ArrayRef.check(operation, buf, objects.length, from, number);
		else
			single(operation, buf, offset, count);
		ObjectCodec.Packer packer = codec.pack(operation, objects, from, number);
		return new Message(ArrayRef.packed(packer.sink.array(), packer.sink.size(), Word.objects(number)), packer);
	}

	private static void single(String operation, Object buf, int offset, int count) {
		if (count != ALL && (offset != 0 || count != 1))
			throw Errors.argument(operation + ": offset " + offset + ", count " + count + " of a single " + buf.getClass().getTypeName()
					+ ": only arrays and buffers have portions");
	}

	/** Where a receive puts things. */
	static ArrayRef target(ObjectCodec codec, String operation, Object buf, int offset, int count) {
		if (buf == null)
			throw Errors.argument(operation + ": the buffer is null");
		int kind = ArrayRef.kindOf(buf);
		if (kind >= 0)
			return array(kind, operation, buf, offset, count);
		ArrayRef ref = ArrayRef.of(operation, buf, offset, count, true);
		if (ref != null)
			return ref;
		if (!(buf instanceof Object[]))
			throw Errors.argument(operation + ": nothing can be received in a " + buf.getClass().getTypeName()
					+ ": name an array or a buffer; an object or String is received in an array of one element");
		Object[] objects = (Object[]) buf;
		return objectTarget(codec, operation, objects, count == ALL ? 0 : offset, count == ALL ? objects.length : count);
	}

	/** Where objects are received. */
	static ArrayRef objectTarget(ObjectCodec codec, String operation, Object[] objects, int from, int count) {
		ArrayRef.check(operation, objects, objects.length, from, count);
		return ArrayRef.objects(objects, from, count, codec.limits.bytes);
	}

	/** Announces to the receiver, if need be, what it must know first. Right before the message itself is sent. */
	ArrayRef addressed(long endpoint, int rank) {
		if (packer == null)
			return ref;
		packer.address(endpoint, rank);
		return ArrayRef.packed(packer.sink.array(), packer.sink.size(), ref.word);
	}

	/** After the send: the library reads it no more. */
	void sent() {
		if (packer != null)
			packer.giveBack();
	}
}
