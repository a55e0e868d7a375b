// SPDX-License-Identifier: MIT
package device;

/** The transport ofi. */
final class OfiTest extends NetlibTest {
	OfiTest() {
		super("ofi", "libfabric.so");
	}
}
