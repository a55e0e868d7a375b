// SPDX-License-Identifier: MIT
package npb;

import java.util.Arrays;
import java.util.Locale;
import mpi.MPI;

/**
 * The NAS Parallel Benchmarks CG, EP, IS, MG and FT on the API of MPJ Express; see {@link #HELP}.
 *
 * <p>Exit status: 0 if the result verifies, 1 if not, 2 for arguments or ranks that do not fit.
 */
public final class Npb {
	private static final String HELP = String.join(System.lineSeparator(),
		"usage: ibvrun -np N [-dev DEVICE] -cp build/bench/npb/npb.jar npb.Npb KERNEL CLASS [WARM-UP]",
		"",
		"  KERNEL   CG, EP, IS, MG or FT",
		"  CLASS    S, W, A, B or C",
		"  WARM-UP  seconds for which untimed runs are made first, at least one, so that the JIT compiler is done with the",
		"           kernel and MPJ Express; 0 (if nothing is said): only the untimed iteration that NPB has",
		"",
		"Exit status: 0 for VERIFICATION SUCCESSFUL, 1 for UNSUCCESSFUL, 2 for arguments or ranks that do not fit.");

	private Npb() {
	}

	/**
	 * A rank of the job.
	 *
	 * @param args what MPJ Express wants, then kernel, class, and perhaps seconds of warm-up
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
			CommTimer comm = new CommTimer(MPI.COMM_WORLD);
			try {
				status = run(rest, comm) ? 0 : 1;
			} catch (UsageException e) { // on all ranks alike
				if (comm.rank == 0)
					System.err.println("npb: " + e.getMessage());
				status = 2;
			}
			MPI.Finalize();
		} catch (RuntimeException | OutOfMemoryError e) {
			e.printStackTrace();
		}
		System.exit(status); // also where a device leaves threads behind
	}

	private static Kernel kernel(String[] args, CommTimer comm) throws UsageException {
		if (args.length < 2 || args.length > 3)
			throw new UsageException("arguments: CG, EP, IS, MG or FT, then the class S, W, A, B or C; --help tells more");
		ProblemClass problem = ProblemClass.of(args[1]);
		switch (args[0].toUpperCase(Locale.ROOT)) {
			case "CG":
				return new Cg(problem, comm);
			case "EP":
				return new Ep(problem, comm);
			case "IS":
				return new Is(problem, comm);
			case "MG":
				return new Mg(problem, comm);
			case "FT":
				return new Ft(problem, comm);
			default:
				throw new UsageException("there is no kernel \"" + args[0] + "\": CG, EP, IS, MG or FT");
		}
	}

	private static double warmUp(String[] args) throws UsageException {
		if (args.length < 3)
			return 0;
		try {
			return Double.parseDouble(args[2]);
		} catch (NumberFormatException e) {
			throw new UsageException("the warm-up is a number of seconds, not \"" + args[2] + "\"");
		}
	}

	/** Untimed runs until that many seconds are over. */
	private static void warm(Kernel kernel, CommTimer comm, double seconds) {
		double start = System.nanoTime() * 1e-9;
		double spent = 0;
		while (spent < seconds) {
			kernel.run();
			kernel.reset();
			spent = comm.max(System.nanoTime() * 1e-9 - start); // the same on all ranks
		}
	}

	private static boolean run(String[] args, CommTimer comm) throws UsageException {
		double warmUp = warmUp(args);
		Kernel kernel = kernel(args, comm);
		ProblemClass problem = ProblemClass.of(args[1]);
		Report report = new Report(comm.rank == 0);
		report.head(kernel, problem, comm.size);
		kernel.prepare();
		warm(kernel, comm, warmUp);

		comm.barrier();
		comm.reset();
		long start = System.nanoTime();
		kernel.run();
		double seconds = (System.nanoTime() - start) * 1e-9;
		double share = comm.seconds() / seconds;

		double slowest = comm.max(seconds);
		double maxShare = comm.max(share);
		double meanShare = comm.sum(share) / comm.size;
		boolean verified = comm.sum(kernel.verify(report) ? 0 : 1) == 0;
		report.end(kernel, problem, comm.size, warmUp, slowest, meanShare, maxShare, verified);
		return verified;
	}
}
