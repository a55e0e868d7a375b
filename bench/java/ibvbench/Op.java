// SPDX-License-Identifier: MIT
package ibvbench;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/** The operations of bench/c/ops.h, which describes them, with the same defaults. */
public enum Op {
	/** Half a round trip. */
	LATENCY(null, "1", 2),
	/** A window of messages one way. */
	BANDWIDTH(null, null, 1),
	/** A window both ways. */
	BIBANDWIDTH(null, null, 2),
	/** Bandwidth of small messages. */
	RATE("8", "64", 1),
	/** Latency behind posted receives. */
	POSTED("8", "1/100/10000", 2),
	/** Latency behind unexpected messages. */
	UNEXPECTED("8", "1/100/10000", 2),
	/** Latency of several threads. */
	THREADS("8", "1/2/4", 2),
	/** Both ways at once, non-blocking. */
	EXCHANGE("64k/1m", "1", 1),
	/** What of an exchange a computation does not hide. */
	EXPOSED("64k/1m", "1", 1),
	/** Rate of all pairs. */
	PAIRS("8", "64", 1),
	/** A barrier. */
	BARRIER("0", "1", 1),
	/** A broadcast. */
	BCAST("1k/1m", "1", 1),
	/** A reduction. */
	REDUCE("1k/1m", "1", 1),
	/** A reduction to all. */
	ALLREDUCE("8/1k/1m", "1", 1),
	/** A gather to all. */
	ALLGATHER("1k/1m", "1", 1),
	/** All to all. */
	ALLTOALL("1k/1m", "1", 1),
	/** A computation and a barrier. */
	STEP("0", "200", 1),
	/** Processor time of waiting. */
	IDLE("0", "500", 1),
	/** Memory of a rank. */
	MEMORY("8", "1", 1);

	private final String sizes;
	private final String params;
	private final int messages;

	Op(String sizes, String params, int messages) {
		this.sizes = sizes;
		this.params = params;
		this.messages = messages;
	}

	/** Between all ranks, else between two. */
	boolean ofAll() {
		return compareTo(PAIRS) >= 0;
	}

	/** Has setup and clear. */
	boolean prepared() {
		return this == POSTED || this == UNEXPECTED;
	}

	/** Near and far make no difference. */
	boolean unprobed() {
		return this == IDLE || this == MEMORY;
	}

	/** Whether the parameter is a window. */
	boolean windowed() {
		return this == BANDWIDTH || this == BIBANDWIDTH || this == RATE || this == PAIRS;
	}

	String unit() {
		return this == MEMORY ? "KB" : "us";
	}

	/** As in --op and in the results. */
	String text() {
		return name().toLowerCase(Locale.ROOT);
	}

	/** How many times of one message or operation one iteration holds. */
	double units(int param, int ranks) {
		return (double) messages * (windowed() ? param : 1) * (this == PAIRS ? ranks / 2 : 1);
	}

	/** One operation that was asked for. */
	static final class Plan {
		final Op op;
		final List<Integer> sizes;
		final List<Integer> params;

		Plan(Op op, List<Integer> sizes, List<Integer> params) {
			this.op = op;
			this.sizes = sizes;
			this.params = params;
		}
	}

	/**
	 * Reads a list such as "latency,bandwidth=8/64k@16/64,barrier".
	 *
	 * @param list   operations, each with sizes after = and parameters after @
	 * @param sizes  for operations without sizes of their own
	 * @param window for operations without parameters of their own
	 * @throws IllegalArgumentException with a text for the user
	 */
	static List<Plan> plans(String list, List<Integer> sizes, int window) {
		List<Plan> plans = new ArrayList<>();
		for (String word : list.split(",")) {
			String[] atParams = word.split("@", 2);
			String[] atSizes = atParams[0].split("=", 2);
			Op op = named(atSizes[0]);
			String ownSizes = atSizes.length > 1 ? atSizes[1] : op.sizes;
			String ownParams = atParams.length > 1 ? atParams[1] : op.params;
			List<Integer> chosen = new ArrayList<>(ownSizes == null ? sizes : Options.numbers(ownSizes, "/"));
			if (ownSizes == null && op != LATENCY)
				chosen.removeIf(size -> size == 0); // nothing has no bandwidth
			plans.add(new Plan(op, chosen, ownParams == null ? List.of(window) : Options.numbers(ownParams, "/")));
		}
		return plans;
	}

	private static Op named(String name) {
		for (Op op : values()) {
			if (op.text().equals(name))
				return op;
		}
		throw new IllegalArgumentException("--op: there is no \"" + name + "\"");
	}
}
