// SPDX-License-Identifier: MIT
package apps;

import java.util.Arrays;
import java.util.Random;
import mpi.Intracomm;
import mpi.MPI;

/**
 * Crypt of the Java Grande benchmarks (section 2): encrypts and decrypts a text by IDEA.
 *
 * <p>Rank 0 has the text, scatters it, gathers the cipher text, and gathers what the ranks deciphered.
 */
final class Crypt extends App {
	/** The example of the cipher's authors: key 1 2 3 ... 8, text 0 1 2 3. */
	private static final int[] EXAMPLE_KEY = {1, 2, 3, 4, 5, 6, 7, 8};
	private static final byte[] EXAMPLE = {0, 0, 0, 1, 0, 2, 0, 3};
	private static final byte[] EXAMPLE_CIPHER = {0x11, (byte) 0xfb, (byte) 0xed, 0x2b, 0x01, (byte) 0x98, 0x6d, (byte) 0xe5};
	private static final int SAMPLES = 1000;

	private final int bytes;
	private final int[] counts;
	private final int[] places;

	private int[] encrypt;
	private int[] decrypt;
	private byte[] text;
	private byte[] cipher;
	private byte[] back;
	private byte[] myText;
	private byte[] myCipher;

	Crypt(int bytes, Intracomm world) throws UsageException {
		super(world);
		this.bytes = bytes;
		if (bytes < Idea.BLOCK_BYTES || bytes % Idea.BLOCK_BYTES != 0)
			throw new UsageException("crypt wants a multiple of " + Idea.BLOCK_BYTES + " bytes, not " + bytes);
		counts = new int[ranks];
		places = new int[ranks];
		int blocks = bytes / Idea.BLOCK_BYTES;
		for (int k = 0; k < ranks; k++) {
			places[k] = share(blocks, k) * Idea.BLOCK_BYTES;
			counts[k] = share(blocks, k + 1) * Idea.BLOCK_BYTES - places[k];
		}
	}

	@Override
	String size() {
		return bytes + " bytes";
	}

	@Override
	void prepare() {
		Random random = new Random(136506717);
		int[] key = new int[EXAMPLE_KEY.length];
		for (int i = 0; i < key.length; i++)
			key[i] = random.nextInt(1 << 16);
		encrypt = Idea.encryptionKeys(key);
		decrypt = Idea.decryptionKeys(encrypt);
		int all = rank == 0 ? bytes : 0;
		text = new byte[all];
		cipher = new byte[all];
		back = new byte[all];
		random.nextBytes(text);
		myText = new byte[counts[rank]];
		myCipher = new byte[counts[rank]];
	}

	@Override
	void run() {
		enter();
		world.Scatterv(text, 0, counts, places, MPI.BYTE, myText, 0, myText.length, MPI.BYTE, 0);
		leave();
		Idea.cipher(myText, myCipher, myText.length, encrypt);
		gather(myCipher, cipher);
		Idea.cipher(myCipher, myText, myText.length, decrypt);
		gather(myText, back);
	}

	private void gather(byte[] mine, byte[] all) {
		enter();
		world.Gatherv(mine, 0, mine.length, MPI.BYTE, all, 0, counts, places, MPI.BYTE, 0);
		leave();
	}

	@Override
	double work() {
		return 2e-6 * bytes;
	}

	@Override
	String unit() {
		return "bytes";
	}

	@Override
	boolean verify(Report report) {
		byte[] out = new byte[Idea.BLOCK_BYTES];
		Idea.cipher(EXAMPLE, out, out.length, Idea.encryptionKeys(EXAMPLE_KEY));
		boolean good = report.check("the published example comes out", Arrays.equals(out, EXAMPLE_CIPHER));
		if (rank > 0)
			return good;
		good &= report.check("the text came back", Arrays.equals(text, back));
		return good & report.check("the cipher text has its places", samples());
	}

	/** Enciphers some blocks of the text here and compares. */
	private boolean samples() {
		byte[] in = new byte[Idea.BLOCK_BYTES];
		byte[] out = new byte[Idea.BLOCK_BYTES];
		int blocks = bytes / Idea.BLOCK_BYTES;
		int samples = Math.min(SAMPLES, blocks);
		boolean good = true;
		for (int i = 0; i < samples; i++) {
			int at = share(blocks, i, samples) * Idea.BLOCK_BYTES;
			System.arraycopy(text, at, in, 0, in.length);
			Idea.cipher(in, out, in.length, encrypt);
			good &= Arrays.equals(out, 0, out.length, cipher, at, at + out.length);
		}
		return good;
	}
}
