// SPDX-License-Identifier: MIT
package device;

import static harness.Task.pause;

import harness.Task;
import java.io.File;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import mpjbuf.Buffer;
import mpjdev.Request;
import xdev.Device;
import xdev.ProcessID;
import xdev.XDevException;
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
		case "timeout":
			self.finishTimesOut();
			break;
		case "late":
			self.finishLate();
			break;
		case "memory":
			self.memoryRunsOut();
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
		checkCode(fails(dev::finish, "finish", "pending"), EBUSY, -1);
		dev.send(ints(1), ids[me], 1, CONTEXT);
		check(pending.iwait() != null, "a refused finish changes nothing");
	}

	/** Nothing that the library knows has started this process: it is a job of one rank. */
	@Case
	void launcherKnows() throws Exception {
		Device fresh = new IBVDevice();
		for (String[] words : new String[][] {{"auto"}, {"-1", "auto", "ibvdev"}, {"0", "auto", "ibvdev"}}) {
			check(fresh.init(words).length == 1, "size");
			check(fresh.id() != null, "id");
			fresh.finish();
		}
		fails(() -> fresh.init(new String[] {"1", "auto", "ibvdev"}), "rank 1 was given", "rank 0 of 1");
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

	/** Inside the library, and not, say, still loading a class. */
	private static boolean isInNative(Thread thread) {
		StackTraceElement[] stack = thread.getStackTrace();
		return stack.length > 0 && stack[0].isNativeMethod() && stack[0].getClassName().equals("xdev.ibvdev.Native");
	}

	/** Refuses to finish, for a second, and disturbs nobody: not requests under way, nor new ones. */
	@Case
	void requestsGoOnWhileFinishIsRefused() throws Exception {
		if (me == 1) {
			await(0, 3);
			checkBoth(dev);
			return;
		}
		Request send = dev.isend(both(), ids[1], 3, CONTEXT);
		Task blocked = Task.start(() -> dev.probe(ids[me], 4, CONTEXT));
		while (blocked.getState() == Thread.State.NEW || !isInNative(blocked))
			Thread.sleep(1);
		pause();
		Task finish = Task.start(() -> fails(dev::finish, "finish", "inside"));
		while (finish.isAlive()) {
			send.itest();
			dev.iprobe(ids[1], 4, CONTEXT);
			Thread.sleep(1);
		}
		finish.finish();
		signal(1, 3);
		send.iwait();
		dev.send(ints(1), ids[me], 4, CONTEXT);
		blocked.finish();
		dev.recv(empty(), ids[me], 4, CONTEXT);
	}

	/** Two sections, both with a bounce buffer. */
	private static Buffer both() throws Exception {
		Buffer buf = on(ByteBuffer.allocate(1 << 20), 0);
		byte[] bytes = bytes(1000000, 5);
		buf.putSectionHeader(mpjbuf.Type.BYTE);
		buf.write(bytes, 0, bytes.length);
		buf.commit();
		buf.setDynamicBuffer(bytes(3000000, 6));
		return buf;
	}

	private void checkBoth(IBVDevice device) throws Exception {
		Buffer buf = room(1 << 20);
		device.recv(buf, ids[0], 3, CONTEXT);
		equal(-1, java.util.Arrays.mismatch(bytes(3000000, 6), buf.getDynamicBuffer()), "first wrong byte of the dynamic section");
		checkPattern(buf, 1000000, 5);
	}

	private void open() throws Exception {
		ids = dev.init(arguments);
		size = ids.length;
		me = Integer.parseInt(arguments[0]);
	}

	/** A send that nobody takes: finish gives up, and a refused thread has lost nothing. */
	private void finishTimesOut() throws Exception {
		open();
		if (me == 1) {
			await(0, 3);
			checkBoth(dev);
		} else {
			Request send = dev.isend(both(), ids[1], 3, CONTEXT);
			Task finish = Task.start(() -> fails(dev::finish, "finish", "1 operations", "rank 1"));
			Task waiter = null;
			while (finish.isAlive()) {
				try {
					check(send.itest() == null, "nobody receives");
				} catch (XDevException e) {
					if (waiter == null)
						waiter = Task.start(() -> untilNotRefused(send));
				}
				Thread.sleep(1);
			}
			finish.finish();
			check(waiter != null, "finish refused nobody");
			signal(1, 3);
			waiter.finish();
			check(send.iwait() != null && send.iwait() != null, "the request is as it was");
		}
		meet();
		dev.finish();
		System.out.println("finished");
	}

	private static void untilNotRefused(Request request) throws Exception {
		for (;;) {
			try {
				request.iwait();
				return;
			} catch (XDevException e) {
				check(String.valueOf(e.getMessage()).contains("finished"), e.getMessage());
				Thread.sleep(1);
			}
		}
	}

	/** Receives from a rank that has left have failed, which is an end: they do not forbid to finish. */
	private void finishLate() throws Exception {
		open();
		meet();
		if (me == 0) {
			Request seen = dev.irecv(empty(), ids[1], 1, CONTEXT, null);
			Request unseen = dev.irecv(on(ByteBuffer.allocate(100000), 0), ids[1], 2, CONTEXT, null);
			fails(dev::finish, "finish", "pending");
			signal(1, 3);
			fails(() -> {
				while (seen.itest() == null)
					Thread.sleep(1);
			}, "rank 1");
			fails(seen::iwait, "rank 1");
			dev.finish();
			fails(seen::iwait, "rank 1");
			for (int i = 0; i < 2; i++) {
				fails(unseen::iwait, "finished");
				fails(unseen::itest, "finished");
				fails(unseen::cancel, "finished");
			}
		} else {
			await(0, 3);
			dev.finish();
		}
		System.out.println("finished");
	}

	/** Native memory for one section but not for both, often: nothing may stay. Then a table that cannot grow. */
	private void memoryRunsOut() throws Exception {
		open();
		Buffer buf = on(ByteBuffer.allocate(16 << 20), 0);
		buf.putSectionHeader(mpjbuf.Type.BYTE);
		buf.write(new byte[15000000], 0, 15000000);
		buf.commit();
		buf.setDynamicBuffer(new byte[90000000]);
		fails(() -> dev.isend(buf, new ProcessID(java.util.UUID.randomUUID()), 1, CONTEXT), "isend");
		limitData(60000000);
		try {
			for (int i = 0; i < 20; i++)
				fails(() -> dev.isend(buf, ids[me], 1, CONTEXT), "isend", "bounce buffer of 90000000 bytes");
		} finally {
			limitData(-1);
		}
		tableCannotGrow();
		dev.finish();
		System.out.println("finished");
	}

	/** Bytes that this process may still allocate; negative: any. */
	private static void limitData(long more) throws Exception {
		String limit = "unlimited";
		for (String line : Files.readAllLines(Path.of("/proc/self/status")))
			if (line.startsWith("VmData:") && more >= 0)
				limit = Long.toString(Long.parseLong(line.replaceAll("[^0-9]", "")) * 1024 + more);
		Process prlimit =
				new ProcessBuilder("prlimit", "--pid", Long.toString(ProcessHandle.current().pid()), "--data=" + limit + ":unlimited").inheritIO().start();
		equal(0, prlimit.waitFor(), "status of prlimit");
	}

	private void tableCannotGrow() throws Exception {
		Request request = dev.irecv(empty(), ids[me], 1, CONTEXT, null);
		java.lang.reflect.Field handle = request.getClass().getDeclaredField("handle");
		handle.setAccessible(true);
		long real = handle.getLong(request);
		long forged = 5L << 32 | 0x7fffffff;
		Class<?> type = Class.forName("xdev.ibvdev.PendingRequests");
		java.lang.reflect.Constructor<?> make = type.getDeclaredConstructor();
		Class<?> entry = Class.forName("xdev.ibvdev.PendingRequest");
		java.lang.reflect.Method add = type.getDeclaredMethod("add", entry);
		java.lang.reflect.Method find = type.getDeclaredMethod("find", long.class);
		java.lang.reflect.Method remove = type.getDeclaredMethod("remove", entry);
		for (java.lang.reflect.AccessibleObject o : List.of(make, add, find, remove))
			o.setAccessible(true);
		Object table = make.newInstance();
		handle.setLong(request, forged);
		add.invoke(table, request);
		check(find.invoke(table, forged) == request, "found");
		check(find.invoke(table, forged - (1L << 32)) == null, "an older one is gone");
		remove.invoke(table, request);
		check(find.invoke(table, forged) == null, "consumed");
		handle.setLong(request, real);
		dev.send(ints(1), ids[me], 1, CONTEXT);
		request.iwait();
	}

	@Case
	void initTwice() throws Exception {
		checkCode(fails(() -> dev.send(null, ids[me], 1, CONTEXT), "null"), EINVAL, -1);
		fails(() -> dev.init(arguments), "rank " + me, "finish");
	}

	/** Everything that needs an open device must report that it is not, and the remedy. */
	private static void closedDeviceRefuses(IBVDevice dev, ProcessID peer, String word) throws Exception {
		checkCode(fails(() -> dev.send(ints(1), peer, 1, CONTEXT), "send", word, "init"), ESHUTDOWN, -1);
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
		/* The JVM itself opens files and starts threads now and then; a leak adds one each round. */
		int some = Math.min(10, (count - 5) / 2);
		check(entries("/proc/self/fd") <= descriptors + some, "descriptors leak: " + descriptors + ", then " + entries("/proc/self/fd"));
		check(entries("/proc/self/task") <= threads + some, "threads leak");
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
