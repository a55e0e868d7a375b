// SPDX-License-Identifier: MIT
package xdev.ibvdev;

import java.util.Map;
import java.util.TreeMap;

/** The classes behind the names of devices. Does without the classes of MPJ Express. */
final class DeviceClasses {
	static final String PREFIX = "mpj.device.";
	private static final Map<String, String> BUILT_IN = Map.of("ibvdev", "xdev.ibvdev.IBVDevice", "niodev", "xdev.niodev.NIODevice", "mxdev",
			"xdev.mxdev.MXDevice", "smpdev", "xdev.smpdev.SMPDevice", "hybdev", "xdev.hybdev.HYBDevice");

	private DeviceClasses() {}

	/** Is there a device of this name, the third argument of MPI.Init? */
	static boolean isKnown(String name) {
		return known().containsKey(name);
	}

	static Map<String, String> known() {
		Map<String, String> known = new TreeMap<>(BUILT_IN);
		for (String property : System.getProperties().stringPropertyNames())
			if (property.startsWith(PREFIX))
				known.put(property.substring(PREFIX.length()), System.getProperty(property));
		return known;
	}
}
