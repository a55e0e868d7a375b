// SPDX-License-Identifier: MIT
package ibvbench;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.concurrent.locks.LockSupport;

/**
 * A shared mapping of the ranks, beside the device that is measured: rank 0 sends the next command over it, and the
 * probe measures how long a cache line takes between the two processors right now (see bench/c/stage.h).
 */
final class Stage {
	/** Instead of an operation in a command. */
	private static final int PROBE = -1;
	private static final int END = -2;
	private static final int NAP = -3;

	private static final VarHandle WORD = MethodHandles.byteBufferViewVarHandle(long[].class, ByteOrder.nativeOrder());
	private static final int BYTES = 4096;
	/** Places of the words, in lines of their own. */
	private static final int BALL = 0;
	private static final int TURN = 256;
	private static final int COMMAND = 512;
	private static final int DONE = 1024;
	private static final int ARRIVED = 1280;
	private static final int SUM = 1536;
	private static final long OVER = -1;
	private static final int SPINS_BEFORE_YIELD = 20000;
	private static final long DOZE_NS = 100_000;
	private static final long NAP_MS = 20;

	/** What a follower hears. */
	enum Word { COMMAND, PROBE, NAP, END }

	private final ByteBuffer memory;
	private final int rank;
	private final int size;
	private long turn;
	private long gathered;
	private Command heard;

	private Stage(ByteBuffer memory, Layer layer) {
		this.memory = memory.order(ByteOrder.nativeOrder());
		rank = layer.rank();
		size = layer.size();
	}

	/** Maps a new file (rank 0) or that of rank 0, whose name travels over the layer; the file is gone afterwards. */
	static Stage meet(Layer layer) throws Exception {
		byte[] name = new byte[256];
		Path file = null;
		if (layer.rank() == 0) {
			Path folder = Path.of("/dev/shm");
			file = Files.isWritable(folder) ? Files.createTempFile(folder, "ibvx-bench-", null) : Files.createTempFile("ibvx-bench-", null);
			byte[] text = file.toString().getBytes();
			System.arraycopy(text, 0, name, 0, text.length);
		}
		layer.broadcast(name);
		if (layer.rank() != 0)
			file = Path.of(new String(name).trim());
		try (FileChannel channel = FileChannel.open(file, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
			Stage stage = new Stage(channel.map(FileChannel.MapMode.READ_WRITE, 0, BYTES), layer);
			stage.gather();
			return stage;
		} finally {
			if (layer.rank() == 0)
				Files.delete(file);
		}
	}

	/** All ranks: returns when all have called it. */
	void gather() {
		WORD.getAndAdd(memory, ARRIVED, 1L);
		gathered++;
		while ((long) WORD.getVolatile(memory, ARRIVED) < gathered * size)
			Thread.yield();
	}

	/** Rank 0: returns when all others have carried out their command. */
	void awaitDone() {
		int spins = 0;
		while ((long) WORD.getAcquire(memory, DONE) < turn * (size - 1)) {
			if (++spins < SPINS_BEFORE_YIELD)
				Thread.onSpinWait();
			else
				Thread.yield();
		}
	}

	/** Of a follower: it has carried out what it heard. */
	void done() {
		WORD.getAndAdd(memory, DONE, 1L);
	}

	void add(long value) {
		WORD.getAndAdd(memory, SUM, value);
	}

	long takeSum() {
		return (long) WORD.getAndSet(memory, SUM, 0L);
	}

	private void send(int op, Command command) {
		awaitDone();
		memory.putInt(COMMAND, op);
		if (command != null) {
			memory.putInt(COMMAND + 4, command.phase.ordinal()).putInt(COMMAND + 8, command.bytes);
			memory.putInt(COMMAND + 12, command.param);
			memory.putLong(COMMAND + 16, command.iterations).putLong(COMMAND + 24, command.workNs);
		}
		WORD.setRelease(memory, TURN, ++turn);
	}

	void send(Command command) {
		send(command.op.ordinal(), command);
	}

	void sendEnd() {
		send(END, null);
	}

	/** Sleeps for a moment: what the host makes of an idle machine decides on near or far. */
	static void nap() throws InterruptedException {
		Thread.sleep(NAP_MS);
	}

	/** Rank 0: everybody naps. */
	void sendNap() throws InterruptedException {
		send(NAP, null);
		nap();
	}

	/** What to do next; command() has its arguments. */
	Word hear() {
		int spins = 0;
		while ((long) WORD.getAcquire(memory, TURN) == turn) {
			if (rank > 1)
				LockSupport.parkNanos(DOZE_NS); // leaves the processor to ranks 0 and 1 and their probe
			else if (++spins < SPINS_BEFORE_YIELD)
				Thread.onSpinWait();
			else
				Thread.yield();
		}
		turn++;
		int op = memory.getInt(COMMAND);
		if (op < 0)
			return op == END ? Word.END : op == NAP ? Word.NAP : Word.PROBE;
		heard = new Command(Op.values()[op], Command.Phase.values()[memory.getInt(COMMAND + 4)], memory.getInt(COMMAND + 8), memory.getInt(COMMAND + 12),
				memory.getLong(COMMAND + 16), memory.getLong(COMMAND + 24));
		return Word.COMMAND;
	}

	Command command() {
		return heard;
	}

	private static long catchBall(ByteBuffer memory, long expected) {
		int spins = 0;
		long ball;
		while ((ball = (long) WORD.getAcquire(memory, BALL)) != expected && ball != OVER) {
			if (++spins > SPINS_BEFORE_YIELD)
				Thread.yield();
		}
		return ball;
	}

	/** Rank 0: half a round trip of a cache line in nanoseconds, measured for that long. */
	double probe(long durationNs) {
		send(PROBE, null);
		long start = System.nanoTime();
		long now = start;
		long throwsDone = 0;
		long first = 0;
		while (now - start < durationNs) {
			for (int i = 0; i < 64; i++, throwsDone++) {
				WORD.setRelease(memory, BALL, 2 * throwsDone + 1);
				catchBall(memory, 2 * throwsDone + 2);
			}
			now = System.nanoTime();
			if (first == 0) { // includes the other rank's arrival
				first = throwsDone;
				start = now;
			}
		}
		WORD.setRelease(memory, BALL, OVER);
		while ((long) WORD.getAcquire(memory, BALL) == OVER)
			Thread.yield();
		return throwsDone > first ? (double) (now - start) / (throwsDone - first) / 2 : 0;
	}

	/** Rank 1: throws back until rank 0 ends the probe. */
	void follow() {
		for (long n = 0; catchBall(memory, 2 * n + 1) != OVER; n++)
			WORD.setRelease(memory, BALL, 2 * n + 2);
		WORD.setRelease(memory, BALL, 0L);
	}
}
