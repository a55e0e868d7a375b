// SPDX-License-Identifier: MIT
package mpjdev.javampjdev;

import mpjdev.MPJDevException;
import xdev.Device;
import xdev.ProcessID;
import xdev.XDevException;
import xdev.ibvdev.DeviceNames;

/**
 * The plug-in hook: stands in for MPJ Express's class of this name, which knows a fixed list of devices. It takes
 * its place by standing ahead of mpj.jar on the class path, or by ibvdev.jar being a {@code -javaagent}.
 */
public class MPJDev {
	/** The world's communicator; null before init. */
	public static Comm WORLD;
	/** The device; a launcher may set it before init, which then keeps it. */
	public static Device dev;

	/** Not needed by anybody; MPJ Express's class has it too. */
	public MPJDev() {}

	/**
	 * Opens the device and makes the world's communicator, which exchanges a message with every rank.
	 *
	 * @param args rank, conf file or ";" string, device name; more is the device's business
	 * @return the device
	 * @throws MPJDevException if there are not three arguments, the device is unknown, or it cannot be opened
	 */
	public static Device init(String[] args) throws MPJDevException {
		if (args == null || args.length < 3)
			throw new MPJDevException("Usage: <rank> <conf file or \";\" string> <device name>; got " + (args == null ? 0 : args.length) + " arguments");
		boolean made = false;
		synchronized (MPJDev.class) {
			if (dev == null) {
				dev = create(args[2]);
				made = true;
			}
		}
		boolean open = false;
		try {
			ProcessID[] ids = dev.init(args);
			ProcessID self = dev.id();
			WORLD = new Comm(dev, new Group(ids, self, rankOf(self, ids)));
			open = true;
			return dev;
		} finally {
			/* A failed init must not decide which device the next one uses. */
			if (!open && made)
				dev = null;
		}
	}

	private static Device create(String name) throws MPJDevException {
		try {
			return DeviceNames.create(name);
		} catch (XDevException e) {
			MPJDevException error = new MPJDevException(e.getMessage());
			error.initCause(e);
			throw error;
		}
	}

	private static int rankOf(ProcessID self, ProcessID[] ids) {
		for (int rank = 0; rank < ids.length; rank++)
			if (self.uuid().equals(ids[rank].uuid()))
				return rank;
		return -1;
	}

	/**
	 * Bytes to leave free in front of a send buffer's data.
	 *
	 * @return what the device reports
	 */
	public static int getSendOverhead() {
		return opened("getSendOverhead").getSendOverhead();
	}

	/**
	 * Bytes to leave free in front of a receive buffer's data.
	 *
	 * @return what the device reports
	 */
	public static int getRecvOverhead() {
		return opened("getRecvOverhead").getRecvOverhead();
	}

	/**
	 * Closes the device; MPI.Init can follow.
	 *
	 * @throws MPJDevException if the device cannot be closed (it stays open), or none is open
	 */
	public static void finish() throws MPJDevException {
		try {
			opened("finish").finish();
		} catch (MPJDevException e) {
			throw e;
		} catch (XDevException e) {
			throw new MPJDevException(e);
		}
		dev = null;
	}

	private static Device opened(String what) {
		if (dev == null)
			throw new MPJDevException(what + ": no device is open: call MPI.Init first");
		return dev;
	}
}
