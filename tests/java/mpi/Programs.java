// SPDX-License-Identifier: MIT
package mpitest;

/** The programs that need our package mpi, one after the other in each process. Arguments: those of {@link RandomCollectives}. */
public final class Programs {
	private Programs() {}

	public static void main(String[] args) throws Exception {
		String[] none = args.length > 2 ? java.util.Arrays.copyOf(args, args.length - 2) : new String[0];
		Standard.main(none);
		Matched.main(none);
		Started.main(none);
		BadInput.main(none);
		RandomCollectives.main(args);
	}
}
