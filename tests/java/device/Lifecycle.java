// SPDX-License-Identifier: MIT
package device;

import java.io.File;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import mpjdev.Request;
import xdev.Device;
import xdev.ProcessID;
import xdev.ibvdev.IBVDevice;

/** Opening and closing, right and wrong. The first argument of main, after MPJ's three, is what to do. */
final class Lifecycle extends Program {
	private static String[] arguments;

	public static void main(String[] args) throws Exception {
		arguments = args;
		Lifecycle self = new Lifecycle();
		switch (args[3]) {
		case "cases":
			self.launch(args);
			break;
		case "rounds":
			self.rounds(Integer.parseInt(args[4]));
			break;
		case "alone":
			self.alone();
			break;
		case "expect":
			self.expect(java.util.Arrays.copyOfRange(args, 4, args.length));
			break;
		case "unreachable":
			self.expect(args[0].equals("0") ? "rank 1" : args[4]);
			break;
		case "forget":
			self.dev.init(args);
			System.out.println("main ends");
			break;
		default:
			throw new AssertionError(args[3]);
		}
	}

	@Case
	void finishWithPendingReceive() throws Exception {
		Request pending = dev.irecv(empty(), ids[me], 1, CONTEXT, null);
		fails(dev::finish, "finish", "pending");
		dev.send(ints(1), ids[me], 1, CONTEXT);
		check(pending.iwait() != null, "a refused finish changes nothing");
	}

	@Case
	void finishWhileAThreadReceives() throws Exception {
		Task blocked = Task.start(() -> dev.recv(empty(), ids[me], 2, CONTEXT));
		while (blocked.getState() == Thread.State.NEW || !isInNative(blocked))
			Thread.sleep(1);
		pause();
		fails(dev::finish, "finish", "1 thread");
		dev.send(ints(1), ids[me], 2, CONTEXT);
		blocked.finish();
	}

	private static boolean isInNative(Thread thread) {
		StackTraceElement[] stack = thread.getStackTrace();
		return stack.length > 0 && stack[0].isNativeMethod();
	}

	@Case
	void initTwice() throws Exception {
		fails(() -> dev.init(arguments), "rank " + me, "finish");
	}

	/** Everything that needs an open device must say that it is not, and say what to do. */
	private static void closedDeviceRefuses(IBVDevice dev, ProcessID peer, String word) throws Exception {
		fails(() -> dev.send(ints(1), peer, 1, CONTEXT), "send", word, "init");
		fails(() -> dev.ssend(ints(1), peer, 1, CONTEXT), "ssend", word);
		fails(() -> dev.isend(ints(1), peer, 1, CONTEXT), "isend", word);
		fails(() -> dev.issend(ints(1), peer, 1, CONTEXT), "issend", word);
		fails(() -> dev.recv(empty(), peer, 1, CONTEXT), "recv", word);
		fails(() -> dev.recv(empty(), Device.ANY_SRC, 1, CONTEXT), "recv", word);
		fails(() -> dev.irecv(empty(), peer, 1, CONTEXT, null), "irecv", word);
		fails(() -> dev.probe(Device.ANY_SRC, 1, CONTEXT), "probe", word);
		fails(() -> dev.iprobe(peer, 1, CONTEXT), "iprobe", word);
		fails(() -> dev.iprobeAndFetch(peer, null, 1, CONTEXT, empty()), "iprobeAndFetch", word);
		fails(dev::peek, "peek", word);
		fails(dev::id, "init");
		fails(dev::finish, "finish", word);
	}

	private void rounds(int count) throws Exception {
		me = Integer.parseInt(arguments[0]);
		int descriptors = 0;
		int threads = 0;
		for (int round = 0; round < count; round++) {
			IBVDevice device = new IBVDevice();
			ProcessID[] all = device.init(arguments);
			ProcessID next = all[(me + 1) % all.length];
			ProcessID before = all[(me + all.length - 1) % all.length];
			Request receive = device.irecv(empty(), before, round, CONTEXT, null);
			device.send(ints(round), next, round, CONTEXT);
			equal(before.uuid(), receive.iwait().srcID, "source");
			device.finish();
			closedDeviceRefuses(device, next, "finished");
			if (round == 4) {
				descriptors = entries("/proc/self/fd");
				threads = entries("/proc/self/task");
			}
		}
		/* The JVM itself opens files and starts threads now and then. */
		check(entries("/proc/self/fd") <= descriptors + 10, "descriptors leak: " + descriptors + ", then "
			+ entries("/proc/self/fd"));
		check(entries("/proc/self/task") <= threads + 10, "threads leak");
		System.out.println("rounds " + count);
	}

	private static int entries(String dir) {
		return new File(dir).list().length;
	}

	/** One process, one rank: init's bad arguments one after the other on one object, then a good one. */
	private void alone() throws Exception {
		closedDeviceRefuses(dev, new ProcessID(java.util.UUID.randomUUID()), "never");
		fails(() -> dev.init(null), "init", "three arguments");
		fails(() -> dev.init(new String[] {"0"}), "init", "three arguments", "[0]");
		fails(() -> dev.init(new String[] {null, "x", "ibvdev"}), "init", "three arguments");
		fails(() -> dev.init(new String[] {"0", null, "ibvdev"}), "init", "three arguments");
		fails(() -> dev.init(new String[] {"zero", arguments[1], "ibvdev"}), "rank", "\"zero\"");
		fails(() -> dev.init(new String[] {"0", "", "ibvdev"}), "empty");
		fails(() -> dev.init(new String[] {"0", "a\0b", "ibvdev"}), "NUL");
		fails(() -> dev.init(new String[] {"1", arguments[1], "ibvdev"}), "1", "rank");
		fails(() -> dev.init(new String[] {"-1", arguments[1], "ibvdev"}), "-1");
		fails(() -> dev.init(new String[] {"0", "/nonexistent/job.conf", "ibvdev"}), "/nonexistent/job.conf", "No such file");
		Path file = Files.createTempFile("ibvdev-bad-", ".conf");
		try {
			badConf(file, List.of(), file.toString());
			badConf(file, List.of("# only comments"), file.toString());
			badConf(file, List.of("many", "131072", "localhost@1@2@0"), "many");
			badConf(file, List.of("2"), file.toString());
			badConf(file, List.of("1", "lots", "localhost@21000@21001@0@0"), "lots");
			badConf(file, List.of("2", "131072", "localhost@21000@21001@0@0"), "2", "1");
			badConf(file, List.of("2", "131072", "localhost@21000@21001@0@0", "localhost@21002@21003@0@0"), "rank 0");
			badConf(file, List.of("2", "131072", "localhost@21000@21001@0@0", "localhost@21002@21003@7@0"), "7");
			badConf(file, List.of("1", "131072", "localhost@99999@21001@0@0"), "99999");
			badConf(file, List.of("1", "131072", "localhost"), "line 3");
			badConf(file, List.of("#ibvdev psll=1", "1", "131072", "localhost@21000@21001@0@0"), "psll", "psl", "line 1");
			badConf(file, List.of("#ibvdev psl=-1", "1", "131072", "localhost@21000@21001@0@0"), "psl", "-1");
			badProperty("ibvdev.fault_scop", "job", "fault_scop", "fault_scope", "system property");
			badProperty("ibvdev.fault_scope", "planet", "planet", "peer");
			badProperty("ibvdev.psl", "much", "psl", "much", "system property");
			badProperty("ibvdev.shm_slots", "77", "shm_slots", "77");
			badProperty("ibvdev.transports", "self,shmm", "transports", "shmm");
			badProperty("ibvdev.log", "a\0b", "NUL");
			portInUse(file);
		} finally {
			Files.deleteIfExists(file);
		}
		ids = dev.init(arguments);
		me = 0;
		size = 1;
		smallTalk();
		dev.finish();
		closedDeviceRefuses(dev, ids[0], "finished");
		ids = dev.init(arguments);
		smallTalk();
		dev.finish();
		System.out.println("survived");
	}

	private void smallTalk() throws Exception {
		dev.send(ints(1), dev.id(), 1, CONTEXT);
		checkStatus(dev.recv(empty(), Device.ANY_SRC, 1, CONTEXT), 0, 1, mpjbuf.Type.INT, 1);
	}

	private void badConf(Path file, List<String> lines, String... words) throws Exception {
		Files.write(file, lines);
		fails(() -> dev.init(new String[] {"0", file.toString(), "ibvdev"}), words);
	}

	private void badProperty(String name, String value, String... words) throws Exception {
		String before = System.getProperty(name);
		System.setProperty(name, value);
		try {
			fails(() -> dev.init(arguments), words);
		} finally {
			if (before == null)
				System.clearProperty(name);
			else
				System.setProperty(name, before);
		}
	}

	/** Rank 0 of a job listens on its port, and it is taken. */
	private void portInUse(Path file) throws Exception {
		try (ServerSocket taken = new ServerSocket(0, 5, InetAddress.getByName("0.0.0.0"))) {
			int port = taken.getLocalPort();
			List<String> lines = new ArrayList<>(List.of("2", "131072"));
			lines.add("localhost@" + port + "@" + port + "@0@0");
			lines.add("localhost@" + (port + 1) + "@" + (port + 1) + "@1@0");
			Files.write(file, lines);
			System.setProperty("ibvdev.start_timeout_ms", "1000");
			fails(() -> dev.init(new String[] {"0", file.toString(), "ibvdev"}), String.valueOf(port), "in use");
		} catch (IOException e) {
			throw new AssertionError(e);
		} finally {
			System.clearProperty("ibvdev.start_timeout_ms");
		}
	}

	/** init must fail with these words. */
	private void expect(String... words) throws Exception {
		System.out.println("failed as it should: " + fails(() -> dev.init(arguments), words).getMessage());
	}
}
