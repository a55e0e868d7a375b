// SPDX-License-Identifier: MIT
package ibvbench;

/** What rank 0 wants all ranks to do. */
public final class Command {
	/** Some operations need something set up before the clock starts, and cleared when it has stopped. */
	public enum Phase {
		/** The operation. */
		RUN,
		/** Before it. */
		SETUP,
		/** After it. */
		CLEAR
	}

	final Op op;
	final Phase phase;
	final int bytes;
	final int param;
	final long iterations;
	final long workNs;

	Command(Op op, Phase phase, int bytes, int param, long iterations, long workNs) {
		this.op = op;
		this.phase = phase;
		this.bytes = bytes;
		this.param = param;
		this.iterations = iterations;
		this.workNs = workNs;
	}

	Command times(long count) {
		return new Command(op, phase, bytes, param, count, workNs);
	}

	Command in(Phase other) {
		return new Command(op, other, bytes, param, iterations, workNs);
	}

	Command of(Op other) {
		return new Command(other, phase, bytes, param, iterations, workNs);
	}

	Command computing(long ns) {
		return new Command(op, phase, bytes, param, iterations, ns);
	}

	/**
	 * Which operation.
	 *
	 * @return never null
	 */
	public Op op() {
		return op;
	}
}
