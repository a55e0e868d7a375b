// SPDX-License-Identifier: MIT
package npb;

/**
 * One benchmark: made for a class and a number of ranks, then prepare, run, verify, on all ranks; between two runs
 * comes a reset.
 */
interface Kernel {
	/** As NPB writes it, for example "CG". */
	String name();

	/** The size of the problem, as NPB writes it. */
	String size();

	int iterations();

	/** What NPB calls "Operation type". */
	default String operation() {
		return "floating point";
	}

	/** Outside the measured time: memory, input, and the one iteration that NPB does first. */
	void prepare();

	/** Back to where {@link #prepare} left off. */
	void reset();

	/** The measured part. */
	void run();

	/** Operations of the measured part, in millions, as NPB counts them. */
	double megaOperations();

	/** Compares with the official values; text about it goes to {@code report}. */
	boolean verify(Report report);
}
