// SPDX-License-Identifier: MIT
package ibvbench;

import java.util.ArrayList;
import java.util.List;

/** Measures a layer as bench/c/harness.h describes: warm-up, samples between two probes, medians for each state. */
final class Harness {
	private static final int TRIES_PER_SAMPLE = 4;
	private static final double AGREE = 1.3;
	private static final int WARMUP_FULL_BYTES = 4096;
	private static final long WARMUP_LIMIT_NS = 5_000_000_000L;
	private static final long SAMPLES_LIMIT_NS = 10_000_000_000L;

	private final Layer layer;
	private final Options options;
	private final Stage stage;
	private final Report report;

	Harness(Layer layer, Options options, Report report) throws Exception {
		this.layer = layer;
		this.options = options;
		this.report = report;
		stage = Stage.meet(layer);
	}

	void run() throws Exception {
		if (layer.rank() != 0) {
			follow();
			return;
		}
		if (options.latency) {
			for (int bytes : options.sizes)
				measure(Stage.Op.LATENCY, bytes, 1);
		}
		if (options.bandwidth) {
			for (int bytes : options.sizes) {
				if (bytes > 0)
					measure(Stage.Op.BANDWIDTH, bytes, options.window);
			}
		}
		stage.say(Stage.Op.END, 0, 1, 0);
	}

	/** Rank 1: whatever rank 0 says. */
	private void follow() throws Exception {
		int bytes = -1;
		int window = 0;
		for (;;) {
			Stage.Op op = stage.hear();
			if (op == Stage.Op.END)
				return;
			if (op == Stage.Op.PROBE) {
				stage.follow();
				continue;
			}
			if (bytes != stage.bytes || window != stage.window) {
				bytes = stage.bytes;
				window = stage.window;
				layer.prepare(bytes, window);
			}
			if (op == Stage.Op.LATENCY)
				pong(stage.iterations);
			else
				drink(stage.iterations);
		}
	}

	private void ping(long iterations) throws Exception {
		for (long i = 0; i < iterations; i++) {
			layer.send();
			layer.recv();
		}
	}

	private void pong(long iterations) throws Exception {
		for (long i = 0; i < iterations; i++) {
			layer.recv();
			layer.send();
		}
	}

	private void pour(long iterations) throws Exception {
		for (long i = 0; i < iterations; i++) {
			layer.sendMany();
		}
	}

	private void drink(long iterations) throws Exception {
		for (long i = 0; i < iterations; i++) {
			layer.recvMany();
		}
	}

	/** Microseconds for each half round trip or message. */
	private double timed(Stage.Op op, int bytes, int window, long iterations) throws Exception {
		stage.say(op, bytes, window, iterations);
		long start = System.nanoTime();
		if (op == Stage.Op.LATENCY)
			ping(iterations);
		else
			pour(iterations);
		double messages = (double) iterations * (op == Stage.Op.LATENCY ? 2 : window);
		return (System.nanoTime() - start) / messages / 1e3;
	}

	private double probe() {
		if (options.keepAll)
			return 0;
		stage.say(Stage.Op.PROBE, 0, 1, 0);
		return stage.probe(options.probeNs);
	}

	/** Warms up; iterations that last as long as a sample should. */
	private long calibrate(Stage.Op op, int bytes, int window) throws Exception {
		double warmup = (double) options.warmup / window;
		if (bytes > WARMUP_FULL_BYTES)
			warmup = warmup * WARMUP_FULL_BYTES / bytes;
		long start = System.nanoTime();
		long done = 0;
		double us;
		do {
			long iterations = Math.max(2, done);
			us = timed(op, bytes, window, iterations);
			done += iterations;
		} while (done < warmup && System.nanoTime() - start < WARMUP_LIMIT_NS);
		us *= op == Stage.Op.LATENCY ? 2 : window;
		return Math.max(2, (long) (options.sampleNs / 1e3 / us));
	}

	private boolean agree(double before, double after) {
		return options.keepAll || before < options.nearBelowNs == after < options.nearBelowNs && before < AGREE * after
			&& after < AGREE * before && before < options.busyAboveNs;
	}

	private void measure(Stage.Op op, int bytes, int window) throws Exception {
		List<Report.Sample> samples = new ArrayList<>();
		int discarded = 0;
		layer.prepare(bytes, window);
		long iterations = calibrate(op, bytes, window);
		long start = System.nanoTime();
		for (int tries = 0; samples.size() < options.samples && tries < options.samples * TRIES_PER_SAMPLE
			&& System.nanoTime() - start < SAMPLES_LIMIT_NS; tries++) {
			double before = probe();
			double us = timed(op, bytes, window, iterations);
			double after = probe();
			if (agree(before, after))
				samples.add(new Report.Sample(us, (before + after) / 2));
			else
				discarded++;
		}
		report.series(op == Stage.Op.LATENCY ? "latency" : "bandwidth", bytes, window, samples, discarded);
	}
}
