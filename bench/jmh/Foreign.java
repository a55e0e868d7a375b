// SPDX-License-Identifier: MIT
package xxdev.ibvdev;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;
import java.nio.file.Files;
import java.nio.file.Path;
import xdev.ibvdev.NativeLibrary;
import xdev.ibvdev.ResultBlock;
import xdev.ibvdev.Settings;

/**
 * A send and a receive of 8 bytes to oneself by the natives (JNI) and by java.lang.foreign, in memory outside of the heap, and a call that does nothing by both: what
 * another binding of the hot calls could bring. Needs JDK 22 or later; started by {@code bench/jmh/run --only foreign}.
 */
public final class Foreign {
	private static final int ROUNDS = 40;
	private static final int TIMES = 100_000;
	private static final Linker LINKER = Linker.nativeLinker();
	private static final Linker.Option[] PLAIN = {};
	private static final Linker.Option[] CRITICAL = {Linker.Option.critical(false)};

	private static final SymbolLookup LIBRARY = SymbolLookup.libraryLookup(System.getProperty("ibvdev.library"), Arena.global());
	private static final FunctionDescriptor SENDS = FunctionDescriptor.of(JAVA_INT, ADDRESS, ADDRESS, JAVA_INT, JAVA_INT, JAVA_INT);
	private static final FunctionDescriptor RECEIVES = FunctionDescriptor.of(JAVA_INT, ADDRESS, ADDRESS, JAVA_INT, JAVA_INT, JAVA_INT, ADDRESS);
	private static final FunctionDescriptor ASKS = FunctionDescriptor.of(JAVA_INT, ADDRESS);
	private static final MethodHandle SEND = handle("ibvx_send", SENDS, PLAIN);
	private static final MethodHandle RECV = handle("ibvx_recv", RECEIVES, PLAIN);
	private static final MethodHandle SEND_CRITICAL = handle("ibvx_send", SENDS, CRITICAL);
	private static final MethodHandle RECV_CRITICAL = handle("ibvx_recv", RECEIVES, CRITICAL);
	private static final MethodHandle RANK = handle("ibvx_rank", ASKS, PLAIN);
	private static final MethodHandle RANK_CRITICAL = handle("ibvx_rank", ASKS, CRITICAL);

	private static MemorySegment foreign;
	private static MemorySegment out;
	private static MemorySegment in;
	private static MemorySegment status;
	private static long natives;
	private static long outAddress;
	private static long result;

	private Foreign() {}

	private interface Step {
		int once() throws Throwable;
	}

	private static MethodHandle handle(String name, FunctionDescriptor type, Linker.Option... options) {
		return LINKER.downcallHandle(LIBRARY.find(name).orElseThrow(), type, options);
	}

	public static void main(String[] args) throws Throwable {
		Arena arena = Arena.global();
		foreign = open(arena);
		/* struct ibvx_sbuf: head, head_bytes, body, body_bytes, user, layout; struct ibvx_rbuf: base, capacity_bytes, split, layout */
		out = arena.allocate(48, 8);
		in = arena.allocate(32, 8);
		status = arena.allocate(64, 8);
		openNatives();
		MemorySegment data = arena.allocate(16, 8);
		outAddress = data.address();
		result = ResultBlock.take().address;
		compare(data);
	}

	private static MemorySegment open(Arena arena) throws Throwable {
		MethodHandle open = handle("ibvx_open", FunctionDescriptor.of(JAVA_INT, ADDRESS, ADDRESS));
		MemorySegment peers = arena.allocate(ADDRESS);
		peers.set(ADDRESS, 0, arena.allocateFrom("localhost:11317"));
		MemorySegment config = arena.allocate(64, 8); /* rank, conf, peers, size, settings, settings_origin, defaults */
		config.set(ADDRESS, 16, peers);
		config.set(JAVA_INT, 24, 1);
		MemorySegment endpoint = arena.allocate(ADDRESS);
		int rc = (int) open.invokeExact(endpoint, config);
		if (rc < 0)
			throw new IllegalStateException("ibvx_open: " + rc);
		return endpoint.get(ADDRESS, 0);
	}

	private static void openNatives() throws Exception {
		Path conf = Files.createTempFile("ibvbench", ".conf");
		Files.writeString(conf, "1\n131072\nlocalhost@11318@11319@0@0\n");
		NativeLibrary.load();
		natives = Native.open(0, Settings.text(conf.toString()), Settings.properties(), Settings.defaults());
		if (Native.failed(natives))
			throw new IllegalStateException(Texts.last());
		Files.delete(conf);
	}

	private static void fill(MemorySegment data) {
		out.set(ADDRESS, 0, data);
		out.set(JAVA_LONG, 8, 8L);
		in.set(ADDRESS, 0, data.asSlice(8));
		in.set(JAVA_LONG, 8, 8L);
	}

	/** Interleaved rounds; of each the quickest. */
	private static void compare(MemorySegment data) throws Throwable {
		String[] names = {"JNI: send, recv", "FFM: ibvx_send, ibvx_recv", "FFM critical: the same", "JNI: rank", "FFM: ibvx_rank", "FFM critical: ibvx_rank"};
		Step[] steps = {()
								-> Native.send(natives, null, Native.MEMORY, outAddress, 8, 0, 1, 0, 2)
						| Native.recv(natives, null, Native.MEMORY, outAddress + 8, 8, 0, 1, 0, 2, result),
				() -> {fill(data);
		return (int) SEND.invokeExact(foreign, out, 0, 1, 2) | (int) RECV.invokeExact(foreign, in, 0, 1, 2, status);
	}
	, () -> {
		fill(data);
		return (int) SEND_CRITICAL.invokeExact(foreign, out, 0, 1, 2) | (int) RECV_CRITICAL.invokeExact(foreign, in, 0, 1, 2, status);
	}
	, () -> Native.rank(natives), () -> (int) RANK.invokeExact(foreign), () -> (int) RANK_CRITICAL.invokeExact(foreign)
};
double[] best = new double[steps.length];
for (int round = 0; round < ROUNDS; round++)
	for (int i = 0; i < steps.length; i++) {
		double ns = time(steps[i]);
		best[i] = round == 0 || ns < best[i] ? ns : best[i];
	}
for (int i = 0; i < steps.length; i++)
	System.out.printf("%-28s %6.1f ns%n", names[i], best[i]);
}

private static double time(Step step) throws Throwable {
	long begin = System.nanoTime();
	int failed = 0;
	for (int i = 0; i < TIMES; i++)
		failed |= step.once();
	if (failed < 0)
		throw new IllegalStateException("a call failed");
	return (double) (System.nanoTime() - begin) / TIMES;
}
}
