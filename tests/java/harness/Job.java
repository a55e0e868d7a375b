// SPDX-License-Identifier: MIT
package harness;

import java.io.File;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;

/**
 * One parallel run: np JVMs of one main class with a conf file on free ports.
 *
 * <pre>
 * Job.run(mode, 4, Ring.class, "arg").assertSuccess();
 * Job.of(mode, 2, Victim.class).option("-Dibvdev.psl=1k").seconds(20).start()
 * </pre>
 *
 * Every rank gets the argument list of MPJ Express: rank, conf, device, then the program's own. The class path is
 * ibvdev.jar, the test classes, mpj.jar, log4j. A job that outlives its time limit is killed, and its result
 * reports which ranks were still running, each with a thread dump.
 */
public final class Job {
	private static final Random RANDOM = new Random();
	/** Names the runtime of AddressSanitizer, if the library under test is built with it. */
	private static final String PRELOAD = "ibvdev.test.preload";

	private final Mode mode;
	private final int np;
	private final String main;
	private final String[] args;
	private final List<String> options = new ArrayList<>();
	private final Map<String, String> environment = new LinkedHashMap<>();
	private final List<String> confLines = new ArrayList<>();
	private String device = "ibvdev";
	private String collector = "-XX:+UseSerialGC";
	private String heap = "256m";
	private String conf;
	private String classPath;
	private int seconds = 60;
	private boolean passDeviceArguments = true;

	private Job(Mode mode, int np, String main, String[] args) {
		this.mode = mode;
		this.np = np;
		this.main = main;
		this.args = args;
	}

	/**
	 * A job to be configured.
	 *
	 * @param mode how the JVMs run
	 * @param np   how many ranks
	 * @param main the class with the main method
	 * @param args what the program itself gets
	 * @return the job, not started
	 */
	public static Job of(Mode mode, int np, Class<?> main, String... args) {
		return new Job(mode, np, main.getName(), args);
	}

	/** Like {@link #of(Mode, int, Class, String...)}, for a class that the tests do not have. */
	public static Job ofClass(Mode mode, int np, String main, String... args) {
		return new Job(mode, np, main, args);
	}

	/** Like {@link #of}, and runs it at once. */
	public static Result run(Mode mode, int np, Class<?> main, String... args) {
		return of(mode, np, main, args).run();
	}

	/** Adds a JVM option, for example {@code -Dibvdev.psl=1k}. */
	public Job option(String option) {
		options.add(option);
		return this;
	}

	/** Sets the device name, by default ibvdev. */
	public Job device(String name) {
		device = name;
		return this;
	}

	/** Sets the option that chooses the garbage collector, by default the serial one's. */
	public Job collector(String option) {
		collector = option;
		return this;
	}

	/** Sets the size of the heap, by default 256m. */
	public Job heap(String size) {
		heap = size;
		return this;
	}

	/** Sets an environment variable of the ranks. */
	public Job env(String name, String value) {
		environment.put(name, value);
		return this;
	}

	/** Sets the time limit, by default 60 s. */
	public Job seconds(int limit) {
		seconds = limit;
		return this;
	}

	/** Replaces the whole class path. */
	public Job classPath(String path) {
		classPath = path;
		return this;
	}

	/** Uses this text as the second argument instead of a conf file made by the harness. */
	public Job conf(String text) {
		conf = text;
		return this;
	}

	/** Adds a line to the conf file, for example {@code #ibvdev psl=64k}. */
	public Job confLine(String line) {
		confLines.add(line);
		return this;
	}

	/** The program gets its own arguments only: no rank, conf and device in front. */
	public Job bare() {
		passDeviceArguments = false;
		return this;
	}

	/** Starts the job, waits for its end or the time limit. */
	public Result run() {
		return start().await();
	}

	/** Starts the job. The caller must call {@link Running#await}. */
	public Running start() {
		try {
			Path dir = Files.createTempDirectory("ibvdev-job-");
			if (conf == null)
				conf = writeConf(dir.resolve("job.conf"), freePorts(2 * np), confLines).toString();
			List<Process> processes = new ArrayList<>();
			for (int rank = 0; rank < np; rank++)
				processes.add(launch(rank, dir));
			return new Running(mode, main, dir, processes, seconds);
		} catch (IOException e) {
			throw new IllegalStateException("cannot start the job: " + e, e);
		}
	}

	private Process launch(int rank, Path dir) throws IOException {
		List<String> command = new ArrayList<>();
		command.add(mode.java());
		command.addAll(mode.options());
		command.addAll(List.of("-ea", "-Xmx" + heap, collector, "-XX:-UsePerfData"));
		command.add("-XX:ErrorFile=" + dir.resolve("hs_err." + rank));
		command.addAll(options);
		command.addAll(List.of("-cp", classPath != null ? classPath : defaultClassPath(), main));
		if (passDeviceArguments)
			command.addAll(List.of(Integer.toString(rank), conf, device));
		command.addAll(Arrays.asList(args));
		ProcessBuilder builder = new ProcessBuilder(command);
		builder.environment().putIfAbsent("MPJ_HOME", "/usr/share/mpj");
		if (isSanitized())
			sanitize(builder.environment());
		builder.environment().putAll(environment);
		builder.redirectOutput(dir.resolve("out." + rank).toFile());
		builder.redirectError(dir.resolve("err." + rank).toFile());
		builder.redirectInput(new File("/dev/null"));
		return builder.start();
	}

	/** Is the library under test built with AddressSanitizer? */
	public static boolean isSanitized() {
		return !System.getProperty(PRELOAD, "").isEmpty();
	}

	/** The runtime of AddressSanitizer comes first; the signals that the JVM uses are the JVM's, and so is memory that it never frees. What is not there is NULL. */
	private static void sanitize(Map<String, String> environment) {
		environment.put("LD_PRELOAD", System.getProperty(PRELOAD));
		environment.put("ASAN_OPTIONS", "handle_segv=0:handle_sigbus=0:handle_sigfpe=0:handle_sigill=0:detect_leaks=0:allocator_may_return_null=1");
	}

	/** ibvdev.jar, the tests' own class path, mpj.jar and log4j, in this order. */
	public static String defaultClassPath() {
		return String.join(File.pathSeparator, ibvdevJar(), System.getProperty("java.class.path"), mpjJar(), log4jJar());
	}

	/** The jar under test. */
	public static String ibvdevJar() {
		return property("ibvdev.test.jar");
	}

	/** MPJ Express. */
	public static String mpjJar() {
		return System.getProperty("ibvdev.test.mpj_jar", "/usr/share/java/mpj.jar");
	}

	/** The interface of FastMPJ's devices. */
	public static String xxdevJar() {
		return property("ibvdev.test.xxdev_jar");
	}

	/** What MPJ Express logs with. */
	public static String log4jJar() {
		return System.getProperty("ibvdev.test.log4j_jar", "/usr/share/java/log4j-1.2.jar");
	}

	private static String property(String name) {
		String value = System.getProperty(name);
		if (value == null)
			throw new IllegalStateException("run the tests through meson, or with -D" + name + "=...");
		return value;
	}

	/**
	 * Writes a conf file in niodev's line format.
	 *
	 * @param file  where
	 * @param ports two for each rank
	 * @param extra lines put in front
	 * @return file
	 */
	public static Path writeConf(Path file, int[] ports, List<String> extra) throws IOException {
		List<String> lines = new ArrayList<>(extra);
		lines.add("# Number of Processes");
		lines.add(Integer.toString(ports.length / 2));
		lines.add("# Protocol Switch Limit");
		lines.add("131072");
		lines.add("# Entry, HOST_NAME/IP@READPORT@WRITEPORT@RANK@DEBUGPORT");
		for (int rank = 0; rank < ports.length / 2; rank++)
			lines.add("localhost@" + ports[2 * rank] + "@" + ports[2 * rank + 1] + "@" + rank + "@0");
		return Files.write(file, lines);
	}

	/**
	 * Ports that nobody listens on now, from below the range that the kernel hands out itself.
	 *
	 * @param count how many, all different
	 */
	public static int[] freePorts(int count) {
		int[] ports = new int[count];
		for (int i = 0, tries = 0; i < count; tries++) {
			int port = 11000 + RANDOM.nextInt(20000);
			boolean taken = Arrays.stream(ports, 0, i).anyMatch(p -> p == port);
			if (!taken && isFree(port))
				ports[i++] = port;
			if (tries > 1000 + 10 * count)
				throw new IllegalStateException("no free ports");
		}
		return ports;
	}

	private static boolean isFree(int port) {
		try (ServerSocket socket = new ServerSocket()) {
			socket.setReuseAddress(true);
			socket.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), port));
			return true;
		} catch (IOException e) {
			return false;
		}
	}
}
