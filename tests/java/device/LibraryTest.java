// SPDX-License-Identifier: MIT
package device;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeFalse;

import harness.EveryMode;
import harness.Job;
import harness.Mode;
import harness.Result;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.jar.JarEntry;
import java.util.jar.JarFile;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Finding and refusing the native library, and the information that the jar prints. */
final class LibraryTest {
	@TempDir Path dir;

	private static Job info(Mode mode, String... args) {
		return Job.ofClass(mode, 1, "xdev.ibvdev.Info", args).bare();
	}

	private static Job expect(String... words) {
		String[] args = new String[words.length + 1];
		args[0] = "expect";
		System.arraycopy(words, 0, args, 1, words.length);
		return Job.of(Mode.PLAIN, 1, Lifecycle.class, args);
	}

	private static String built() {
		return System.getProperty("ibvdev.test.native");
	}

	private static void refused(Job job) {
		Result result = job.run().assertSuccess();
		assertTrue(result.stdout(0).contains("failed as it should"), result.toString());
	}

	@EveryMode
	void fromTheJarLeavingNothingBehind(Mode mode) throws IOException {
		Result result = info(mode).option("-Djava.io.tmpdir=" + dir).run().assertSuccess();
		assertTrue(result.stdout(0).contains("native library: ibvdev.jar!/META-INF/native/"), result.toString());
		assertEquals(0, dir.toFile().list().length, "files left in the temporary folder");
	}

	@EveryMode
	void fromTheProperty(Mode mode) {
		Result result = info(mode).option("-Dibvdev.library=" + built()).run().assertSuccess();
		assertTrue(result.stdout(0).contains("native library: " + built()), result.toString());
	}

	@Test
	void fromTheLibraryPath() throws IOException {
		Path copy = Files.copy(Path.of(built()), dir.resolve("libibvdev.so"));
		Result result = info(Mode.PLAIN).option("-Djava.library.path=/nonexistent:" + dir).run().assertSuccess();
		assertTrue(result.stdout(0).contains("native library: " + copy), result.toString());
	}

	@Test
	void aBadOneOnTheLibraryPathIsPassedOver() throws IOException {
		Files.writeString(dir.resolve("libibvdev.so"), "this is text, and long enough");
		Result result = info(Mode.PLAIN).option("-Djava.library.path=" + dir).run().assertSuccess();
		assertTrue(result.stdout(0).contains("native library: ibvdev.jar!/"), result.toString());
	}

	@Test
	void missingFile() {
		refused(expect("/nonexistent/x.so", "no such file", "nothing else was tried").option("-Dibvdev.library=/nonexistent/x.so"));
	}

	@Test
	void directory() {
		refused(expect(dir.toString(), "directory").option("-Dibvdev.library=" + dir));
	}

	@Test
	void notALibrary() throws IOException {
		Path file = Files.writeString(dir.resolve("x.so"), "this is text, and long enough");
		refused(expect(file.toString(), "not a shared library").option("-Dibvdev.library=" + file));
	}

	@Test
	void truncatedLibrary() throws IOException {
		byte[] whole = Files.readAllBytes(Path.of(built()));
		for (int length : new int[] {70, 2000, 60000}) {
			Path file = Files.write(dir.resolve("x.so"), java.util.Arrays.copyOf(whole, length));
			refused(expect(file.toString(), "cut short", String.valueOf(length)).option("-Dibvdev.library=" + file));
		}
	}

	@Test
	void otherArchitecture() throws IOException {
		byte[] whole = Files.readAllBytes(Path.of(built()));
		whole[18] = 8; /* MIPS */
		whole[19] = 0;
		Path file = Files.write(dir.resolve("x.so"), whole);
		refused(expect(file.toString(), "wrong architecture", "machine 8").option("-Dibvdev.library=" + file));
	}

	@Test
	void unreadable() throws IOException {
		Path file = Files.copy(Path.of(built()), dir.resolve("x.so"));
		Files.setPosixFilePermissions(file, PosixFilePermissions.fromString("---------"));
		assumeFalse(Files.isReadable(file), "this user reads everything");
		refused(expect(file.toString(), "not readable").option("-Dibvdev.library=" + file));
	}

	/** The jar's classes, with an own version of the class that knows the version. */
	@Test
	void otherVersion() throws IOException {
		byte[] old = "0.1.0".getBytes(StandardCharsets.US_ASCII);
		byte[] type;
		try (JarFile jar = new JarFile(Job.ibvdevJar()); InputStream in = jar.getInputStream(jar.getEntry("xdev/ibvdev/Native.class"))) {
			type = in.readAllBytes();
		}
		int at = new String(type, StandardCharsets.ISO_8859_1).indexOf("0.1.0");
		assertTrue(at > 0, "the class holds the version");
		for (int i = 0; i < old.length; i++)
			type[at + i] = (byte) "9.9.9".charAt(i);
		Path folder = Files.createDirectories(dir.resolve("xdev/ibvdev"));
		Files.write(folder.resolve("Native.class"), type);
		refused(expect("9.9.9", "0.1.0", "install both from one build", "the jar's own copy").classPath(dir + File.pathSeparator + Job.defaultClassPath()));
	}

	@Test
	void nothingFits() throws IOException {
		Path jar = Files.createDirectories(dir.resolve("classes"));
		try (JarFile whole = new JarFile(Job.ibvdevJar())) {
			for (JarEntry entry : (Iterable<JarEntry>) whole.stream()::iterator) {
				if (!entry.getName().endsWith(".class"))
					continue;
				Path file = jar.resolve(entry.getName());
				Files.createDirectories(file.getParent());
				Files.copy(whole.getInputStream(entry), file);
			}
		}
		Path libraries = Files.createDirectories(dir.resolve("libraries"));
		Files.writeString(libraries.resolve("libibvdev.so"), "this is text, and long enough");
		String path = Job.defaultClassPath().replace(Job.ibvdevJar(), jar.toString());
		refused(expect(libraries.toString(), "not a shared library", "the jar has no library for this system", "-Dibvdev.library=")
						.classPath(path)
						.option("-Djava.library.path=" + libraries));
	}

	/** Each class loader has a copy of the library, and one that is given up gives its copy back. */
	@EveryMode
	void manyClassLoaders(Mode mode) {
		Result result = Job.of(mode, 1, Loaders.class, "50").seconds(180).run().assertSuccess();
		assertTrue(result.stdout(0).contains("loaders 50"), result.toString());
	}

	@EveryMode
	void information(Mode mode) {
		Result result = info(mode).option("-Dibvdev.psl=12345").run().assertSuccess();
		for (String word : new String[] {"0.1.0", "java.vm.name", "shm", "fault_scope", "12345", "system property"})
			assertTrue(result.stdout(0).contains(word), word + "\n" + result);
	}

	@Test
	void informationOfAWrongSetting() {
		Result result = info(Mode.PLAIN).option("-Dibvdev.psll=1").run().assertClean();
		assertNotEquals(0, result.exitCode(0), result.toString());
		assertTrue(result.stderr(0).contains("psll") && result.stderr(0).contains("psl"), result.toString());
		result = info(Mode.PLAIN, "/nonexistent/job.conf").run().assertClean();
		assertNotEquals(0, result.exitCode(0), result.toString());
		assertTrue(result.stderr(0).contains("/nonexistent/job.conf"), result.toString());
	}
}
