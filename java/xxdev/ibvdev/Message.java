// SPDX-License-Identifier: MIT
package xxdev.ibvdev;

import java.lang.reflect.Array;
import xxdev.XXDevException;

/** Anything that a program sends, made ready for the natives. */
final class Message {
	/** As a count: the whole of it. */
	static final int ALL = -1;

	private final Place place;
	/** Of objects; null: of something else. */
	final ObjectCodec.Packer packer;

	private Message(Place place, ObjectCodec.Packer packer) {
		this.place = place;
		this.packer = packer;
	}

	/** Serializes objects; everything else stays where it is. */
	static Message of(ObjectCodec codec, String operation, Object buf, int offset, int count) {
		if (buf == null)
			throw new XXDevException(operation + ": the buffer is null: a null can be sent as an element of an Object[]");
		int kind = Place.kindOf(buf);
		if (kind >= 0)
			return new Message(array(kind, operation, buf, offset, count), null);
		if (buf instanceof String) {
			single(operation, buf, offset, count);
			return new Message(Place.text((String) buf), null);
		}
		Place place = Place.of(operation, buf, offset, count, false);
		return place != null ? new Message(place, null) : objects(codec, operation, buf, offset, count);
	}

	static Place array(int kind, String operation, Object buf, int offset, int count) {
		int size = Array.getLength(buf);
		if (count == ALL)
			return Place.array(kind, buf, 0, size);
		Place.check(operation, buf, size, offset, count);
		return Place.array(kind, buf, offset, count);
	}

	private static Message objects(ObjectCodec codec, String operation, Object buf, int offset, int count) {
		boolean many = buf instanceof Object[];
		Object[] objects = many ? (Object[]) buf : new Object[] {buf};
		int from = many && count != ALL ? offset : 0;
		int number = many && count != ALL ? count : objects.length;
		if (many)
			Place.check(operation, buf, objects.length, from, number);
		else
			single(operation, buf, offset, count);
		ObjectCodec.Packer packer = codec.pack(operation, objects, from, number);
		return new Message(Place.packed(packer.sink.array(), packer.sink.size(), Word.objects(number)), packer);
	}

	private static void single(String operation, Object buf, int offset, int count) {
		if (count != ALL && (offset != 0 || count != 1))
			throw new XXDevException(operation + ": offset " + offset + ", count " + count + " of a single " + buf.getClass().getTypeName()
				+ ": only arrays and buffers have portions");
	}

	/** Where a receive puts things. */
	static Place target(ObjectCodec codec, String operation, Object buf, int offset, int count) {
		if (buf == null)
			throw new XXDevException(operation + ": the buffer is null");
		int kind = Place.kindOf(buf);
		if (kind >= 0)
			return array(kind, operation, buf, offset, count);
		Place place = Place.of(operation, buf, offset, count, true);
		if (place != null)
			return place;
		if (!(buf instanceof Object[]))
			throw new XXDevException(operation + ": nothing can be received in a " + buf.getClass().getTypeName()
				+ ": name an array or a buffer; an object or String is received in an array of one element");
		Object[] objects = (Object[]) buf;
		int from = count == ALL ? 0 : offset;
		int number = count == ALL ? objects.length : count;
		Place.check(operation, buf, objects.length, from, number);
		return Place.objects(objects, from, number, codec.limits.bytes);
	}

	/** Tells the receiver, if need be, what it must know first. Right before the message itself is sent. */
	Place addressed(long endpoint, int rank) {
		if (packer == null)
			return place;
		packer.address(endpoint, rank);
		return Place.packed(packer.sink.array(), packer.sink.size(), place.word);
	}

	/** After the send: the library reads it no more. */
	void sent() {
		if (packer != null)
			packer.giveBack();
	}
}
