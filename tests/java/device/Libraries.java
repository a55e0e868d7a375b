// SPDX-License-Identifier: MIT
package device;

import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.zip.CRC32;
import mpjbuf.Buffer;
import mpjdev.Request;

/**
 * What a communication library of the system may do to a JVM that loads it: nothing. The argument after MPJ's three is a piece of the
 * file name of a library that has to be in the process in the end.
 */
final class Libraries extends Program {
	private static final int FAULTS = 10000;
	private static final int MESSAGES = 2000;

	private static volatile Object nothing;
	private static int depth;

	public static void main(String[] args) throws Exception {
		String caught = line("SigCgt");
		String ignored = line("SigIgn");
		long code = codeOfLibc();
		check(!Files.readString(Path.of("/proc/self/maps")).contains(args[3]), args[3] + " is here already");
		Libraries self = new Libraries();
		self.launch(args);
		check(Files.readString(Path.of("/proc/self/maps")).contains(args[3]), args[3] + " was not used");
		equal(caught, line("SigCgt"), "signals with a handler");
		equal(ignored, line("SigIgn"), "signals that are ignored");
		equal(code, codeOfLibc(), "the code of the C library (mmap, munmap)");
		faults();
		threadDump();
		System.out.println("the JVM is whole");
	}

	/** By SIGQUIT: the JVM writes it to the standard output, which is a file here, and ends it with the references of JNI. */
	private static void threadDump() throws Exception {
		Process kill = new ProcessBuilder("kill", "-QUIT", String.valueOf(ProcessHandle.current().pid())).inheritIO().start();
		equal(0, kill.waitFor(), "kill");
		String dump = "";
		while (!dump.contains("Full thread dump") || !dump.contains("JNI global ref")) {
			Thread.sleep(20);
			dump = Files.readString(Path.of("/proc/self/fd/1"));
		}
		check(dump.contains("Libraries.threadDump"), "the dump shows this thread:\n" + dump);
	}

	private static String line(String name) throws IOException {
		for (String line : Files.readAllLines(Path.of("/proc/self/status")))
			if (line.startsWith(name))
				return line;
		throw new AssertionError(name);
	}

	/** A checksum of what is executable of libc, as it is in memory. */
	private static long codeOfLibc() throws IOException {
		CRC32 sum = new CRC32();
		int found = 0;
		try (RandomAccessFile memory = new RandomAccessFile("/proc/self/mem", "r")) {
			for (String line : Files.readAllLines(Path.of("/proc/self/maps"))) {
				if (!line.contains("/libc.so.6") && !line.contains("/libc-2.") || !line.contains("r-xp"))
					continue;
				String[] range = line.substring(0, line.indexOf(' ')).split("-");
				byte[] bytes = new byte[(int) (Long.parseLong(range[1], 16) - Long.parseLong(range[0], 16))];
				memory.seek(Long.parseLong(range[0], 16));
				memory.readFully(bytes);
				sum.update(bytes);
				found++;
			}
		}
		check(found > 0, "the C library has code");
		return sum.getValue();
	}

	/** Null pointers that compiled code finds by a signal. */
	private static void faults() {
		int caught = 0;
		for (int i = 0; i < FAULTS; i++) {
			try {
				caught += nothing.hashCode();
			} catch (NullPointerException e) {
				caught++;
			}
		}
		equal(FAULTS, caught, "null pointer exceptions");
	}

	private static void deeper() {
		depth++;
		deeper();
	}

	private static void overflow() {
		depth = 0;
		try {
			deeper();
			throw new AssertionError("no stack overflow");
		} catch (StackOverflowError e) {
			check(depth > 100, "a deep stack");
		}
	}

	@Case
	void faultsWhileMessagesTravel() throws Exception {
		Thread other = new Thread(() -> {
			for (int i = 0; i < 5; i++) {
				faults();
				overflow();
			}
		});
		other.start();
		for (int i = 0; i < MESSAGES; i++) {
			Buffer in = room(100000);
			Request receive = dev.irecv(in, ids[(me + size - 1) % size], 1, CONTEXT, null);
			int bytes = i % 50 == 0 ? 90000 : i % 300;
			dev.send(pattern(bytes, i), ids[(me + 1) % size], 1, CONTEXT);
			receive.iwait();
			checkPattern(in, bytes, i);
		}
		other.join();
		faults();
		overflow();
	}

	/** The JVM stops all threads again and again, while arrays travel. */
	@Case
	void collections() throws Exception {
		List<byte[]> garbage = new ArrayList<>();
		for (int i = 0; i < 200; i++) {
			Buffer in = room(300000);
			Request receive = dev.irecv(in, ids[(me + size - 1) % size], 2, CONTEXT, null);
			dev.send(pattern(250000, i), ids[(me + 1) % size], 2, CONTEXT);
			garbage.add(new byte[1 << 16]);
			if (i % 20 == 0) {
				garbage.clear();
				System.gc();
			}
			receive.iwait();
			checkPattern(in, 250000, i);
		}
		check(Arrays.stream(Thread.getAllStackTraces().keySet().toArray(new Thread[0])).noneMatch(t -> t.getName().contains("async")),
				"a thread of the library is none of the JVM's");
	}
}
