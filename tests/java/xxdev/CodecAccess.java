// SPDX-License-Identifier: MIT
package xxdev.ibvdev;

import java.util.Arrays;
import xxdev.Device;

/** Lets a test hand the codec bytes that no peer would send. */
public final class CodecAccess {
	private CodecAccess() {}

	/** The message of these objects, as it would go to that rank. */
	public static byte[] pack(Device device, int to, Object... objects) {
		IBVDevice own = (IBVDevice) device;
		ObjectCodec.Packer packer = own.codec().pack("pack", objects, 0, objects.length);
		packer.address(own.endpointHandle(), to);
		byte[] message = Arrays.copyOf(packer.sink.array(), packer.sink.size());
		packer.giveBack();
		return message;
	}

	/** Reads it by a codec that knows nothing of its sender yet. */
	public static Object[] unpack(Device device, int size, int source, byte[] message, int count) {
		return new ObjectCodec(size, new Limits(), null).unpack(((IBVDevice) device).endpointHandle(), "unpack", source, message, count);
	}
}
