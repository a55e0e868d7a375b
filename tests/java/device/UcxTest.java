// SPDX-License-Identifier: MIT
package device;

/** The transport ucx. */
final class UcxTest extends NetlibTest {
	UcxTest() {
		super("ucx", "libucp.so");
	}
}
