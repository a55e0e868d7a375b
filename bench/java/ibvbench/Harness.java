// SPDX-License-Identifier: MIT
package ibvbench;

import java.util.ArrayList;
import java.util.List;

/** Measures a layer as bench/c/harness.h describes: warm-up, samples between two probes, medians for each state. */
final class Harness {
	private static final int TRIES_PER_SAMPLE = 4;
	private static final double AGREE = 1.3;
	private static final int WARMUP_FULL_BYTES = 4096;
	private static final int WARMUP_OF_ALL = 4;
	private static final long WARMUP_LIMIT_NS = 5_000_000_000L;
	/** Of an operation of all ranks, for each iteration of the warm-up, and in all: the compilers of the JVMs share the processors with the ranks. */
	private static final long WARMUP_LEAST_NS = 100_000;
	private static final long WARMUP_ENOUGH_NS = 1_000_000_000L;
	private static final long SAMPLES_LIMIT_NS = 10_000_000_000L;

	private static final long SEEK_LIMIT_NS = 800_000_000L;

	private final Layer layer;
	private final Options options;
	private final Stage stage;
	private final Report report;

	Harness(Layer layer, Options options, Report report) throws Exception {
		this.layer = layer;
		this.options = options;
		this.report = report;
		Work.calibrate();
		stage = Stage.meet(layer);
	}

	void run() throws Exception {
		if (layer.rank() != 0) {
			follow();
			return;
		}
		for (Op.Plan plan : options.plans) {
			if (!canMeasure(plan.op))
				continue;
			for (int bytes : plan.sizes) {
				for (int param : plan.params)
					measure(new Command(plan.op, Command.Phase.RUN, bytes, param, 1, 0));
			}
		}
		stage.sendEnd();
	}

	private static boolean isBasic(Op op) {
		return op == Op.LATENCY || op == Op.BANDWIDTH || op == Op.RATE;
	}

	private boolean canMeasure(Op op) {
		if (!op.ofAll() && layer.size() != 2)
			return false;
		if (op == Op.STEP)
			return layer.offers(Op.BARRIER);
		return isBasic(op) || layer.offers(op == Op.MEMORY ? Op.ALLTOALL : op);
	}

	/** All but rank 0: whatever rank 0 orders. */
	private void follow() throws Exception {
		for (;;) {
			Stage.Word word = stage.hear();
			if (word == Stage.Word.END)
				return;
			if (word == Stage.Word.COMMAND) {
				prepare(stage.command());
				if (stage.command().op.ofAll())
					stage.gather();
				perform(stage.command());
			} else if (word == Stage.Word.NAP) {
				Stage.nap();
			} else if (layer.rank() == 1) {
				stage.follow();
			}
			stage.done();
		}
	}

	private int preparedBytes = -1;
	private int preparedParam = -1;

	private void prepare(Command command) throws Exception {
		boolean usesMessages = isBasic(command.op) || command.op.prepared();
		int window = command.op.windowed() ? command.param : 1;
		if (!usesMessages || preparedBytes == command.bytes && preparedParam == window)
			return;
		layer.prepare(command.bytes, window);
		preparedBytes = command.bytes;
		preparedParam = window;
	}

	private void perform(Command command) throws Exception {
		long before = command.op == Op.IDLE ? Work.processorNs() : 0;
		if (command.op == Op.LATENCY || command.op.prepared() && command.phase == Command.Phase.RUN)
			pingPong(command.iterations);
		else if (isBasic(command.op))
			stream(command.iterations);
		else if (command.op == Op.STEP)
			step(command);
		else
			layer.perform(command.op == Op.MEMORY ? command.of(Op.ALLTOALL) : command);
		if (command.op == Op.IDLE && layer.rank() != 0)
			stage.add(Work.processorNs() - before);
		if (command.op == Op.MEMORY)
			stage.add(Work.memoryKb());
	}

	private void pingPong(long iterations) throws Exception {
		if (layer.rank() == 0)
			ping(iterations);
		else
			pong(iterations);
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

	private void stream(long iterations) throws Exception {
		boolean sends = layer.rank() == 0;
		for (long i = 0; i < iterations; i++) {
			if (sends)
				layer.sendMany();
			else
				layer.recvMany();
		}
	}

	private void step(Command command) throws Exception {
		Command barrier = command.of(Op.BARRIER).times(1);
		for (long i = 0; i < command.iterations; i++) {
			Work.compute(command.workNs);
			layer.perform(barrier);
		}
	}

	/** The value for each message or operation. */
	private double timed(Command command) throws Exception {
		prepare(command);
		stage.send(command);
		if (command.op.ofAll())
			stage.gather();
		long start = System.nanoTime();
		perform(command);
		if (command.op.ofAll())
			stage.awaitDone(); // rank 0 may be the first to leave
		long took = System.nanoTime() - start;
		if (command.op == Op.IDLE)
			return stage.takeSum() / (layer.size() - 1.0) / (took / 1e9) / 1e3;
		if (command.op == Op.MEMORY)
			return stage.takeSum() / (double) layer.size();
		if (command.op == Op.EXPOSED)
			took -= command.iterations * command.workNs;
		return took / (double) command.iterations / command.op.units(command.param, layer.size()) / 1e3;
	}

	private double probe(Op op) {
		return options.keepAll || op.unprobed() ? 0 : stage.probe(options.probeNs);
	}

	/** Warms up; with as many iterations as last as long as a sample should. */
	private Command calibrate(Command command) throws Exception {
		double units = command.op.units(command.param, layer.size());
		double warmup = options.warmup / (command.op.ofAll() ? WARMUP_OF_ALL * units : units / 2);
		if (command.bytes > WARMUP_FULL_BYTES)
			warmup = warmup * WARMUP_FULL_BYTES / command.bytes;
		long least = command.op.ofAll() ? Math.min(options.warmup * WARMUP_LEAST_NS, WARMUP_ENOUGH_NS) : 0;
		long start = System.nanoTime();
		long done = 0;
		long took;
		double us;
		do {
			long iterations = Math.max(2, Math.min(done, (long) Math.max(warmup, 2)));
			us = timed(command.times(iterations));
			done += iterations;
			took = System.nanoTime() - start;
		} while (took < least || done < warmup && took < WARMUP_LIMIT_NS);
		return command.times(Math.max(2, (long) (options.sampleNs / 1e3 / (us * units + 1e-3))));
	}

	/** Everything that is known before the first sample. */
	private Command ready(Command command) throws Exception {
		if (command.op.unprobed())
			return command;
		if (command.op == Op.STEP)
			return calibrate(command.computing(command.param * 1000L));
		if (command.op != Op.EXPOSED)
			return calibrate(command);
		Command exchange = calibrate(command.of(Op.EXCHANGE)); // the computation is as long as the communication alone
		return exchange.of(Op.EXPOSED).computing((long) (timed(exchange) * 1e3));
	}

	private boolean agree(double before, double after) {
		return options.keepAll
				|| before < options.nearBelowNs == after < options.nearBelowNs && before <= AGREE * after && after <= AGREE * before
				&& before < options.busyAboveNs;
	}

	/** The probe before a sample: of the state that is sought, or negative when it does not come in time. */
	private double seek(Op op, long deadline) throws InterruptedException {
		for (;;) {
			double distance = probe(op);
			if (options.seek == null || options.keepAll || op.unprobed())
				return distance;
			if (distance < options.busyAboveNs && distance < options.nearBelowNs == options.seek.equals("near"))
				return distance;
			if (System.nanoTime() - deadline > 0)
				return -1;
			stage.sendNap();
		}
	}

	private void measure(Command what) throws Exception {
		List<Report.Sample> samples = new ArrayList<>();
		int discarded = 0;
		if (what.op.prepared())
			timed(what.in(Command.Phase.SETUP));
		Command command = ready(what);
		int wanted = what.op.unprobed() ? 1 : options.samples;
		long start = System.nanoTime();
		for (int tries = 0; samples.size() < wanted && tries < wanted * TRIES_PER_SAMPLE && System.nanoTime() - start < SAMPLES_LIMIT_NS; tries++) {
			double before = seek(what.op, start + SEEK_LIMIT_NS);
			if (before < 0)
				break;
			double value = timed(command);
			double after = probe(what.op);
			if (agree(before, after))
				samples.add(new Report.Sample(value, (before + after) / 2));
			else
				discarded++;
		}
		if (what.op.prepared())
			timed(what.in(Command.Phase.CLEAR));
		report.series(what, samples, discarded);
	}
}
