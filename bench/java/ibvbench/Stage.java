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

/**
 * A shared mapping of the two ranks, beside the device that is measured: rank 0 says over it what is done next, and the
 * probe measures how long a cache line takes between the two processors right now (see bench/c/stage.h).
 */
final class Stage {
	enum Op { PROBE, LATENCY, BANDWIDTH, END }

	private static final VarHandle WORD = MethodHandles.byteBufferViewVarHandle(long[].class, ByteOrder.nativeOrder());
	private static final int BYTES = 4096;
	/** Places of the words, in lines of their own. */
	private static final int BALL = 0;
	private static final int TURN = 256;
	private static final int COMMAND = 512;
	private static final int MET = 1024;
	private static final long OVER = -1;
	private static final int SPINS_BEFORE_YIELD = 20000;

	private final ByteBuffer memory;
	private long turn;

	/** Of the command that hear() returned. */
	int bytes;
	int window;
	long iterations;

	private Stage(ByteBuffer memory) {
		this.memory = memory;
	}

	/** Maps a new file (rank 0) or that of rank 0, whose name travels over the layer; the file is gone afterwards. */
	static Stage meet(Layer layer) throws Exception {
		byte[] name = new byte[256];
		Path file = null;
		if (layer.rank() == 0) {
			Path folder = Path.of("/dev/shm");
			file = Files.isWritable(folder) ? Files.createTempFile(folder, "ibvx-bench-", null)
				: Files.createTempFile("ibvx-bench-", null);
			byte[] text = file.toString().getBytes();
			System.arraycopy(text, 0, name, 0, text.length);
		}
		layer.tell(name);
		if (layer.rank() == 1)
			file = Path.of(new String(name).trim());
		try (FileChannel channel = FileChannel.open(file, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
			Stage stage = new Stage(channel.map(FileChannel.MapMode.READ_WRITE, 0, BYTES));
			if (layer.rank() == 1)
				WORD.setRelease(stage.memory, MET, 1L);
			while ((long) WORD.getAcquire(stage.memory, MET) == 0)
				Thread.yield();
			return stage;
		} finally {
			if (layer.rank() == 0)
				Files.delete(file);
		}
	}

	void say(Op op, int messageBytes, int messageWindow, long count) {
		memory.order(ByteOrder.nativeOrder());
		memory.putInt(COMMAND, op.ordinal()).putInt(COMMAND + 4, messageBytes).putInt(COMMAND + 8, messageWindow);
		memory.putLong(COMMAND + 16, count);
		WORD.setRelease(memory, TURN, ++turn);
	}

	Op hear() {
		int spins = 0;
		while ((long) WORD.getAcquire(memory, TURN) == turn) {
			if (++spins < SPINS_BEFORE_YIELD)
				Thread.onSpinWait();
			else
				Thread.yield();
		}
		turn++;
		memory.order(ByteOrder.nativeOrder());
		bytes = memory.getInt(COMMAND + 4);
		window = memory.getInt(COMMAND + 8);
		iterations = memory.getLong(COMMAND + 16);
		return Op.values()[memory.getInt(COMMAND)];
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
