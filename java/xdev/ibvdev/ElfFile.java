// SPDX-License-Identifier: MIT
package xdev.ibvdev;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Path;

/** Looks at a shared library before the dynamic loader does, whose words are poor and which a cut file kills (SIGBUS). */
final class ElfFile {
	private static final int HEADER = 64;
	private static final int MACHINE = 18;
	private static final int PT_LOAD = 1;

	private ElfFile() {
	}

	/**
	 * Checks that the file is for this JVM's architecture, and whole.
	 *
	 * @throws IOException with the reason if not
	 */
	static void check(Path file) throws IOException {
		try (FileChannel channel = FileChannel.open(file)) {
			ByteBuffer header = read(channel, 0, HEADER);
			if (header.limit() < HEADER || header.getInt(0) != 0x7f454c46)
				throw new IOException("not a shared library (no ELF header)");
			boolean big = header.get(5) == 2;
			header.order(big ? ByteOrder.BIG_ENDIAN : ByteOrder.LITTLE_ENDIAN);
			int machine = header.getShort(MACHINE) & 0xffff;
			int expected = machineOf(System.getProperty("os.arch"));
			if (expected != 0 && machine != expected)
				throw new IOException("wrong architecture: it is for ELF machine " + machine + ", this JVM ("
					+ System.getProperty("os.arch") + ") needs " + expected);
			if (header.get(4) == 2)
				checkWhole(channel, header);
		}
	}

	/** ELF64: every segment that will be mapped lies within the file. */
	private static void checkWhole(FileChannel channel, ByteBuffer header) throws IOException {
		int size = header.getShort(54) & 0xffff;
		int count = header.getShort(56) & 0xffff;
		ByteBuffer segments = read(channel, header.getLong(32), size * count).order(header.order());
		boolean whole = size >= 56 && segments.limit() == size * count;
		for (int i = 0; whole && i < count; i++) {
			int at = i * size;
			long end = segments.getLong(at + 8) + segments.getLong(at + 32);
			whole = segments.getInt(at) != PT_LOAD || end >= 0 && end <= channel.size();
		}
		if (!whole)
			throw new IOException("cut short: it has " + channel.size() + " bytes, fewer than its header states");
	}

	private static ByteBuffer read(FileChannel channel, long position, int length) throws IOException {
		ByteBuffer buffer = ByteBuffer.allocate(length);
		while (buffer.hasRemaining() && position >= 0 && channel.read(buffer, position + buffer.position()) > 0)
			continue;
		return buffer.flip();
	}

	/** e_machine for Java's name of an architecture; 0: not known here, let the dynamic loader judge. */
	private static int machineOf(String arch) {
		switch (arch) {
		case "amd64":
			return 62;
		case "aarch64":
			return 183;
		case "ppc64le":
			return 21;
		case "riscv64":
			return 243;
		case "s390x":
			return 22;
		default:
			return 0;
		}
	}
}
