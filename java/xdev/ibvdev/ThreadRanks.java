// SPDX-License-Identifier: MIT
package xdev.ibvdev;

import java.io.File;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.net.MalformedURLException;
import java.net.URL;
import java.net.URLClassLoader;
import java.util.ArrayList;
import java.util.List;

/**
 * What {@code ibvrun -dev smpdev} starts: all ranks as threads of one JVM, as smpdev needs them.
 *
 * <p>Two layers of class loaders: one holds what the ranks share (smpdev and its buffers), and one for each rank holds the
 * rank's own copy of {@code mpi.*}, {@code mpjdev.*} and the program, statics included. Neither sees the JVM's own class path.
 *
 * <p>Unlike the starter of MPJ Express, which exits with 0 then, a rank that ends by an exception ends the JVM with status 1.
 */
public final class ThreadRanks {
	private final int size;
	private final String mainClass;
	private final String[] programArguments;
	private final URL[] rankPath;
	private final ClassLoader shared;

	private ThreadRanks(String[] args) throws MalformedURLException {
		shared = new URLClassLoader(urls(args[0]), ClassLoader.getPlatformClassLoader());
		rankPath = urls(args[1]);
		size = Integer.parseInt(args[2]);
		mainClass = args[3];
		programArguments = java.util.Arrays.copyOfRange(args, 4, args.length);
	}

	/**
	 * Runs the ranks and returns when their main methods have.
	 *
	 * @param args class path of what is shared, class path of a rank, number of ranks, main class, its arguments
	 * @throws Exception if the shared classes are not those of smpdev
	 */
	public static void main(String[] args) throws Exception {
		if (args.length < 4) {
			System.err.println("usage: ThreadRanks <shared class path> <rank's class path> <ranks> <class> [arguments]");
			System.exit(2);
		}
		new ThreadRanks(args).run();
	}

	private void run() throws Exception {
		Class<?> groups = Class.forName("xdev.smpdev.SMPDevProcess", true, shared); // how smpdev distinguishes ranks
		List<Thread> threads = new ArrayList<>();
		for (int rank = 0; rank < size; rank++) {
			int mine = rank;
			ThreadGroup group = (ThreadGroup) groups.getConstructor(String.class).newInstance("MPI" + rank);
			Thread thread = new Thread(group, () -> runRank(mine), Integer.toString(rank));
			threads.add(thread);
		}
		threads.forEach(Thread::start);
		for (Thread thread : threads)
			thread.join();
	}

	private void runRank(int rank) {
		ClassLoader loader = new URLClassLoader(rankPath, shared);
		Thread.currentThread().setContextClassLoader(loader);
		List<String> args = new ArrayList<>(List.of(Integer.toString(rank), Integer.toString(size), "smpdev"));
		args.addAll(List.of(programArguments));
		try {
			Method main = Class.forName(mainClass, true, loader).getMethod("main", String[].class);
			main.setAccessible(true);
			main.invoke(null, (Object) args.toArray(new String[0]));
		} catch (InvocationTargetException e) {
			fail(rank, e.getCause());
		} catch (ReflectiveOperationException | LinkageError e) {
			fail(rank, e);
		}
	}

	private static void fail(int rank, Throwable cause) {
		synchronized (ThreadRanks.class) { // one stack at a time
			System.err.println("rank " + rank + " of smpdev ended by an exception; ending all ranks");
			cause.printStackTrace();
			System.err.flush();
			System.out.flush();
			Runtime.getRuntime().halt(1); // a hook of the program may wait for a rank that is stuck
		}
	}

	private static URL[] urls(String classPath) throws MalformedURLException {
		List<URL> urls = new ArrayList<>();
		for (String entry : classPath.split(File.pathSeparator))
			urls.add(new File(entry).toURI().toURL());
		return urls.toArray(new URL[0]);
	}
}
