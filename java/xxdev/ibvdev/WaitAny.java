// SPDX-License-Identifier: MIT
package xxdev.ibvdev;

import xdev.ibvdev.VirtualThreads;
import xxdev.Request;
import xxdev.Status;
import xxdev.XXDevException;

/**
 * One iwaitany. It claims the requests, waits for them in one native call, and completes the one that is found.
 *
 * <p>A request that another thread works on at that moment (it tests the request, or waits for it) cannot be claimed, and the native call knows nothing of it.
 * As long as there is one, this thread does not block in the native call: it tests the claimed requests in turn, gives them back, and sleeps until the other
 * thread is done with its request, a millisecond at most.
 */
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
				throw Errors.argument("iwaitany: request " + i + " is of another device than the first: wait for those of each device alone");
			this.requests[i] = (IBVRequest) requests[i];
		}
	}

	Status run() {
		for (;;) {
			int index = claimAll();
			if (index < 0) {
				IBVRequest unclaimed = unclaimed();
				if (unclaimed != null)
					index = testClaimed(unclaimed);
				else if (anyClaimed())
					index = waitForClaimed();
				else
					return null;
			}
			if (index >= 0)
				return requests[index].iwait().at(index);
		}
	}

	/** A request that another thread works on, or null. */
	private IBVRequest unclaimed() {
		for (int i = 0; i < requests.length; i++)
			if (requests[i] != null && handles[i] == 0 && !requests[i].isClaimedBy(this)) /* one that was named twice is claimed once */
				return requests[i];
		return null;
	}

	private boolean anyClaimed() {
		for (long handle : handles)
			if (handle != 0)
				return true;
		return false;
	}

	/** Blocks until one of the claimed requests is complete; ends all claims. The index of that request. */
	private int waitForClaimed() {
		if (VirtualThreads.current())
			return parkForClaimed();
		int index = Native.waitAny(endpoint, handles);
		XXDevException error = index < 0 ? Errors.of(index, "iwaitany") : null;
		releaseBut(index);
		if (error != null)
			throw error;
		requests[index].conclude(true);
		return index;
	}

	/** Of a virtual thread: the same, but -1 is possible. */
	private int parkForClaimed() {
		IBVRequest[] claimed = requests.clone();
		for (int i = 0; i < claimed.length; i++)
			if (handles[i] == 0)
				claimed[i] = null;
		device.watcher().await(claimed, Watcher.NO_LIMIT);
		return concludeOne();
	}

	/** Tests the claimed requests and ends all claims; if none is complete, sleeps for a moment. The index of one that is complete, or -1. */
	private int testClaimed(IBVRequest unclaimed) {
		int found = concludeOne();
		if (found < 0)
			unclaimed.awaitOther(1);
		return found;
	}

	/** Tests the claimed requests and ends all claims. The index of one that is complete, or -1. */
	private int concludeOne() {
		int found = -1;
		try {
			for (int i = 0; i < requests.length && found < 0; i++) {
				if (handles[i] == 0)
					continue;
				handles[i] = 0;
				if (requests[i].conclude(false))
					found = i;
			}
		} finally {
			releaseBut(-1);
		}
		return found;
	}

	/** The index of one that is complete, and then nothing is claimed; or -1. */
	private int claimAll() {
		for (int i = 0; i < requests.length; i++) {
			IBVRequest request = requests[i];
			if (request != null && request.claimFor(this)) {
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
