// SPDX-License-Identifier: MIT
package npb;

import mpi.MPI;

/**
 * The NAS Parallel Benchmarks CG, EP, IS, MG and FT on the API of MPJ Express; arguments: kernel and class.
 *
 * <p>Exit status: 0 if the result verifies, 1 if not, 2 for arguments or ranks that do not fit.
 */
public final class Npb {
	private Npb() {
	}

	/**
	 * A rank of the job.
	 *
	 * @param args what MPJ Express wants, then kernel and class
	 */
	public static void main(String[] args) {
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
		if (args.length != 2)
			throw new UsageException("arguments: CG, EP, IS, MG or FT, then the class S, W, A, B or C");
		ProblemClass problem = ProblemClass.of(args[1]);
		switch (args[0].toUpperCase(java.util.Locale.ROOT)) {
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

	private static boolean run(String[] args, CommTimer comm) throws UsageException {
		Kernel kernel = kernel(args, comm);
		ProblemClass problem = ProblemClass.of(args[1]);
		Report report = new Report(comm.rank == 0);
		report.head(kernel, problem, comm.size);
		kernel.prepare();

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
		report.end(kernel, problem, comm.size, slowest, meanShare, maxShare, verified);
		return verified;
	}
}
