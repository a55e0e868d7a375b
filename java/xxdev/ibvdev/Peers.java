// SPDX-License-Identifier: MIT
package xxdev.ibvdev;

import xdev.ibvdev.Settings;
import xxdev.Device;
import xxdev.ErrorCode;
import xxdev.PID;
import xxdev.XXDevException;

/** The processes of a job, between PIDs and ranks. Immutable. */
final class Peers {
	static final int ANY = -2;
	/** Of a device that is not open. */
	static final Peers NONE = new Peers("", -1, 0);

	private final IBVPID[] ids;
	/** Our own rank; -1 when the device is not open. */
	final int self;

	Peers(String jobId, int self, int size) {
		this.self = self;
		ids = new IBVPID[size];
		for (int rank = 0; rank < size; rank++)
			ids[rank] = new IBVPID(jobId, rank);
	}

	boolean open() {
		return self >= 0;
	}

	PID[] all() {
		return java.util.Arrays.copyOf(ids, ids.length, PID[].class);
	}

	/** The process of that rank; ANY_SRC for the wildcard. */
	PID id(int rank) {
		return rank >= 0 && rank < ids.length ? ids[rank] : Device.ANY_SRC;
	}

	int size() {
		return ids.length;
	}

	/** The rank that a send names. */
	int destination(String operation, PID id) {
		if (id instanceof IBVPID) {
			int rank = id.rank();
			if (rank < ids.length && (ids[rank] == id || ids[rank].equals(id)))
				return rank;
		}
		throw unknown(operation, "destination", id);
	}

	/** The rank that a receive or probe names, or ANY. */
	int source(String operation, PID id) {
		if (id instanceof IBVPID) {
			int rank = id.rank();
			if (rank < ids.length && (ids[rank] == id || ids[rank].equals(id)))
				return rank;
		}
		if (id == Device.ANY_SRC && open())
			return ANY;
		throw unknown(operation, "source", id);
	}

	/** For an operation on a device that is not open. */
	static XXDevException closed(String operation) {
		return new XXDevException(ErrorCode.CLOSED, -1, operation + ": the device has been finished, or was never initialised: call init first");
	}

	private XXDevException unknown(String operation, String role, PID id) {
		if (!open())
			return closed(operation);
		String problem = id == null ? "is null" : id == Device.ANY_SRC ? "is ANY_SRC" : id + " is not of this job";
		return Errors.argument(operation + ": the " + role + " " + problem + ": use one of the " + ids.length + " that init returned");
	}

	/** The rank that the arguments of init name; -1: the launcher knows. */
	static int rankArgument(String[] args) {
		if (Settings.launcherKnows(args))
			return -1;
		if (args == null || args.length < 2 || args[0] == null || args[1] == null)
			throw Errors.argument("init needs three arguments: rank, conf file, device name, or the one word auto; got "
					+ (args == null ? "none" : java.util.Arrays.toString(args)));
		if (args[1].isEmpty() || args[1].indexOf('\0') >= 0)
			throw Errors.argument(
					"init: the second argument, a conf file's path, is " + (args[1].isEmpty() ? "empty" : "not text: it contains a NUL character"));
		try {
			return Integer.parseInt(args[0].trim());
		} catch (NumberFormatException e) {
			throw new XXDevException(ErrorCode.BAD_ARGUMENT, -1,
					"init: the first argument must be the rank, a number from 0 to size - 1, or auto; it is \"" + args[0] + "\"", e);
		}
	}
}
