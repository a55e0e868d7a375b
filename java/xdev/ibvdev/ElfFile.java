// SPDX-License-Identifier: MIT
package xdev.ibvdev;

import java.io.File;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/** Looks at a shared library before the dynamic loader does, whose words are poor and which a cut file kills (SIGBUS). */
final class ElfFile {
	private static final int HEADER = 64;
	private static final int MACHINE = 18;
	private static final int PT_LOAD = 1;

	private ElfFile() {}

	/**
	 * Checks that the file is for this JVM's architecture, and whole.
	 *
	 * @throws IOException with the reason if not
	 */
	static void check(File file) throws IOException {
		try (RandomAccessFile in = new RandomAccessFile(file, "r")) { /* a channel loads 30 classes more */
			ByteBuffer header = read(in, 0, HEADER);
			if (header.limit() < HEADER || header.getInt(0) != 0x7f454c46)
				throw new IOException("not a shared library (no ELF header)");
			boolean big = header.get(5) == 2;
			header.order(big ? ByteOrder.BIG_ENDIAN : ByteOrder.LITTLE_ENDIAN);
			int machine = header.getShort(MACHINE) & 0xffff;
			int expected = machineOf(System.getProperty("os.arch"));
			if (expected != 0 && machine != expected)
				throw new IOException(
						"wrong architecture: it is for ELF machine " + machine + ", this JVM (" + System.getProperty("os.arch") + ") needs " + expected);
			if (header.get(4) == 2)
				checkWhole(in, header);
		}
	}

	/** ELF64: every segment that will be mapped lies within the file. */
	private static void checkWhole(RandomAccessFile in, ByteBuffer header) throws IOException {
		int size = header.getShort(54) & 0xffff;
		int count = header.getShort(56) & 0xffff;
		ByteBuffer segments = read(in, header.getLong(32), size * count).order(header.order());
		boolean whole = size >= 56 && segments.limit() == size * count;
		for (int i = 0; whole && i < count; i++) {
			int at = i * size;
			long end = segments.getLong(at + 8) + segments.getLong(at + 32);
			whole = segments.getInt(at) != PT_LOAD || end >= 0 && end <= in.length();
		}
		if (!whole)
			throw new IOException("cut short: it has " + in.length() + " bytes, fewer than its header states");
	}

	private static ByteBuffer read(RandomAccessFile in, long position, int length) throws IOException {
		byte[] bytes = new byte[length];
		int got = 0;
		if (position >= 0) {
			in.seek(position);
			for (int n = 0; n >= 0 && got < length; got += Math.max(n, 0))
				n = in.read(bytes, got, length - got);
		}
		return ByteBuffer.wrap(bytes, 0, got);
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
