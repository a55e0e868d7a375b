// SPDX-License-Identifier: MIT
package xxdev;

/**
 * Which threads of a process may call a device (MPI 4.0, section 11.6: MPI_THREAD_SINGLE and so on). The order is that of
 * MPI: each level allows what the ones before it allow.
 */
public enum ThreadLevel {
	/** The process has one thread. */
	SINGLE,
	/** Only the thread that called init. */
	FUNNELED,
	/** Any thread, one at a time. */
	SERIALIZED,
	/** Any thread at any time. */
	MULTIPLE
}
