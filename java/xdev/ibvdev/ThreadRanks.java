// SPDX-License-Identifier: MIT
package xdev.ibvdev;

import java.io.File;
import java.lang.reflect.Constructor;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.net.MalformedURLException;
import java.net.URL;
import java.net.URLClassLoader;
import java.util.ArrayList;
import java.util.List;

/**
 * All ranks of a job as threads of one JVM: what {@code ibvrun --threads} and {@code ibvrun -dev smpdev} start, and {@code mpi.Ranks} on top.
 *
 * <p>Each rank has a class loader with its own copy of the program, of {@code mpi.*} and of the devices, statics and native library
 * included, and a thread group. Above those is a class loader for what the ranks share (classes of smpdev; for ibvdev none), above that the
 * platform's. None sees the JVM's own class path. A rank ends when its body has returned and all its non-daemon threads have ended, and
 * leaves its job then, as a process does.
 */
public final class ThreadRanks {
	/** What a rank does. */
	@FunctionalInterface
	public interface Body {
		/**
		 * Called in the rank's thread, whose context class loader is the rank's.
		 *
		 * @param rank   its number
		 * @param loader its class loader
		 * @throws Throwable whatever the rank ends by
		 */
		void run(int rank, ClassLoader loader) throws Throwable;
	}

	/** What hears of a rank that ended by an exception, in the rank's thread. */
	@FunctionalInterface
	public interface Failure {
		/**
		 * Called before the rank leaves its job.
		 *
		 * @param rank  its number
		 * @param cause what was thrown
		 */
		void failed(int rank, Throwable cause);
	}

	private final URL[] path;
	private final ClassLoader shared;
	private final Constructor<? extends ThreadGroup> groups;

	/**
	 * Ranks that are not yet started.
	 *
	 * @param path   class path of each rank
	 * @param shared parent of the ranks' class loaders
	 * @throws MalformedURLException for an entry that no URL can name
	 */
	public ThreadRanks(String path, ClassLoader shared) throws MalformedURLException {
		this(path, shared, null);
	}

	private ThreadRanks(String path, ClassLoader shared, Constructor<? extends ThreadGroup> groups) throws MalformedURLException {
		this.path = urls(path);
		this.shared = shared;
		this.groups = groups;
	}

	/**
	 * Runs the ranks and returns when all have ended.
	 *
	 * @param size    how many
	 * @param body    what each does
	 * @param failure hears of exceptions
	 * @throws InterruptedException if the calling thread is interrupted; the ranks go on
	 */
	public void run(int size, Body body, Failure failure) throws InterruptedException {
		List<Thread> threads = new ArrayList<>();
		for (int rank = 0; rank < size; rank++) {
			int mine = rank;
			Thread thread = new Thread(group(rank), () -> runRank(mine, body, failure), "rank " + rank);
			thread.setDaemon(false); // nor are those that it starts then
			threads.add(thread);
		}
		threads.forEach(Thread::start);
		for (Thread thread : threads)
			thread.join();
	}

	private ThreadGroup group(int rank) {
		try {
			return groups == null ? new ThreadGroup("rank " + rank) : groups.newInstance("MPI" + rank);
		} catch (ReflectiveOperationException e) {
			throw new IllegalStateException("a thread group of smpdev", e);
		}
	}

	private void runRank(int rank, Body body, Failure failure) {
		ClassLoader loader = new URLClassLoader(path, shared); // not closed: it shares open jars with those of other ranks
		Thread.currentThread().setContextClassLoader(loader);
		try {
			body.run(rank, loader);
			awaitOthers();
		} catch (Throwable e) {
			failure.failed(rank, e);
		} finally {
			leave(loader);
		}
	}

	/** Of this thread's group, but daemons. */
	private static void awaitOthers() throws InterruptedException {
		Thread self = Thread.currentThread();
		for (boolean found = true; found;) {
			Thread[] members = new Thread[self.getThreadGroup().activeCount() + 16];
			int count = self.getThreadGroup().enumerate(members);
			found = false;
			for (int i = 0; i < count; i++) {
				if (members[i] == self || members[i].isDaemon())
					continue;
				found = true;
				members[i].join();
			}
		}
	}

	/** Devices of the rank that are still open are lost to the others, as those of a process that has ended. */
	private static void leave(ClassLoader loader) {
		try {
			loader.loadClass(NativeLibrary.class.getName()).getMethod("leave").invoke(null);
		} catch (ClassNotFoundException e) {
			// smpdev has no native library
		} catch (ReflectiveOperationException e) {
			throw new IllegalStateException("the rank's native library", e);
		}
	}

	/**
	 * Runs a program on each rank; its arguments begin with rank, conf and device.
	 *
	 * @param args class path of what is shared, class path of a rank, number of ranks, conf, device, main class, its arguments
	 * @throws Exception if the shared classes are not those of smpdev
	 */
	public static void main(String[] args) throws Exception {
		if (args.length < 6) {
			System.err.println("usage: ThreadRanks <shared class path> <rank's class path> <ranks> <conf> <device> <class> [arguments]");
			System.exit(2);
		}
		ClassLoader shared = new URLClassLoader(urls(args[0]), ClassLoader.getPlatformClassLoader());
		String[] own = java.util.Arrays.copyOfRange(args, 3, args.length);
		new ThreadRanks(args[1], shared, args[4].equals("smpdev") ? groupsOfSmpdev(shared) : null)
				.run(Integer.parseInt(args[2]), (rank, loader) -> callMain(own, rank, loader), ThreadRanks::endAll);
	}

	/** How smpdev distinguishes ranks. */
	private static Constructor<? extends ThreadGroup> groupsOfSmpdev(ClassLoader shared) throws ReflectiveOperationException {
		return Class.forName("xdev.smpdev.SMPDevProcess", true, shared).asSubclass(ThreadGroup.class).getConstructor(String.class);
	}

	private static void callMain(String[] words, int rank, ClassLoader loader) throws Throwable {
		List<String> args = new ArrayList<>(List.of(Integer.toString(rank), words[0], words[1]));
		args.addAll(List.of(words).subList(3, words.length));
		callMain(words[2], args, loader);
	}

	/**
	 * Calls a program's main method.
	 *
	 * @param name   its class
	 * @param args   its arguments
	 * @param loader the rank's
	 * @throws Throwable what it throws
	 */
	public static void callMain(String name, List<String> args, ClassLoader loader) throws Throwable {
		Method main = Class.forName(name, true, loader).getMethod("main", String[].class);
		main.setAccessible(true);
		try {
			main.invoke(null, (Object) args.toArray(new String[0]));
		} catch (InvocationTargetException e) {
			throw e.getCause();
		}
	}

	/** Unlike the starter of MPJ Express, which exits with 0 then, one that ends by an exception ends the JVM with status 1. */
	private static void endAll(int rank, Throwable cause) {
		synchronized (ThreadRanks.class) { // one stack at a time
			System.err.println("rank " + rank + " ended by an exception; ending all ranks");
			cause.printStackTrace();
			System.err.flush();
			System.out.flush();
			Runtime.getRuntime().halt(1); // a hook of the program may wait for a rank that is stuck
		}
	}

	private static URL[] urls(String classPath) throws MalformedURLException {
		List<URL> urls = new ArrayList<>();
		for (String entry : classPath.split(File.pathSeparator))
			if (!entry.isEmpty())
				urls.add(new File(entry).toURI().toURL());
		return urls.toArray(new URL[0]);
	}
}
