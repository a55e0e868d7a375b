// SPDX-License-Identifier: MIT
package xdev.ibvdev;

import java.util.Map;
import xdev.Device;
import xdev.XDevException;

/**
 * From a device's name to the device. MPJ Express has a fixed list; here it is that list, ibvdev, and whatever
 * the system properties {@code mpj.device.<name>=<class>} name, which come first: they can also redirect a name that
 * mpjrun knows, as in {@code mpjrun.sh -dev niodev -Dmpj.device.niodev=xdev.ibvdev.IBVDevice}.
 */
public final class DeviceNames {
	private DeviceNames() {}

	/**
	 * Makes a new device.
	 *
	 * @param name as the third argument of MPI.Init gives it
	 * @return the device, not initialised
	 * @throws XDevException if the name is unknown, or its class cannot be loaded or is not a device
	 */
	public static Device create(String name) {
		Map<String, String> known = DeviceClasses.known();
		String type = name == null ? null : known.get(name);
		if (type == null)
			throw new XDevException(unknown(name, known));
		try {
			return Class.forName(type).asSubclass(Device.class).getDeclaredConstructor().newInstance();
		} catch (ReflectiveOperationException | LinkageError | ClassCastException e) {
			Throwable cause = e instanceof java.lang.reflect.InvocationTargetException ? e.getCause() : e;
			XDevException error =
					new XDevException("the device \"" + name + "\" is the class " + type + ", which cannot be used: " + cause + hint(name, cause));
			error.initCause(cause);
			throw error;
		}
	}

	private static String hint(String name, Throwable cause) {
		if (!(cause instanceof ClassNotFoundException || cause instanceof NoClassDefFoundError))
			return "";
		return name.equals("smpdev") ? ": mpj.jar does not hold it, add smpdev.jar to the class path" : ": add its jar to the class path";
	}

	private static String unknown(String name, Map<String, String> known) {
		String nearest = null;
		int least = 3;
		for (String candidate : known.keySet()) {
			int distance = distance(String.valueOf(name), candidate);
			if (distance < least) {
				least = distance;
				nearest = candidate;
			}
		}
		return "there is no device \"" + name + "\"" + (nearest == null ? "" : ", did you mean \"" + nearest + "\"?") + " Known are "
				+ String.join(", ", known.keySet()) + ", and native through MPI.Init. -D" + DeviceClasses.PREFIX + name + "=<class> adds one";
	}

	/** Levenshtein's. */
	private static int distance(String a, String b) {
		int[] row = new int[b.length() + 1];
		for (int j = 0; j <= b.length(); j++)
			row[j] = j;
		for (int i = 1; i <= a.length(); i++) {
			int diagonal = row[0];
			row[0] = i;
			for (int j = 1; j <= b.length(); j++) {
				int replace = diagonal + (a.charAt(i - 1) == b.charAt(j - 1) ? 0 : 1);
				diagonal = row[j];
				row[j] = Math.min(replace, Math.min(row[j], row[j - 1]) + 1);
			}
		}
		return row[b.length()];
	}
}
