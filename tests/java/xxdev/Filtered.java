// SPDX-License-Identifier: MIT
package xxdevtest;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;

/** The filters of received objects, set by the job: {@code jdk.serialFilter} and {@code xxdev.max...}. One rank. */
final class Filtered extends Program {
	public static void main(String[] args) throws Exception {
		new Filtered().launch(args);
	}

	private Object toMyself(Object out) {
		dev.isend(out, ids[me], 1, CONTEXT);
		Object[] in = new Object[1];
		dev.recv(in, ids[me], 1, CONTEXT);
		return in[0];
	}

	@Case
	void theJvmsFilterDecides() throws Exception {
		fails(() -> toMyself(Parcels.Tree.of(1, 1)), "rejected", "jdk.serialFilter");
		equal(List.of(1), toMyself(new ArrayList<>(List.of(1))), "a list");
		equal(new HashMap<>(), toMyself(new HashMap<>()), "a map");
	}

	/** The job's jdk.serialFilter has maxrefs=50 and maxbytes=5000: for a message, not for all together. */
	@Case
	void itsCountersStartAnewWithEachMessage() throws Exception {
		for (int i = 0; i < 200; i++)
			equal(List.of(i), toMyself(new ArrayList<>(List.of(i))), "a list");
		List<Object> long1 = new ArrayList<>();
		for (int i = 0; i < 60; i++)
			long1.add(new ArrayList<>());
		fails(() -> toMyself(long1), "rejected");
		equal(List.of(7), toMyself(new ArrayList<>(List.of(7))), "a list");
	}

	@Case
	void longArraysAreRejected() throws Exception {
		equal(1000, ((int[]) ((List<?>) toMyself(new ArrayList<>(List.of(new int[1000])))).get(0)).length, "an array");
		fails(() -> toMyself(new ArrayList<>(List.of(new int[1001]))), "rejected", "array of 1001 elements", "xxdev.maxarray is 1000");
	}

	@Case
	void longMessagesAreRejected() throws Exception {
		fails(() -> toMyself("x".repeat(100001)), "a String (100001 bytes)", "xxdev.maxbytes is 100000");
		equal("x".repeat(1000), toMyself("x".repeat(1000)), "a short one");
	}
}
