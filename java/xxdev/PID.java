// SPDX-License-Identifier: MIT
package xxdev;

import java.util.UUID;

/**
 * A process of a job, as {@link Device#init} returns it (F-MPJ 2009, listing of xxdev.Device). Two PIDs are equal if they name the same
 * process.
 */
public abstract class PID {
	/** For devices. */
	protected PID() {}

	/**
	 * The process's number.
	 *
	 * @return 0 to size - 1; -1 for {@link Device#ANY_SRC}
	 */
	public abstract int rank();

	/**
	 * A name that no other process of this or another job has.
	 *
	 * @return never null
	 */
	public abstract UUID uuid();

	@Override
	public final boolean equals(Object other) {
		return other instanceof PID && ((PID) other).uuid().equals(uuid());
	}

	@Override
	public final int hashCode() {
		return uuid().hashCode();
	}

	@Override
	public String toString() {
		return rank() < 0 ? "any process" : "process " + rank();
	}
}
