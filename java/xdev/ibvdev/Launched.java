// SPDX-License-Identifier: MIT
package xdev.ibvdev;

/**
 * What {@code MPI.Init} of MPJ Express gets where nobody prepends rank, conf file and device to the program's
 * arguments: in a process that mpirun, mpiexec or srun has started, or the user alone. Called by the code that
 * {@link InitRewriter} adds.
 */
public final class Launched {
	/** The conf that makes the library find out rank and size by itself (ibvdev.conf(5)). */
	private static final String CONF = "auto";
	/** The rank that goes with it: unknown. */
	private static final String RANK = "-1";

	private Launched() {}

	/**
	 * The arguments of the real Init.
	 *
	 * @param args what the program gave to Init; null is taken for none
	 * @return args if they begin with rank, conf and device; else with those before them
	 */
	public static String[] arguments(String[] args) {
		if (complete(args))
			return args;
		int own = args == null ? 0 : args.length;
		String[] all = new String[3 + own];
		all[0] = RANK;
		all[1] = CONF;
		all[2] = "ibvdev";
		if (own > 0)
			System.arraycopy(args, 0, all, 3, own);
		return all;
	}

	static boolean complete(String[] args) {
		return args != null && args.length >= 3 && args[0] != null && args[0].matches("-1|\\d{1,9}") && args[2] != null
				&& (args[2].equals("native") || DeviceClasses.isKnown(args[2]));
	}
}
