// SPDX-License-Identifier: MIT
package xdev.ibvdev;

import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.net.URL;
import java.net.URLConnection;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;

/**
 * Finds and loads libibvdev.so, once in a JVM. The candidates, in order: the file named by the system property
 * {@code ibvdev.library} (then no other), the directories of {@code java.library.path}, the copy in a jar of the class path, which is
 * unpacked into a new folder of the directory that {@code ibvdev.tmpdir} names, by default {@code java.io.tmpdir}.
 * A library that cannot be loaded, or is of another version than the jar, is passed over; if none is left, one error
 * reports what was tried and why each failed.
 */
public final class NativeLibrary {
	private static boolean loaded;
	private static String origin;

	private NativeLibrary() {}

	/**
	 * Loads the library unless that has been done.
	 *
	 * @return the file it came from
	 * @throws UnsatisfiedLinkError with the list of what was tried
	 */
	public static synchronized String load() {
		if (!loaded) {
			origin = find();
			loaded = true;
		}
		return origin;
	}

	/** Ends this class loader's part in all jobs, as the end of a process does: what is still open there is lost to the others. */
	public static synchronized void leave() {
		if (loaded)
			Native.abortAll();
	}

	private static String find() {
		List<String> failures = new ArrayList<>();
		String property = System.getProperty("ibvdev.library");
		if (property != null) {
			if (tried(new File(property).getAbsolutePath(), failures))
				return property;
			throw failure(failures, "ibvdev.library names it, so nothing else was tried: correct or remove the property");
		}
		for (String dir : System.getProperty("java.library.path", "").split(File.pathSeparator)) {
			File file = new File(dir.isEmpty() ? "." : dir, System.mapLibraryName("ibvdev"));
			if (file.exists() && tried(file.getAbsolutePath(), failures))
				return file.getPath();
		}
		if (failures.isEmpty())
			failures.add("java.library.path (" + System.getProperty("java.library.path") + "): no " + System.mapLibraryName("ibvdev") + " there");
		if (triedJar(failures))
			return "ibvdev.jar!/" + resource();
		throw failure(failures, "name a good one with -Dibvdev.library=/path/libibvdev.so");
	}

	private static UnsatisfiedLinkError failure(List<String> failures, String remedy) {
		return new UnsatisfiedLinkError("the native library of ibvdev cannot be loaded. Tried:\n  " + String.join("\n  ", failures) + "\n" + remedy);
	}

	private static boolean tried(String file, List<String> failures) {
		try {
			checkFile(new File(file));
			loadOrCopy(file);
			return true;
		} catch (IOException | UnsatisfiedLinkError | SecurityException e) {
			String text = String.valueOf(e.getMessage());
			failures.add(text.contains(file) ? text : file + ": " + text);
			return false;
		}
	}

	/** A JVM loads a file for one class loader; each further one gets a copy. */
	private static void loadOrCopy(String file) throws IOException {
		try {
			System.load(file);
		} catch (UnsatisfiedLinkError e) {
			if (!String.valueOf(e.getMessage()).contains("already loaded in another classloader"))
				throw e;
			try (InputStream in = Files.newInputStream(Path.of(file))) {
				loadCopy(in);
			}
		}
	}

	/** A file that is loaded can be deleted: the mapping stays. */
	private static void loadCopy(InputStream in) throws IOException {
		Path dir = privateFolder();
		Path file = dir.resolve(System.mapLibraryName("ibvdev"));
		try {
			Files.copy(in, file);
			checkFile(file.toFile());
			System.load(file.toString());
		} finally {
			Files.deleteIfExists(file);
			Files.deleteIfExists(dir);
		}
	}

	private static void checkFile(File file) throws IOException {
		if (!file.exists())
			throw new IOException("no such file");
		if (file.isDirectory())
			throw new IOException("this is a directory; name the file in it");
		if (!file.canRead())
			throw new IOException("not readable by this user");
		ElfFile.check(file);
	}

	private static String resource() {
		return "META-INF/native/" + System.getProperty("os.name").toLowerCase(java.util.Locale.ROOT) + "-" + System.getProperty("os.arch") + "/"
				+ System.mapLibraryName("ibvdev");
	}

	private static String temporary() {
		return System.getProperty("ibvdev.tmpdir", System.getProperty("java.io.tmpdir"));
	}

	/**
	 * A new folder of this user alone. Files.createTempDirectory draws its name from SecureRandom, which loads Java's
	 * security providers; here nobody need not guess the name, as what exists already is not used.
	 */
	private static Path privateFolder() throws IOException {
		for (int tries = 0;; tries++) {
			Path dir = Path.of(temporary(), "ibvdev-" + Long.toString(System.nanoTime() + tries, 36));
			try {
				return Files.createDirectory(dir,
						PosixFilePermissions.asFileAttribute(
								EnumSet.of(PosixFilePermission.OWNER_READ, PosixFilePermission.OWNER_WRITE, PosixFilePermission.OWNER_EXECUTE)));
			} catch (FileAlreadyExistsException e) {
				if (tries == 1000)
					throw e;
			}
		}
	}

	/** The dynamic loader's text for a file system that is mounted noexec. */
	private static String remedy(String failure) {
		return failure.contains("failed to map segment") ? " (is " + temporary() + " mounted noexec? -Dibvdev.tmpdir= names another directory)" : "";
	}

	private static boolean triedJar(List<String> failures) {
		String name = resource();
		URL url = NativeLibrary.class.getClassLoader().getResource(name);
		if (url == null) {
			failures.add(name
					+ ": the jar has no library for this system, and no other one on the class path (as Maven's artifact ibvdev with the classifier of the system)");
			return false;
		}
		try (InputStream in = unshared(url)) {
			loadCopy(in);
			return true;
		} catch (UnsatisfiedLinkError | SecurityException e) {
			failures.add("the jar's own copy: " + e.getMessage() + remedy(String.valueOf(e.getMessage())));
			return false;
		} catch (IOException e) {
			failures.add(name + " from the jar, unpacked in " + temporary() + " (-Dibvdev.tmpdir= names another directory): " + e);
			return false;
		}
	}

	/** A cached open jar is shared by all class loaders, and the first that is closed closes it for the others. */
	private static InputStream unshared(URL url) throws IOException {
		URLConnection connection = url.openConnection();
		connection.setUseCaches(false);
		return connection.getInputStream();
	}
}
