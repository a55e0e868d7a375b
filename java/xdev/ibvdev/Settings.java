// SPDX-License-Identifier: MIT
package xdev.ibvdev;

import java.nio.charset.StandardCharsets;
import java.util.Set;
import java.util.TreeSet;

/**
 * Hands the system properties {@code ibvdev.*} to the library. What they mean, and whether they are
 * well-formed, is checked by the library.
 */
public final class Settings {
	private static final String PREFIX = "ibvdev.";
	/** Properties that are not the library's. */
	private static final Set<String> OTHERS = Set.of("ibvdev.library", "ibvdev.tmpdir", "ibvdev.home", "ibvdev.build");
	/** The default error handler of MPI ends the job, so one lost rank fails the operations of all. */
	private static final String DEFAULTS = "fault_scope=job";

	private Settings() {}

	/**
	 * The system properties as the library takes them.
	 *
	 * @return "name=value" texts in UTF-8, each with its NUL
	 */
	public static byte[] properties() {
		StringBuilder list = new StringBuilder();
		for (String name : new TreeSet<>(System.getProperties().stringPropertyNames())) {
			if (!name.startsWith(PREFIX) || OTHERS.contains(name) || name.startsWith("ibvdev.test."))
				continue;
			String value = System.getProperty(name, "");
			if (name.indexOf('\0') >= 0 || value.indexOf('\0') >= 0)
				throw new IllegalArgumentException("system property " + name + " contains a NUL character");
			list.append(name.substring(PREFIX.length())).append('=').append(value).append('\0');
		}
		return list.toString().getBytes(StandardCharsets.UTF_8);
	}

	/**
	 * What the Java devices prefer to the library's defaults.
	 *
	 * @return as properties() does
	 */
	public static byte[] defaults() {
		return text(DEFAULTS);
	}

	/**
	 * Is it the word auto alone? The launcher that has started the process knows the rank then.
	 *
	 * @param args of init
	 * @return true if so
	 */
	public static boolean launcherKnows(String[] args) {
		return args != null && args.length > 0 && "auto".equals(args[0]);
	}

	/**
	 * The conf that init is given, as the library takes it.
	 *
	 * @param args of init: rank and conf, or auto
	 * @return as {@link #text}
	 */
	public static byte[] conf(String[] args) {
		return text(launcherKnows(args) ? args[0] : args[1]);
	}

	/**
	 * A text as the library takes it.
	 *
	 * @param text without NUL
	 * @return the same in UTF-8, with its NUL
	 */
	public static byte[] text(String text) {
		return (text + '\0').getBytes(StandardCharsets.UTF_8);
	}
}
