// SPDX-License-Identifier: MIT
package xdev.ibvdev;

import java.util.HashMap;
import java.util.Map;
import java.util.UUID;
import xdev.Device;
import xdev.ProcessID;

/** The processes of a job, between MPJ Express's ids and ranks. Immutable. */
final class Peers {
	/** Of a device that is not open. */
	static final Peers NONE = new Peers();

	private final IBVProcessID[] ids;
	private final Map<UUID, IBVProcessID> byUuid = new HashMap<>();
	/** Our own rank; -1 when the device is not open. */
	final int self;

	private Peers() {
		ids = new IBVProcessID[0];
		self = -1;
	}

	Peers(String jobId, int self, int size) {
		this.self = self;
		ids = new IBVProcessID[size];
		for (int rank = 0; rank < size; rank++) {
			ids[rank] = new IBVProcessID(jobId, rank);
			byUuid.put(ids[rank].uuid(), ids[rank]);
		}
	}

	boolean open() {
		return self >= 0;
	}

	/** A copy; the index is the rank. */
	ProcessID[] all() {
		return java.util.Arrays.copyOf(ids, ids.length, ProcessID[].class);
	}

	ProcessID id(int rank) {
		return ids[rank];
	}

	UUID uuid(int rank) {
		return ids[rank].uuid();
	}

	/** The rank that a send names. */
	int destination(String operation, ProcessID id) {
		IBVProcessID known = known(id);
		if (known == null)
			throw unknown(operation, "destination", id);
		return known.rank();
	}

	/** The rank that a receive or probe names, or ANY_SOURCE. The wildcard has a UUID of its own in each JVM. */
	int source(String operation, ProcessID id) {
		IBVProcessID known = known(id);
		if (known != null)
			return known.rank();
		if (id == null || !Device.ANY_SRC.uuid().equals(id.uuid()) || !open())
			throw unknown(operation, "source", id);
		return Device.ANY_SOURCE;
	}

	/** Usually one of our own objects; other ids with an equal UUID are as good. */
	private IBVProcessID known(ProcessID id) {
		if (id instanceof IBVProcessID) {
			int rank = ((IBVProcessID) id).rank();
			if (rank < ids.length && ids[rank] == id)
				return ids[rank];
		}
		return id == null || id.uuid() == null ? null : byUuid.get(id.uuid());
	}

	/** For an operation on a device that is not open. */
	static IBVException closed(String operation) {
		return new IBVException(Native.ESHUTDOWN, -1, operation + ": the device has been finished, or was never initialised: call init first");
	}

	private IBVException unknown(String operation, String role, ProcessID id) {
		if (!open())
			return closed(operation);
		return Errors.argument(operation + ": the " + role + " " + (id == null ? "is null" : id.uuid() + " is not a process of this job") + ": use one of the "
				+ ids.length + " ids that init returned");
	}
}
