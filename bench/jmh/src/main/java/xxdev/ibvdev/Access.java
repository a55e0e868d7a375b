// SPDX-License-Identifier: MIT
package xxdev.ibvdev;

import java.nio.ByteBuffer;

/** The natives of bench/jmh/access.c: each copies n bytes to native memory by another method of JNI. */
final class Access {
	static {
		System.load(System.getProperty("ibvbench.access"));
	}

	private Access() {}

	static native void nothing();

	static native void region(byte[] array, int n);

	static native void critical(byte[] array, int n);

	static native void elements(byte[] array, int n);

	static native void direct(ByteBuffer buffer, int n);
}
