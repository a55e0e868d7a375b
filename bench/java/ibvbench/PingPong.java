// SPDX-License-Identifier: MIT
package ibvbench;

import java.util.Arrays;
import java.util.List;
import mpi.MPI;

/**
 * Messages between the ranks of a job, at one of four levels: the native methods, the device, the device behind the
 * interface of FastMPJ, the mpi.* API.
 * Started by ibvrun with the options of {@link Options}.
 */
public final class PingPong {
	/** Its ranks are threads of one JVM. */
	private static final String THREADS_DEVICE = "smpdev";

	private PingPong() {}

	/**
	 * Runs one rank.
	 *
	 * @param args rank, conf, device, options
	 * @throws Exception if anything fails
	 */
	public static void main(String[] args) throws Exception {
		if (args.length < 3) {
			System.err.println("usage: ibvrun -np N --bind core [-dev NAME] -cp bench.jar ibvbench.PingPong [options]\n" + Options.USAGE);
			System.exit(2);
		}
		int code = 0;
		try {
			List<String> own = Arrays.asList(args).subList(3, args.length);
			run(args, new Options(own));
		} catch (IllegalArgumentException e) {
			System.err.println("bench: " + e.getMessage() + "\n" + Options.USAGE);
			code = 2;
		} catch (Throwable e) {
			e.printStackTrace();
			code = 1;
		}
		if (code == 0 && args[2].equals(THREADS_DEVICE))
			return; // the other ranks live in this JVM
		System.exit(code); // niodev's selector is no daemon thread, and the other rank may wait for this one
	}

	private static void run(String[] args, Options options) throws Exception {
		if (args[2].equals(THREADS_DEVICE))
			Pin.currentThread(Integer.parseInt(args[0]));
		Layer layer = open(args, options);
		Report report = new Report(args[2], layer.size(), options);
		Harness harness = new Harness(layer, options, report);
		if (layer.rank() == 0)
			report.heading();
		harness.run();
		if (layer.rank() == 0)
			report.close();
		layer.close();
	}

	private static Layer open(String[] args, Options options) throws Exception {
		switch (options.level) {
		case "mpi":
			MPI.Init(args);
			return new MpiLayer(options.message);
		case "xdev":
			return new XdevLayer(args);
		case "xxdev":
			return new XxdevLayer(args, options.message);
		case "natives":
			return (Layer) Class.forName("xdev.ibvdev.NativesLayer").getDeclaredMethod("open", String[].class).invoke(null, (Object) args);
		default:
			throw new IllegalArgumentException("--level takes mpi, xdev, xxdev or natives; not \"" + options.level + "\"");
		}
	}
}
