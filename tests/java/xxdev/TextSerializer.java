// SPDX-License-Identifier: MIT
package xxdevtest;

import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import xxdev.ibvdev.Serializer;

/** A serializer that knows Integers and {@link Parcels.NotSerializable}. */
public final class TextSerializer implements Serializer {
	@Override
	public void write(Object[] objects, int offset, int count, OutputStream out) throws IOException {
		DataOutputStream data = new DataOutputStream(out);
		for (int i = offset; i < offset + count; i++)
			if (objects[i] instanceof Parcels.NotSerializable)
				data.writeUTF("it");
			else if (objects[i] instanceof Integer)
				data.writeUTF(objects[i].toString());
			else
				throw new IOException("what is " + objects[i] + "?");
	}

	@Override
	public void read(Object[] objects, int count, InputStream in) throws IOException {
		DataInputStream data = new DataInputStream(in);
		for (int i = 0; i < count; i++) {
			String text = data.readUTF();
			objects[i] = text.equals("it") ? new Parcels.NotSerializable() : Integer.valueOf(text);
		}
	}
}
