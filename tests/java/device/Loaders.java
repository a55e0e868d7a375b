// SPDX-License-Identifier: MIT
package device;

import harness.Task;
import java.io.File;
import java.io.IOException;
import java.lang.ref.WeakReference;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import mpjdev.Request;
import xdev.ProcessID;
import xdev.XDevException;
import xdev.ibvdev.IBVDevice;

/**
 * Class loaders that each load a copy of the library, as a server does for its applications: many at once, then all are given up, and their
 * copies must be unloaded; several times. One rank; the argument after MPJ's three is the number of loaders.
 */
public final class Loaders {
	private Loaders() {}

	public static void main(String[] args) throws Exception {
		int count = Integer.parseInt(args[3]);
		for (int generation = 0; generation < 3; generation++) {
			List<WeakReference<ClassLoader>> given = open(count, args);
			for (int i = 0; i < 100 && copies() > 0; i++) {
				System.gc();
				Thread.sleep(50);
			}
			Program.check(given.stream().allMatch(loader -> loader.get() == null), "something refers to a class loader");
			Program.equal(0, copies(), "copies of the library that are still mapped");
		}
		System.out.println("loaders " + count);
	}

	private static List<WeakReference<ClassLoader>> open(int count, String[] args) throws Exception {
		List<ClassLoader> loaders = new ArrayList<>();
		List<WeakReference<ClassLoader>> weak = new ArrayList<>();
		for (int i = 0; i < count; i++) {
			ClassLoader loader = new URLClassLoader(urls(), ClassLoader.getPlatformClassLoader());
			loaders.add(loader);
			weak.add(new WeakReference<>(loader));
			@SuppressWarnings("unchecked")
			Consumer<String[]> round = (Consumer<String[]>) loader.loadClass("device.Loaders$Round").getConstructor().newInstance();
			Task.start(() -> round.accept(args)).finish(); /* thread-local values of a thread that lives on would keep the loader */
		}
		Program.equal(count, copies(), "copies of the library");
		java.lang.ref.Reference.reachabilityFence(loaders);
		return weak;
	}

	private static URL[] urls() throws IOException {
		List<URL> urls = new ArrayList<>();
		for (String path : System.getProperty("java.class.path").split(File.pathSeparator))
			urls.add(Path.of(path).toUri().toURL());
		return urls.toArray(new URL[0]);
	}

	/** Each copy has one part that can be executed. */
	private static int copies() throws IOException {
		int count = 0;
		for (String line : Files.readAllLines(Path.of("/proc/self/maps")))
			if (line.contains("libibvdev") && line.contains(" r-xp "))
				count++;
		return count;
	}

	/** What runs in each loader: opens the device, provokes an error, sends a message to itself, finishes. */
	public static final class Round implements Consumer<String[]> {
		public Round() {}

		@Override
		public void accept(String[] args) {
			try {
				IBVDevice device = new IBVDevice();
				ProcessID[] ids = device.init(args);
				Program.fails(() -> new IBVDevice().init(new String[] {"1", args[1], "ibvdev"}), "rank");
				Request receive = device.irecv(Program.empty(), ids[0], 1, Program.CONTEXT, null);
				device.send(Program.ints(5), ids[0], 1, Program.CONTEXT);
				Program.equal(1, receive.iwait().tag, "tag");
				device.finish();
			} catch (XDevException e) {
				throw e;
			} catch (Exception e) {
				throw new AssertionError(e);
			}
		}
	}
}
