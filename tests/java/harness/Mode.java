// SPDX-License-Identifier: MIT
package harness;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;

/**
 * How the JVMs of a job are run. Every test of the suite "java" runs in every mode of {@link #all()}.
 */
public enum Mode {
	/** The JDK that runs the tests. */
	PLAIN,
	/** The same with {@code -Xcheck:jni}; a warning of the checker fails the job. */
	CHECK_JNI,
	/** The newer JDK named by {@code -Dibvdev.test.newer_jdk}, where one was found; a start-up warning fails the job. */
	NEWER_JDK;

	/**
	 * The modes that this machine can run.
	 *
	 * @return at least PLAIN and CHECK_JNI; PLAIN alone if the environment has IBVDEV_TEST_PLAIN (an emulated machine), or if the library is built with a
	 *         sanitizer
	 */
	public static List<Mode> all() {
		if (System.getenv("IBVDEV_TEST_PLAIN") != null || Job.isSanitized())
			return List.of(PLAIN);
		List<Mode> modes = new ArrayList<>(List.of(PLAIN, CHECK_JNI));
		if (newerJdk() != null)
			modes.add(NEWER_JDK);
		return modes;
	}

	/**
	 * The modes, without CHECK_JNI, whose JDK is that new.
	 *
	 * @param feature the oldest feature release
	 * @return perhaps none
	 */
	public static List<Mode> since(int feature) {
		List<Mode> modes = new ArrayList<>();
		if (Runtime.version().feature() >= feature)
			modes.add(PLAIN);
		if (all().contains(NEWER_JDK) && newerVersion() >= feature)
			modes.add(NEWER_JDK);
		return modes;
	}

	/** The home of the newer JDK, or null. */
	static String newerJdk() {
		String home = System.getProperty("ibvdev.test.newer_jdk", "");
		return home.isEmpty() ? null : home;
	}

	/** The feature release of the newer JDK. */
	private static int newerVersion() {
		Properties release = new Properties();
		try (InputStream in = Files.newInputStream(Path.of(newerJdk(), "release"))) {
			release.load(in);
		} catch (IOException e) {
			throw new UncheckedIOException(newerJdk() + " has no file \"release\"", e);
		}
		return Runtime.Version.parse(release.getProperty("JAVA_VERSION").replace("\"", "")).feature();
	}

	/** The program to start. */
	public String java() {
		String home = this == NEWER_JDK ? newerJdk() : System.getProperty("java.home");
		return home + "/bin/java";
	}

	/** The options that make the mode. */
	List<String> options() {
		switch (this) {
		case CHECK_JNI:
			return List.of("-Xcheck:jni");
		case NEWER_JDK:
			// the case buffersFreedByHand frees a buffer by sun.misc.Unsafe, about which JDK 24 and later warn
			return newerVersion() < 23 ? List.of("--enable-native-access=ALL-UNNAMED")
									   : List.of("--enable-native-access=ALL-UNNAMED", "--sun-misc-unsafe-memory-access=allow");
		default:
			return List.of();
		}
	}

	/** What this mode forbids in a rank's output: the first forbidden line, or null. */
	String complaint(String output) {
		for (String line : output.split("\n")) {
			boolean checker = line.contains("WARNING in native method") || line.contains("FATAL ERROR in native") || line.contains("WARNING: JNI local refs");
			boolean access = this == NEWER_JDK && line.startsWith("WARNING:");
			if (checker || access)
				return line;
		}
		return null;
	}
}
