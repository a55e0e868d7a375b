// SPDX-License-Identifier: MIT
package ibvbench;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** Pins a thread: for smpdev, whose ranks are threads of one JVM, which no launcher can pin. */
final class Pin {
	private Pin() {}

	/** Pins the calling thread to the rank-th processor that the JVM may use, by the command taskset. */
	static void currentThread(int rank) throws IOException, InterruptedException {
		List<Integer> allowed = allowed();
		Path self = Files.readSymbolicLink(Path.of("/proc/thread-self")); // PID/task/TID
		Process taskset = new ProcessBuilder("taskset", "-pc", allowed.get(rank % allowed.size()).toString(), self.getFileName().toString())
								  .redirectOutput(ProcessBuilder.Redirect.DISCARD)
								  .start();
		if (taskset.waitFor() != 0)
			throw new IOException("taskset did not pin rank " + rank);
	}

	private static List<Integer> allowed() throws IOException {
		List<Integer> cpus = new ArrayList<>();
		for (String line : Files.readAllLines(Path.of("/proc/self/status"))) {
			if (!line.startsWith("Cpus_allowed_list:"))
				continue;
			for (String range : line.substring(line.indexOf(':') + 1).trim().split(",")) {
				String[] ends = range.split("-");
				for (int cpu = Integer.parseInt(ends[0]); cpu <= Integer.parseInt(ends[ends.length - 1]); cpu++)
					cpus.add(cpu);
			}
		}
		return cpus;
	}
}
