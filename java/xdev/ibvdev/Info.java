// SPDX-License-Identifier: MIT
package xdev.ibvdev;

import java.nio.charset.StandardCharsets;

/** {@code ibvdev-info}: what this JVM, this machine and the library can do, and every setting with its origin. */
public final class Info {
	private Info() {}

	/**
	 * Prints it on stdout.
	 *
	 * @param args at most one: a conf file whose settings count too, or --launcher
	 */
	public static void main(String[] args) {
		if (args.length > 1) {
			System.err.println("usage: java -jar ibvdev.jar [conf file | --launcher]");
			System.exit(2);
		}
		if (args.length == 1 && args[0].equals("--launcher")) {
			System.exit(launcher());
			return;
		}
		String origin;
		byte[] text;
		try {
			origin = NativeLibrary.load();
			byte[] conf = args.length == 0 ? new byte[0] : Settings.text(args[0]);
			text = Native.describe(0, conf, Settings.properties(), Settings.defaults());
		} catch (UnsatisfiedLinkError | IllegalArgumentException e) {
			System.err.println("ibvdev-info: " + e.getMessage());
			System.exit(1);
			return;
		}
		if (text == null) {
			System.err.println("ibvdev-info: " + new String(Native.errorText(), StandardCharsets.UTF_8));
			System.exit(1);
			return;
		}
		System.out.println("Java");
		for (String name : new String[] {"java.vm.name", "java.vm.version", "java.vm.vendor", "java.home", "os.arch"})
			System.out.println("  " + name + ": " + System.getProperty(name));
		System.out.println("  maximum heap: " + (Runtime.getRuntime().maxMemory() >> 20) + " MB");
		System.out.println("  ibvdev.jar: " + Native.VERSION + ", interface " + Native.ABI);
		System.out.println("  native library: " + origin);
		System.out.print(new String(text, StandardCharsets.UTF_8));
		System.out.flush();
	}

	/** Every rank of the job runs this; rank 0 prints, and a rank that fails does. */
	private static int launcher() {
		int[] status = {1};
		byte[] text;
		try {
			NativeLibrary.load();
			text = Native.describeLauncher(status, Settings.properties(), Settings.defaults());
		} catch (UnsatisfiedLinkError | IllegalArgumentException e) {
			System.err.println("ibvdev-info: " + e.getMessage());
			return 1;
		}
		if (text == null) {
			System.err.println("ibvdev-info: " + new String(Native.errorText(), StandardCharsets.UTF_8));
			return 1;
		}
		System.out.print(new String(text, StandardCharsets.UTF_8));
		System.out.flush();
		return status[0] == 0 ? 0 : 1;
	}
}
