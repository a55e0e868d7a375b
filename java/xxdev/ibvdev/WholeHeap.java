// SPDX-License-Identifier: MIT
package xxdev.ibvdev;

import com.sun.management.HotSpotDiagnosticMXBean;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.management.JMException;
import javax.management.ObjectName;

/**
 * Where the heap of this JVM lies, if it lies there for good: every address of it mapped, and backed by the same pages, from now to the end of the process. Then an
 * adapter may know it once and for all (setting register_heap).
 *
 * <p>That is so for the collectors Serial, Parallel and G1 with a heap of fixed size whose pages were touched at the start. The others unmap, remap or give back memory as they collect.
 */
final class WholeHeap {
	private static final Pattern HEX = Pattern.compile("0x([0-9a-f]+)");

	/** The first address, and how many bytes. */
	final long base;
	final long bytes;

	WholeHeap(long base, long bytes) {
		this.base = base;
		this.bytes = bytes;
	}

	/** What the JVM was told. */
	interface Flags {
		/** The value of an option of this JVM, or null if it has none of this name. */
		String get(String name);
	}

	/**
	 * Finds it.
	 *
	 * @throws IllegalArgumentException the heap is not to stay as it is, or cannot be found: the text says what to change
	 */
	static WholeHeap find() {
		try {
			HotSpotDiagnosticMXBean options = ManagementFactory.getPlatformMXBean(HotSpotDiagnosticMXBean.class);
			if (options == null)
				throw new IllegalArgumentException("register_heap: this is no HotSpot JVM, whose heap could be found");
			check(name -> {
				try {
					return options.getVMOption(name).getValue();
				} catch (IllegalArgumentException e) {
					return null;
				}
			});
			String info = (String) ManagementFactory.getPlatformMBeanServer().invoke(
				new ObjectName("com.sun.management:type=DiagnosticCommand"), "gcHeapInfo", new Object[0], new String[0]);
			WholeHeap heap = parse(info, Long.parseLong(options.getVMOption("MaxHeapSize").getValue()));
			heap.checkMapped(Files.readAllLines(Path.of("/proc/self/maps")));
			return heap;
		} catch (JMException | IOException | LinkageError e) {
			throw new IllegalArgumentException("register_heap: this JVM does not say where its heap is: " + e, e);
		}
	}

	/** Would the heap stay as it is? Says all that forbids it. */
	static void check(Flags flags) {
		List<String> why = new ArrayList<>();
		List<String> remedy = new ArrayList<>();
		boolean parallel = is(flags, "UseParallelGC");
		if (!parallel && !is(flags, "UseSerialGC") && !is(flags, "UseG1GC")) {
			why.add("this collector unmaps parts of its heap, or moves them");
			remedy.add("-XX:+UseSerialGC, -XX:+UseParallelGC or -XX:+UseG1GC");
		}
		String most = String.valueOf(flags.get("MaxHeapSize"));
		if (!most.equals(flags.get("InitialHeapSize")) || !most.equals(flags.get("MinHeapSize"))) {
			why.add("the heap begins with " + flags.get("InitialHeapSize") + " bytes and changes between " + flags.get("MinHeapSize") + " and " + most);
			remedy.add("-Xms and -Xmx of one size");
		}
		if (!is(flags, "AlwaysPreTouch")) {
			why.add("the heap gets its pages when it needs them");
			remedy.add("-XX:+AlwaysPreTouch");
		}
		if (is(flags, "UseNUMA")) {
			why.add("pages are given back to be taken from another NUMA node");
			remedy.add("-XX:-UseNUMA");
		}
		if (parallel && !"false".equals(flags.get("UseAdaptiveSizePolicy"))) {
			why.add("this collector changes the sizes of its generations, and unmaps what they lose");
			remedy.add("-XX:-UseAdaptiveSizePolicy");
		}
		if (!why.isEmpty())
			throw new IllegalArgumentException("register_heap is not possible here: " + String.join("; ", why) + ". Start java with "
				+ String.join(", ", remedy) + ", or do without register_heap");
	}

	private static boolean is(Flags flags, String name) {
		return "true".equals(flags.get(name));
	}

	/**
	 * The heap in what "jcmd GC.heap_info" prints: of each generation [low, end of what is committed, end), of G1's heap [low, end).
	 *
	 * @param size the heap's, in bytes
	 */
	static WholeHeap parse(String info, long size) {
		long low = Long.MAX_VALUE;
		long high = 0;
		for (String line : info.split("\n")) {
			int at = line.indexOf('[');
			if (at < 0 || !line.contains(" total "))
				continue;
			Matcher m = HEX.matcher(line.substring(at));
			long[] place = new long[3];
			int n = 0;
			for (; n < 3 && m.find(); n++)
				place[n] = Long.parseUnsignedLong(m.group(1), 16);
			if (n < 2 || (n == 3 && place[1] != place[2]))
				throw new IllegalArgumentException("register_heap: not all of the heap is committed: " + line.trim());
			low = Math.min(low, place[0]);
			high = Math.max(high, place[n - 1]);
		}
		if (high - low < size || (high - low) / 2 > size)
			throw new IllegalArgumentException("register_heap: a heap of " + size + " bytes is not found in what the JVM says of it:\n" + info);
		return new WholeHeap(low, high - low);
	}

	/** All of it is there, readable and writable. */
	void checkMapped(List<String> maps) {
		long at = base;
		for (String line : maps) {
			int dash = line.indexOf('-');
			int space = line.indexOf(' ', dash);
			if (dash < 0 || space < 0)
				continue;
			long from = Long.parseUnsignedLong(line.substring(0, dash), 16);
			long to = Long.parseUnsignedLong(line.substring(dash + 1, space), 16);
			if (Long.compareUnsigned(from, at) <= 0 && Long.compareUnsigned(at, to) < 0 && line.startsWith("rw", space + 1))
				at = to;
			if (at - base >= bytes)
				return;
		}
		throw new IllegalArgumentException(String.format("register_heap: the heap at %#x is not mapped from %#x on", base, at));
	}
}
