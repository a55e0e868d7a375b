// SPDX-License-Identifier: MIT
package xxdev.ibvdev;

import xdev.ibvdev.ResultBlock;
import xdev.ibvdev.VirtualThreads;
import xxdev.Status;

/** Probes of a rank of the job, or ANY. What they find stays in the queue. */
final class Probes {
	private Probes() {}

	/** Waits for a message. */
	static Status wait(IBVDevice device, int rank, int tag, int context) {
		long ep = device.endpointHandle();
		if (VirtualThreads.current())
			return device.watcher().awaitMessage(
					result -> found(device, "probe", Native.look(ep, false, rank, tag, context, result.address), result, rank, tag, context));
		ResultBlock result = ResultBlock.own();
		int rc = Native.probe(ep, rank, tag, context, result.address);
		return found(device, "probe", rc == 0 ? 1 : rc, result, rank, tag, context);
	}

	/** Is a message there? Else null. */
	static Status look(IBVDevice device, int rank, int tag, int context) {
		ResultBlock result = ResultBlock.take();
		try {
			return found(device, "iprobe", Native.iprobe(device.endpointHandle(), rank, tag, context, result.address), result, rank, tag, context);
		} finally {
			result.giveBack();
		}
	}

	/** rc: 1, 0 for no message, or an error. */
	private static Status found(IBVDevice device, String operation, long rc, ResultBlock result, int rank, int tag, int context) {
		if (rc < 0)
			throw Errors.receiving(rc, operation, rank, tag, context);
		return rc == 0 ? null : device.status(result.source(), result.tag(), result.user(), result.bytes());
	}
}
