// SPDX-License-Identifier: MIT
package ibvbench;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.stream.Collectors;

/** The table on stdout and the JSON lines, in the fields of bench/c/report.c. */
final class Report {
	/** One measurement and the mean of the probes around it. */
	static final class Sample {
		final double us;
		final double probeNs;

		Sample(double us, double probeNs) {
			this.us = us;
			this.probeNs = probeNs;
		}
	}

	private final String device;
	private final Options options;
	private final StringBuilder json = new StringBuilder();

	Report(String device, Options options) {
		this.device = device;
		this.options = options;
	}

	void heading() {
		if (!options.quiet)
			System.out.println(String.format(Locale.ROOT, "%-10s %-8s %-10s %-10s %10s %-5s %12s %12s %12s %9s %7s %8s", "tool", "level", "device", "op",
				"bytes", "state", "median us", "min us", "max us", "GB/s", "samples", "probe ns"));
	}

	void series(String op, int bytes, int window, List<Sample> samples, int discarded) {
		List<Sample> near = new ArrayList<>();
		List<Sample> far = new ArrayList<>();
		for (Sample sample : samples)
			(sample.probeNs < options.nearBelowNs ? near : far).add(sample);
		state(op, bytes, window, options.keepAll ? "any" : "near", near, discarded);
		state(op, bytes, window, "far", far, discarded);
		if (samples.isEmpty())
			System.err.println("bench: " + device + ": " + op + " of " + bytes + " bytes: no sample between two equal probes");
	}

	private void state(String op, int bytes, int window, String state, List<Sample> samples, int discarded) {
		int n = samples.size();
		if (n == 0)
			return;
		samples.sort(Comparator.comparingDouble(sample -> sample.us));
		double median = (samples.get((n - 1) / 2).us + samples.get(n / 2).us) / 2;
		double min = samples.get(0).us;
		double max = samples.get(n - 1).us;
		double gbPerS = bytes / median / 1e3;
		double probe = samples.stream().mapToDouble(sample -> sample.probeNs).average().orElse(0);
		if (!options.quiet)
			System.out.println(String.format(Locale.ROOT, "%-10s %-8s %-10s %-10s %10d %-5s %12.3f %12.3f %12.3f %9.2f %7d %8.0f", "java",
				options.level, device, op, bytes, state, median, min, max, gbPerS, n, probe));
		json.append(String.format(Locale.ROOT, "{\"tool\": \"java\", \"level\": \"%s\", \"device\": \"%s\", \"op\": \"%s\", \"bytes\": %d, "
			+ "\"window\": %d, \"state\": \"%s\", \"median_us\": %.4f, \"min_us\": %.4f, \"max_us\": %.4f, \"samples\": %d, "
			+ "\"gb_per_s\": %.4f, \"probe_ns\": %.0f, \"discarded\": %d, \"values_us\": [%s]}%n", options.level, device, op, bytes,
			window, state, median, min, max, n, gbPerS, probe, discarded, samples.stream()
				.map(sample -> String.format(Locale.ROOT, "%.4f", sample.us)).collect(Collectors.joining(", "))));
	}

	void close() throws IOException {
		if (options.json != null)
			Files.write(Path.of(options.json), json.toString().getBytes(StandardCharsets.UTF_8), StandardOpenOption.CREATE,
				StandardOpenOption.APPEND);
	}
}
