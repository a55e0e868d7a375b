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
		ResultBlock result = ResultBlock.take();
		try {
			return found(device, "probe", find(device, rank, tag, context, result.address), result, rank, tag, context);
		} finally {
			result.giveBack();
		}
	}

	private static long find(IBVDevice device, int rank, int tag, int context, long result) {
		long ep = device.endpointHandle();
		if (VirtualThreads.current())
			return device.watcher().awaitMessage(() -> Native.look(ep, false, rank, tag, context, result));
		return Native.probe(ep, rank, tag, context, result);
	}

	/** Is a message there? Else null. */
	static Status look(IBVDevice device, int rank, int tag, int context) {
		ResultBlock result = ResultBlock.take();
		try {
			int rc = Native.iprobe(device.endpointHandle(), rank, tag, context, result.address);
			return rc == 0 ? null : found(device, "iprobe", rc, result, rank, tag, context);
		} finally {
			result.giveBack();
		}
	}

	private static Status found(IBVDevice device, String operation, long rc, ResultBlock result, int rank, int tag, int context) {
		if (rc < 0)
			throw Errors.receiving(rc, operation, rank, tag, context);
		return device.status(result.source(), result.tag(), result.user(), result.bytes());
	}
}
