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
		final double value;
		final double probeNs;

		Sample(double value, double probeNs) {
			this.value = value;
			this.probeNs = probeNs;
		}
	}

	private final String device;
	private final int ranks;
	private final Options options;
	private final StringBuilder json = new StringBuilder();

	Report(String device, int ranks, Options options) {
		this.device = options.label != null ? options.label : device;
		this.ranks = ranks;
		this.options = options;
	}

	void heading() {
		if (!options.quiet)
			System.out.println(String.format(Locale.ROOT, "%-10s %-8s %-10s %-11s %10s %6s %-5s %12s %12s %12s %4s %7s %8s", "tool", "level", "device", "op",
					"bytes", "param", "state", "median", "min", "max", "unit", "samples", "probe ns"));
	}

	void series(Command what, List<Sample> samples, int discarded) {
		List<Sample> near = new ArrayList<>();
		List<Sample> far = new ArrayList<>();
		boolean any = options.keepAll || what.op.unprobed();
		for (Sample sample : samples)
			(any || sample.probeNs < options.nearBelowNs ? near : far).add(sample);
		state(what, any ? "any" : "near", near, discarded);
		state(what, "far", far, near.isEmpty() ? discarded : 0); // reported once
		if (samples.isEmpty() && options.seek == null)
			System.err.println("bench: " + device + ": " + what.op.text() + " of " + what.bytes + " bytes: no sample between two equal probes");
	}

	private void state(Command what, String state, List<Sample> samples, int discarded) {
		int n = samples.size();
		if (n == 0)
			return;
		samples.sort(Comparator.comparingDouble(sample -> sample.value));
		double median = (samples.get((n - 1) / 2).value + samples.get(n / 2).value) / 2;
		double probe = samples.stream().mapToDouble(sample -> sample.probeNs).average().orElse(0);
		if (!options.quiet)
			System.out.println(String.format(Locale.ROOT, "%-10s %-8s %-10s %-11s %10d %6d %-5s %12.3f %12.3f %12.3f %4s %7d %8.0f", "java", options.level,
					device, what.op.text(), what.bytes, what.param, state, median, samples.get(0).value, samples.get(n - 1).value, what.op.unit(), n, probe));
		json.append(String.format(Locale.ROOT,
				"{\"tool\": \"java\", \"level\": \"%s\", \"device\": \"%s\", \"op\": \"%s\", \"bytes\": %d, "
						+ "\"param\": %d, \"ranks\": %d, \"state\": \"%s\", \"unit\": \"%s\", \"median\": %.4f, \"samples\": %d, "
						+ "\"probe_ns\": %.0f, \"discarded\": %d, \"values\": [%s]}%n",
				options.level, device, what.op.text(), what.bytes, what.param, ranks, state, what.op.unit(), median, n, probe, discarded,
				samples.stream().map(sample -> String.format(Locale.ROOT, "%.4f", sample.value)).collect(Collectors.joining(", "))));
	}

	void close() throws IOException {
		if (options.json != null)
			Files.write(Path.of(options.json), json.toString().getBytes(StandardCharsets.UTF_8), StandardOpenOption.CREATE, StandardOpenOption.APPEND);
	}
}
