// SPDX-License-Identifier: MIT
package xxdev.ibvdev;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;

/**
 * An alternative for turning objects into bytes than Java serialization. The system property {@code xxdev.serializer} names a class with a public constructor
 * without parameters; all processes of a job must name the same one, which each message is checked for. What it reads came from another
 * process: the filter of Java serialization ({@link Limits}) does not apply to it.
 *
 * <p>One object serves all threads at once. The streams are the device's: they need not be closed, and must not be used later.
 */
public interface Serializer {
	/**
	 * Writes objects.
	 *
	 * @param objects from here, null among them if the program sends null
	 * @param offset  the first
	 * @param count   how many
	 * @param out     to here; it never blocks
	 * @throws IOException if an object cannot be written; the send fails with it
	 */
	void write(Object[] objects, int offset, int count, OutputStream out) throws IOException;

	/**
	 * Reads what write has written, all of it.
	 *
	 * @param objects to here
	 * @param count   how many; from index 0
	 * @param in      from here; its end is the message's
	 * @throws IOException            if the bytes are not what write writes; the receive fails with it
	 * @throws ClassNotFoundException if a class is not here
	 */
	void read(Object[] objects, int count, InputStream in) throws IOException, ClassNotFoundException;
}
