// SPDX-License-Identifier: MIT
package mpitest;

import mpi.Status;

/** What a status must contain of a received or probed message. */
final class Statuses {
	private Statuses() {}

	static void check(Status status, int source, int tag, Kind kind, int count, String what) {
		Check.that(status != null, "%s: the status is null", what);
		Check.eq(source, status.source, "%s: source in the status", what);
		Check.eq(tag, status.tag, "%s: tag in the status", what);
		Check.eq(count, status.Get_count(kind.type()), "%s: Get_count of %s", what, kind);
		Check.eq(count, status.Get_elements(kind.type()), "%s: Get_elements of %s", what, kind);
	}
}
