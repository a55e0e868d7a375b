// SPDX-License-Identifier: MIT
package xxdevtest;

import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import xxdev.XXDevException;
import xxdev.ibvdev.CodecAccess;

/**
 * Messages of objects that were damaged at random: each is refused by an exception of ours, or read as objects, and neither takes much
 * memory. The job sets psl so low that the classes are described in the messages. The seed is another one each time, and printed;
 * {@code -Dxxdevtest.seed=S -Dxxdevtest.count=1} repeats message S. Rank 0 does it all, rank 1 is the one
 * that the messages seem to come from.
 */
final class Damaged extends Program {
	private static final int[] EDGES = {0, 1, 0x7f, 0x80, 0xff, 0x70, 0x71, 0x72, 0x73, 0x74, 0x75, 0x76, 0x77, 0x78, 0x79, 0x7c, 0x7e};
	/** Beyond what the largest of these messages can claim in arrays: 16 elements a byte, in each of its objects. */
	private static final long MEMORY = 64 << 20;

	private final com.sun.management.ThreadMXBean threads = (com.sun.management.ThreadMXBean) ManagementFactory.getThreadMXBean();

	public static void main(String[] args) throws Exception {
		new Damaged().launch(args);
	}

	private List<byte[]> messages() {
		Map<Object, Object> map = new HashMap<>(Map.of("a", 1, "b", List.of(2L, 3.0)));
		Object speech = java.lang.reflect.Proxy.newProxyInstance(Damaged.class.getClassLoader(), new Class<?>[] {Parcels.Speaker.class}, new Parcels.Speech());
		BitSet bits = new BitSet();
		bits.set(5, 200);
		List<byte[]> messages = new ArrayList<>();
		for (Object object : new Object[] {"text", Parcels.Tree.of(4, 1), map, new TreeMap<>(Map.of(1, "x", 2, "y")),
					 new Parcels.Derived("d", 1, "two", new int[3]), new Parcels.External(), Parcels.Link.chain(20), speech, bits,
					 new Object[][] {{1, null}, {"x"}}, String.class, new ArrayList<>(Arrays.asList(1, 2))})
			messages.add(CodecAccess.pack(dev, 1, object));
		return messages;
	}

	private static byte[] damage(byte[] message, Random random) {
		byte[] bytes = message.clone();
		for (int n = 1 + random.nextInt(3); n > 0 && bytes.length > 0; n--) {
			int at = random.nextInt(bytes.length);
			int length = Math.min(1 + random.nextInt(8), bytes.length - at);
			switch (random.nextInt(6)) {
			case 0:
				bytes[at] ^= (byte) (1 << random.nextInt(8));
				break;
			case 1:
				bytes[at] = (byte) EDGES[random.nextInt(EDGES.length)];
				break;
			case 2:
				bytes = Arrays.copyOf(bytes, at);
				break;
			case 3: /* cut out */
				System.arraycopy(bytes, at + length, bytes, at, bytes.length - at - length);
				bytes = Arrays.copyOf(bytes, bytes.length - length);
				break;
			case 4: /* a piece at another place */
				System.arraycopy(message, Math.min(random.nextInt(message.length), message.length - length), bytes, at, length);
				break;
			default:
				for (int i = at; i < at + length; i++)
					bytes[i] = (byte) random.nextInt();
				break;
			}
		}
		return bytes;
	}

	/** True: it was read. */
	private boolean read(byte[] message, long seed) {
		long before = threads.getThreadAllocatedBytes(Thread.currentThread().getId());
		boolean whole = true;
		try {
			equal(1, CodecAccess.unpack(dev, size, 1, message, 1).length, "objects");
		} catch (XXDevException e) {
			whole = false;
		} catch (Throwable e) {
			throw new AssertionError("message " + seed + " ends with " + e, e);
		}
		long taken = threads.getThreadAllocatedBytes(Thread.currentThread().getId()) - before;
		check(taken < MEMORY, "message " + seed + " of " + message.length + " bytes took " + taken);
		return whole;
	}

	@Case
	void damagedMessages() {
		if (me != 0)
			return;
		long first = Long.getLong("xxdevtest.seed", System.nanoTime() >>> 10);
		int count = Integer.getInteger("xxdevtest.count", QUICK ? 5000 : 50000);
		List<byte[]> messages = messages();
		int whole = 0;
		System.out.println(count + " messages from seed " + first);
		for (byte[] message : messages)
			equal(1, CodecAccess.unpack(dev, size, 1, message, 1).length, "objects");
		for (long seed = first; seed < first + count; seed++) {
			Random random = new Random(seed);
			byte[] message = messages.get(random.nextInt(messages.size()));
			whole += read(damage(message, random), seed) ? 1 : 0;
		}
		System.out.println(whole + " were read");
		check(count < 1000 || (whole > 0 && whole < count), "of " + count + " messages " + whole + " were read");
	}
}
