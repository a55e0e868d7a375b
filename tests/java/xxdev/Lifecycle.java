// SPDX-License-Identifier: MIT
package xxdevtest;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.stream.Stream;
import xxdev.Device;
import xxdev.ErrorCode;
import xxdev.PID;
import xxdev.Request;
import xxdev.ThreadLevel;
import xxdev.Type;

/** Finding, opening and finishing devices. Argument: cases (2 ranks) or rounds=NUMBER (2 ranks). */
final class Lifecycle extends Program {
	/** Until all classes are loaded and all methods that matter compiled. */
	private static final int WARM_ROUNDS = 50;
	/** What a JVM may open, start or map by itself meanwhile: compilers' threads and memory, above all. */
	private static final int JVM_CHANGES = 100;

	private final String[] args;

	private Lifecycle(String[] args) {
		this.args = args;
	}

	public static void main(String[] args) throws Exception {
		if (args[3].startsWith("rounds="))
			rounds(args, Integer.parseInt(args[3].substring("rounds=".length())));
		else
			new Lifecycle(args).launch(args);
	}

	/** What the process has of the kernel: a device that left something behind in every round would leave as much as there are rounds. */
	private static long[] held() throws IOException {
		try (Stream<String> mappings = Files.lines(Path.of("/proc/self/maps"))) {
			return new long[] {new File("/proc/self/fd").list().length, new File("/proc/self/task").list().length, mappings.count()};
		}
	}

	private static void rounds(String[] args, int rounds) throws IOException {
		Device dev = Device.newInstance("ibvdev");
		long[] first = null;
		for (int i = 0; i < rounds; i++) {
			if (i == WARM_ROUNDS)
				first = held();
			PID[] ids = dev.init(args);
			int me = dev.id().rank();
			Object[] in = new Object[1];
			Request receive = dev.irecv(in, ids[1 - me], i, 0);
			dev.send(java.util.List.of("round", i), ids[1 - me], i, 0);
			receive.iwait();
			equal(java.util.List.of("round", i), in[0], "the object");
			dev.finish();
		}
		long[] last = held();
		for (int i = 0; first != null && i < last.length; i++)
			check(last[i] <= first[i] + JVM_CHANGES,
					"descriptors, threads, mappings after round " + WARM_ROUNDS + ": " + Arrays.toString(first) + ", after round " + rounds + ": "
							+ Arrays.toString(last));
		System.out.println("finished");
	}

	@Case
	void findingDevices() throws Exception {
		check(Device.newInstance("ibvdev") != dev, "a new one each time");
		equal(dev.getClass(), Device.newInstance("xxdev.ibvdev.IBVDevice").getClass(), "by class");
		fails(() -> Device.newInstance("nosuchdev"), "nosuchdev", "ibvdev", "class path");
		equal("ibvdev", dev.name(), "name");
		equal(ThreadLevel.MULTIPLE, dev.threadLevel(), "threads");
	}

	@Case
	void beforeInit() throws Exception {
		Device fresh = Device.newInstance("ibvdev");
		fails(fresh::id, "init");
		fails(fresh::finish, "init");
		fails(fresh::peek, "init");
		fails(() -> fresh.send(new int[1], ids[0], 0, 0), "init");
		fails(() -> fresh.recv(new int[1], Device.ANY_SRC, 0, 0), "init");
		fails(() -> fresh.init(null), "rank");
		fails(() -> fresh.init(new String[] {"x", args[1], "ibvdev"}), "\"x\"");
		fails(() -> fresh.init(new String[] {"0", "/no/such/conf", "ibvdev"}), "/no/such/conf");
		System.setProperty("xxdev.maxdepth", "none");
		try {
			fails(() -> fresh.init(args), "xxdev.maxdepth", "none");
		} finally {
			System.clearProperty("xxdev.maxdepth");
		}
	}

	/** Nothing that the library knows has started this process: it is a job of one rank. */
	@Case
	void launcherKnows() throws Exception {
		Device fresh = Device.newInstance("ibvdev");
		for (String[] words : new String[][] {{"auto"}, {"-1", "auto", "ibvdev"}, {"0", "auto", "ibvdev"}}) {
			equal(1, fresh.init(words).length, "size");
			equal(0, fresh.id().rank(), "rank");
			fresh.finish();
		}
		fails(() -> fresh.init(new String[] {"1", "auto", "ibvdev"}), "rank 1 was given", "rank 0 of 1");
	}

	@Case
	void processes() {
		equal(2, ids.length, "size");
		equal(me, dev.id().rank(), "rank");
		equal(ids[me], dev.id(), "id");
		check(!ids[0].equals(ids[1]) && !ids[0].uuid().equals(ids[1].uuid()), "different");
		String[] other = new String[1];
		Request receive = dev.irecv(other, ids[1 - me], 1, CONTEXT);
		dev.send(ids[me].uuid().toString(), ids[1 - me], 1, CONTEXT);
		checkStatus(receive.iwait(), 1 - me, 1, Type.STRING, 1);
		equal(ids[1 - me].uuid().toString(), other[0], "every process calls a process the same");
		check(Arrays.asList(ids).indexOf(dev.id()) == me, "the index is the rank");
	}

	@Case
	void closing() throws Exception {
		Device fresh = Device.newInstance("ibvdev");
		fresh.close();
		for (int round = 0; round < 2; round++) {
			try (Device resource = fresh) {
				resource.init(new String[] {"auto"});
				Request receive = resource.irecv(new int[1], resource.id(), 1, CONTEXT);
				equal(ErrorCode.BUSY, fails(resource::close, "pending").code(), "a close that is refused");
				resource.send(new int[1], resource.id(), 1, CONTEXT);
				receive.iwait();
			}
			equal(ErrorCode.CLOSED, fails(fresh::id).code(), "closed");
			fresh.close();
		}
	}

	@Case
	void finishRefusesWhatIsPending() throws Exception {
		Request receive = dev.irecv(new int[1], ids[me], 5, CONTEXT);
		fails(dev::finish, "finish", "pending");
		check(receive.cancel(), "unmatched");
	}
}
