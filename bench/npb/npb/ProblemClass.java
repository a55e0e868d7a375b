// SPDX-License-Identifier: MIT
package npb;

/** The classes of NPB, from the smallest to the largest that there is here, and how arguments name them. */
enum ProblemClass {
	S, W, A, B, C;

	static ProblemClass of(String name) throws UsageException {
		for (ProblemClass problem : values()) {
			if (problem.name().equalsIgnoreCase(name))
				return problem;
		}
		throw new UsageException("there is no class \"" + name + "\": S, W, A, B or C");
	}
}
