// SPDX-License-Identifier: MIT
package xxdev.ibvdev;

import xxdev.Request;
import xxdev.Status;
import xxdev.XXDevException;

/** One iwaitany. */
final class WaitAny {
	private final IBVDevice device;
	private final long endpoint;
	private final IBVRequest[] requests;
	/** Handles of those that this thread has claimed; 0: it has not. */
	private final long[] handles;

	WaitAny(IBVDevice device, long endpoint, Request[] requests) {
		this.device = device;
		this.endpoint = endpoint;
		this.requests = new IBVRequest[requests.length];
		handles = new long[requests.length];
		for (int i = 0; i < requests.length; i++) {
			if (requests[i] == null || requests[i].isnull())
				continue;
			if (!(requests[i] instanceof IBVRequest) || !((IBVRequest) requests[i]).of(device))
				throw new XXDevException("iwaitany: request " + i + " is of another device than the first: wait for those of each device alone");
			this.requests[i] = (IBVRequest) requests[i];
		}
	}

	Status run() {
		for (;;) {
			int complete = claimAll();
			if (complete >= 0)
				return requests[complete].iwait().at(complete);
			IBVRequest other = null;
			boolean any = false;
			for (int i = 0; i < requests.length; i++) {
				any |= handles[i] != 0;
				if (requests[i] != null && handles[i] == 0)
					other = requests[i];
			}
			if (!any && other == null)
				return null;
			if (!any) {
				other.awaitOther(); /* other threads wait for all of them */
				continue;
			}
			int index = Native.waitAny(endpoint, handles);
			String error = index < 0 ? Texts.last() : null;
			releaseBut(index);
			if (error != null)
				throw new XXDevException("iwaitany: " + error);
			requests[index].conclude();
			return requests[index].iwait().at(index);
		}
	}

	/** The index of one that is complete, and then nothing is claimed; or -1. */
	private int claimAll() {
		for (int i = 0; i < requests.length; i++) {
			IBVRequest request = requests[i];
			if (request != null && request.claimed()) {
				handles[i] = request.handle;
			} else if (request != null && request.isComplete()) {
				releaseBut(-1);
				return i;
			}
		}
		return -1;
	}

	private void releaseBut(int kept) {
		for (int i = 0; i < handles.length; i++)
			if (handles[i] != 0 && i != kept)
				requests[i].unclaim();
		java.util.Arrays.fill(handles, 0);
	}
}
