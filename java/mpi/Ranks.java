// SPDX-License-Identifier: MIT
package mpi;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.io.ObjectStreamClass;
import java.io.Serializable;
import java.io.UncheckedIOException;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import xdev.ibvdev.ThreadRanks;

/**
 * Jobs whose ranks are threads of this JVM, for unit tests and for first steps: no launcher, no other process.
 *
 * <pre>
 *   Ranks.run(4, () -> {
 *       int[] sum = {MPI.COMM_WORLD.Rank()};
 *       MPI.COMM_WORLD.Allreduce(sum, 0, sum, 0, 1, MPI.INT, MPI.SUM);
 *       assertEquals(6, sum[0]);
 *   });
 * </pre>
 *
 * <p>Each rank has a class loader of its own over the JVM's class path, so statics are a rank's own, those of {@link MPI} included; classes of the JDK
 * are shared, and with them system properties, standard streams and {@code System.exit}. The native library is loaded once for each. Programs of a module path are not
 * found: put them on the class path.
 *
 * <p>A rank that ends by an exception, or without Finalize, is dead to the others: their operations with it fail, as they do when a process dies. A rank that waits for
 * one that is alive waits for ever: give the test a time limit. Where the calling thread is interrupted, the ranks are left to themselves.
 */
public final class Ranks {
	/** What each rank does between Init and Finalize. A copy of it runs in each: values that a lambda uses are serialized. */
	@FunctionalInterface
	public interface Program extends Serializable {
		/**
		 * Called once in each rank.
		 *
		 * @throws Exception whatever the rank ends by
		 */
		void run() throws Exception;
	}

	private Ranks() {}

	/**
	 * Runs a lambda or an object on each rank, after Init and before Finalize, and returns when all have ended.
	 *
	 * @param ranks   how many, 1 to 1,024
	 * @param program what each does; a lambda that uses no fields or methods of an object that is not Serializable
	 * @throws MPIException if a rank ended by an exception: the first is the cause, with those of other ranks suppressed; or for a bad argument
	 */
	public static void run(int ranks, Program program) {
		if (program == null)
			throw Errors.of("Ranks.run: the program is null");
		byte[] image = image(program);
		run(ranks, (rank, loader, conf) -> {
			Method start = loader.loadClass(Ranks.class.getName()).getDeclaredMethod("start", byte[].class, String[].class);
			start.setAccessible(true);
			try {
				start.invoke(null, image, new String[] {Integer.toString(rank), conf, "ibvdev"});
			} catch (InvocationTargetException e) {
				throw e.getCause();
			}
		});
	}

	/**
	 * Runs the main method of a program on each rank, and returns when all have ended, with the threads that they started.
	 *
	 * @param ranks     how many, 1 to 1,024
	 * @param program   the class with the main method, which calls {@link MPI#Init} with its arguments
	 * @param arguments the program's own; rank, conf and device come before them, as ibvrun does it
	 * @throws MPIException if a rank ended by an exception: the first is the cause, with those of other ranks suppressed; or for a bad argument
	 */
	public static void run(int ranks, Class<?> program, String... arguments) {
		if (program == null || arguments == null)
			throw Errors.of("Ranks.run: " + (program == null ? "the program" : "arguments") + " is null");
		run(ranks, (rank, loader, conf) -> {
			List<String> all = new ArrayList<>(List.of(Integer.toString(rank), conf, "ibvdev"));
			all.addAll(List.of(arguments));
			ThreadRanks.callMain(program.getName(), all, loader);
		});
	}

	private static final int PSL = 131072;

	private interface Body {
		void run(int rank, ClassLoader loader, String conf) throws Throwable;
	}

	private static void run(int ranks, Body body) {
		if (ranks < 1 || ranks > 1024)
			throw Errors.of("Ranks.run: " + ranks + " ranks: must be 1 to 1,024; more are for ibvrun and several machines");
		List<Throwable> failures = new ArrayList<>();
		List<Socket> reserved = new ArrayList<>();
		try {
			Path conf = conf(ranks, reserved);
			try {
				new ThreadRanks(System.getProperty("java.class.path"), ClassLoader.getPlatformClassLoader())
						.run(ranks, (rank, loader) -> body.run(rank, loader, conf.toString()), (rank, cause) -> add(failures, rank, cause));
			} finally {
				Files.delete(conf);
			}
		} catch (IOException e) {
			throw new MPIException("Ranks.run: ports of the loopback interface, and a conf file in " + System.getProperty("java.io.tmpdir") + ": " + e, e);
		} catch (InterruptedException e) {
			Thread.currentThread().interrupt();
			throw new MPIException("Ranks.run: interrupted; its ranks go on", e);
		} finally {
			reserved.forEach(Ranks::close);
		}
		if (!failures.isEmpty())
			throw failure(failures);
	}

	private static void add(List<Throwable> failures, int rank, Throwable cause) {
		synchronized (failures) {
			failures.add(new MPIException("rank " + rank + ": " + cause, cause));
		}
	}

	/** The others mostly follow from the first. */
	private static MPIException failure(List<Throwable> failures) {
		MPIException first = (MPIException) failures.get(0);
		for (Throwable later : failures.subList(1, failures.size()))
			first.addSuppressed(later);
		return first;
	}

	/**
	 * Ports are reserved by being bound, not listened on: Linux gives them to nobody who asks for any port, and to ranks, which ask for these. The file, with the secret in
	 * it, is this user's alone.
	 */
	private static Path conf(int ranks, List<Socket> reserved) throws IOException {
		List<String> lines = new ArrayList<>(List.of(Integer.toString(ranks), Integer.toString(PSL), "#ibvdev job_secret=" + UUID.randomUUID()));
		for (int rank = 0; rank < ranks; rank++) {
			Socket socket = new Socket();
			reserved.add(socket);
			socket.setReuseAddress(true);
			socket.bind(new InetSocketAddress(InetAddress.getByName("127.0.0.1"), 0));
			lines.add("127.0.0.1@" + socket.getLocalPort() + "@" + socket.getLocalPort() + "@" + rank + "@0");
		}
		return Files.write(Files.createTempFile("ibvdev-", ".conf"), lines);
	}

	private static void close(Socket socket) {
		try {
			socket.close();
		} catch (IOException e) {
			throw new UncheckedIOException(e); // there is nothing to flush
		}
	}

	private static byte[] image(Program program) {
		ByteArrayOutputStream bytes = new ByteArrayOutputStream();
		try (ObjectOutputStream out = new ObjectOutputStream(bytes)) {
			out.writeObject(program);
		} catch (IOException e) {
			throw new MPIException("Ranks.run: the program cannot be copied to the ranks: " + e
							+ "; a lambda that uses a field or method of an object takes the whole object: use local variables or static methods",
					e);
		}
		return bytes.toByteArray();
	}

	/** In the rank's class loader, called from the one of Ranks.run. */
	static void start(byte[] image, String[] args) throws Exception {
		ClassLoader loader = Ranks.class.getClassLoader();
		Program program;
		try (ObjectInputStream in = new ObjectInputStream(new ByteArrayInputStream(image)) {
			@Override
			protected Class<?> resolveClass(ObjectStreamClass type) throws IOException, ClassNotFoundException {
				try {
					return Class.forName(type.getName(), false, loader);
				} catch (ClassNotFoundException e) {
					return super.resolveClass(type); // a primitive type
				}
			}
		}) {
			program = (Program) in.readObject();
		}
		MPI.Init(args);
		program.run();
		MPI.Finalize();
	}
}
