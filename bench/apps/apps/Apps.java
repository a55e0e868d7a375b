// SPDX-License-Identifier: MIT
package apps;

import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import mpi.Intracomm;
import mpi.MPI;

/**
 * Small applications on the API of MPJ Express, each of which knows whether its result is right; see {@link #HELP}.
 *
 * <p>Exit status: 0 if the result is right, 1 if not, 2 for arguments or ranks that do not fit.
 */
public final class Apps {
	private static final String HELP =
			String.join(System.lineSeparator(), "usage: ibvrun -np N [-dev DEVICE] -cp build/bench/apps/apps.jar apps.Apps APP [SIZE]", "",
					"Small applications that verify themselves, with the time they took and the share of communication in it.", "",
					"  APP     what                                           SIZE  tiny   A        B         C",
					"  crypt   IDEA, there and back (Java Grande)             bytes 40000  3000000  20000000  50000000",
					"  lufact  LU factorisation and solution (Java Grande)    order 60     500      1000      2000",
					"  moldyn  Lennard-Jones particles (Java Grande)          cells 3      8        13        18",
					"  asp     shortest paths between all pairs of nodes      nodes 48     1000     2000      4000",
					"  fdtd    Maxwell's equations in the plane, non-blocking cells 48     1024     2048      4096", "",
					"SIZE is tiny, A (by default), B, C, or a number: bytes of text, order of the matrix, unit cells along",
					"an edge (4 particles each), nodes of the graph, cells along a side.", "",
					"Exit status: 0 for VERIFICATION SUCCESSFUL, 1 for UNSUCCESSFUL, 2 for arguments or ranks that do not fit.");

	private static final List<String> NAMES = List.of("crypt", "lufact", "moldyn", "asp", "fdtd");
	private static final List<String> LETTERS = List.of("TINY", "A", "B", "C");
	/** By {@link #NAMES} and {@link #LETTERS}; the letters of Java Grande's three are Java Grande's (moldyn C is ours). */
	private static final int[][] SIZES = {
			{40000, 3000000, 20000000, 50000000},
			{60, 500, 1000, 2000},
			{3, 8, 13, 18},
			{48, 1000, 2000, 4000},
			{48, 1024, 2048, 4096},
	};

	private Apps() {}

	/**
	 * A rank of the job.
	 *
	 * @param args what MPJ Express wants, then application and size
	 */
	public static void main(String[] args) {
		if (Arrays.asList(args).contains("--help") || Arrays.asList(args).contains("-h")) {
			if (args.length < 4 || args[0].equals("0"))
				System.out.println(HELP);
			return;
		}
		int status = 1;
		try {
			String[] rest = MPI.Init(args);
			try {
				status = run(rest, MPI.COMM_WORLD) ? 0 : 1;
			} catch (UsageException e) { // on all ranks alike
				if (MPI.COMM_WORLD.Rank() == 0)
					System.err.println("apps: " + e.getMessage());
				status = 2;
			}
			MPI.Finalize();
		} catch (RuntimeException | OutOfMemoryError e) {
			e.printStackTrace();
		}
		System.exit(status); // also where a device leaves threads behind
	}

	private static boolean run(String[] args, Intracomm world) throws UsageException {
		int which = args.length < 1 || args.length > 2 ? -1 : NAMES.indexOf(args[0].toLowerCase(Locale.ROOT));
		if (which < 0)
			throw new UsageException("arguments: one of " + NAMES + ", then perhaps a size; see --help");
		int size = size(which, args.length == 2 ? args[1] : "A");
		measure(make(which, SIZES[which][0], world)); // for the JIT
		App app = make(which, size, world);
		double[] time = measure(app);
		return report(NAMES.get(which), app, time);
	}

	private static int size(int which, String text) throws UsageException {
		int letter = LETTERS.indexOf(text.toUpperCase(Locale.ROOT));
		if (letter >= 0)
			return SIZES[which][letter];
		try {
			return Integer.parseInt(text);
		} catch (NumberFormatException e) {
			throw new UsageException("a size is tiny, A, B, C or a number, not \"" + text + "\"");
		}
	}

	private static App make(int which, int size, Intracomm world) throws UsageException {
		switch (which) {
		case 0:
			return new Crypt(size, world);
		case 1:
			return new LuFact(size, world);
		case 2:
			return new MolDyn(size, world);
		case 3:
			return new ShortestPaths(size, world);
		default:
			return new Fdtd(size, world);
		}
	}

	/** Prepares and runs; the time of this rank and the part of it that went by in communication. */
	private static double[] measure(App app) {
		app.prepare();
		app.world.Barrier();
		double before = app.communication();
		long start = System.nanoTime();
		app.run();
		double seconds = (System.nanoTime() - start) * 1e-9;
		return new double[] {seconds, (app.communication() - before) / seconds};
	}

	private static boolean report(String name, App app, double[] time) {
		Report report = new Report(app.rank == 0);
		report.line("%s, %s, %s", name, app.size(), app.ranks == 1 ? "1 rank" : app.ranks + " ranks");
		boolean good = app.reduce(app.verify(report) ? 0 : 1, MPI.SUM) == 0;
		double seconds = app.reduce(time[0], MPI.MAX);
		double mean = app.reduce(time[1], MPI.SUM) / app.ranks;
		double most = app.reduce(time[1], MPI.MAX);
		report.line("  %-36s %.4f", "time in seconds", seconds);
		report.line("  %-36s %.2f", "million " + app.unit() + " a second", app.work() / seconds);
		report.line("  %-36s %.1f", "communication, mean %", 100 * mean);
		report.line("  %-36s %.1f", "communication, max %", 100 * most);
		report.line("VERIFICATION %s", good ? "SUCCESSFUL" : "UNSUCCESSFUL");
		return good;
	}
}
