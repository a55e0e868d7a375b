// SPDX-License-Identifier: MIT
package device;

import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Arrays;
import java.util.HashSet;
import java.util.Set;
import java.util.UUID;
import mpjbuf.Buffer;
import mpjbuf.BufferFactory;
import mpjbuf.NIOBuffer;
import mpjbuf.RawBuffer;
import mpjbuf.Type;
import mpjdev.Request;
import mpjdev.Status;
import xdev.Device;
import xdev.ProcessID;

/** Payloads, matching, statuses, probes. Two ranks. */
final class Messages extends Program {
	public static void main(String[] args) throws Exception {
		new Messages().launch(args);
	}

	@Case
	void allSizes() throws Exception {
		int[] sizes = {0, 1, 7, 8, 63, 64, 100, 1000, 4095, 4096, 8192, 65536, 131064, 131072, 131073, 1 << 20, 5000001};
		for (int size : sizes) {
			if (me == 0) {
				dev.send(pattern(size, size), ids[1], 1, CONTEXT);
				dev.ssend(pattern(size, size + 1), ids[1], 1, CONTEXT);
				dev.isend(pattern(size, size + 2), ids[1], 1, CONTEXT).iwait();
				dev.issend(pattern(size, size + 3), ids[1], 1, CONTEXT).iwait();
			} else {
				for (int i = 0; i < 4; i++) {
					Buffer buf = room(size);
					checkStatus(dev.recv(buf, ids[0], 1, CONTEXT), 0, 1, Type.BYTE, size);
					checkPattern(buf, size, size + i);
				}
			}
		}
	}

	/** Direct buffers that are sent from, received into, dropped and collected: their memory comes back as that of others. */
	@Case
	void collectedBuffers() throws Exception {
		int rounds = Integer.getInteger("ibvdev.test.rounds", 200);
		int size = 150000;
		for (int round = 0; round < rounds; round++) {
			boolean sends = round % 2 == me;
			ByteBuffer memory = ByteBuffer.allocateDirect(size + 8);
			if (sends)
				memory.put(0, (byte) Type.BYTE.getCode()).putInt(4, size);
			for (int again = 0; again < 2; again++) {
				byte[] expected = bytes(size, round * 2 + again);
				Buffer buf = on(memory, 0);
				if (sends) {
					memory.duplicate().position(8).put(expected);
					buf.setSize(size + 8);
					dev.send(buf, ids[1 - me], 20, CONTEXT);
				} else {
					dev.recv(buf, ids[1 - me], 20, CONTEXT);
					byte[] got = new byte[size];
					memory.duplicate().position(8).get(got);
					check(Arrays.equals(expected, got), "round " + round + ": other bytes than were sent");
				}
			}
			if (round % 25 == 24)
				System.gc();
		}
	}

	/** Direct buffers that are freed by hand: the next one lies at the same address in other pages, which no old registration reaches. */
	@Case
	void buffersFreedByHand() throws Exception {
		Class<?> type = Class.forName("sun.misc.Unsafe");
		Field field = type.getDeclaredField("theUnsafe");
		field.setAccessible(true);
		Object unsafe = field.get(null);
		Method free = type.getMethod("invokeCleaner", ByteBuffer.class);
		int size = 1 << 20;
		int rounds = 20;
		Set<Long> addresses = new HashSet<>();
		for (int round = 0; round < rounds; round++) {
			ByteBuffer memory = mapped(size + 8);
			byte[] expected = bytes(size, round);
			addresses.add(address(memory));
			if (round % 2 == me) {
				memory.put(0, (byte) Type.BYTE.getCode()).putInt(4, size).position(8);
				memory.put(expected).clear();
				Buffer buf = on(memory, 0);
				buf.setSize(size + 8);
				dev.send(buf, ids[1 - me], 21, CONTEXT);
			} else {
				dev.recv(on(memory, 0), ids[1 - me], 21, CONTEXT);
				byte[] got = new byte[size];
				memory.position(8).get(got);
				equal(-1, Arrays.mismatch(expected, got), "round " + round + ": the first byte that is not what was sent");
			}
			free.invoke(unsafe, memory);
		}
		check(addresses.size() < rounds, "no address came back: this case shows nothing");
	}

	/** New pages. Memory of malloc() may keep its pages when it is freed. */
	private static ByteBuffer mapped(int size) throws Exception {
		Path file = Files.createTempFile("ibvdev-test-", ".map");
		try (FileChannel channel = FileChannel.open(file, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
			return channel.map(FileChannel.MapMode.READ_WRITE, 0, size);
		} finally {
			Files.delete(file);
		}
	}

	private static long address(ByteBuffer buffer) throws Exception {
		Method address = Class.forName("xdev.ibvdev.Native").getDeclaredMethod("address", ByteBuffer.class);
		address.setAccessible(true);
		return (long) address.invoke(null, buffer);
	}

	/** Registered by the program, often, and released; where an adapter is, its counter reports that it has them. */
	@Case
	void registeredBuffers() throws Exception {
		ByteBuffer memory = ByteBuffer.allocateDirect(1 << 20);
		fails(() -> dev.register(ByteBuffer.allocate(8)), "register", "allocateDirect");
		boolean adapter = dev.register(memory);
		equal(adapter, dev.register(memory), "the same again");
		for (int round = 0; round < 4; round++) {
			if (round % 2 == me) {
				memory.put(0, (byte) Type.BYTE.getCode()).putInt(4, 500000).put(500007, (byte) round);
				Buffer buf = on(memory, 0);
				buf.setSize(500008);
				dev.send(buf, ids[1 - me], 22, CONTEXT);
			} else {
				dev.recv(on(memory, 0), ids[1 - me], 22, CONTEXT);
				equal((byte) round, memory.get(500007), "last byte of round " + round);
			}
		}
		for (int i = 0; i < 3; i++)
			dev.release(memory); /* once more than it was registered */
	}

	@Case
	void bothDirectionsAtOnce() throws Exception {
		int size = 3000000;
		Buffer buf = room(size);
		Request receive = dev.irecv(buf, ids[1 - me], 2, CONTEXT, null);
		Request send = dev.isend(pattern(size, me), ids[1 - me], 2, CONTEXT);
		receive.iwait();
		send.iwait();
		checkPattern(buf, size, 1 - me);
	}

	@Case
	void objects() throws Exception {
		byte[] big = bytes(3000000, 9);
		if (me == 0) {
			dev.send(object("text", 42), ids[1], 3, CONTEXT);
			dev.send(object((Object) big), ids[1], 3, CONTEXT);
			dev.isend(object("later"), ids[1], 3, CONTEXT).iwait();
			dev.ssend(object((Object) big), ids[1], 3, CONTEXT);
			return;
		}
		Buffer buf = empty();
		checkStatus(dev.recv(buf, ids[0], 3, CONTEXT), 0, 3, Type.OBJECT, 2);
		equal(Arrays.asList("text", 42), Arrays.asList(readObjects(buf)), "objects");
		buf = empty();
		checkStatus(dev.irecv(buf, ids[0], 3, CONTEXT, null).iwait(), 0, 3, Type.OBJECT, 1);
		check(Arrays.equals(big, (byte[]) readObjects(buf)[0]), "big object");
		buf = empty();
		Request request = dev.irecv(buf, ids[0], 3, CONTEXT, null);
		while (request.itest() == null)
			Thread.onSpinWait();
		equal("later", readObjects(buf)[0], "object after itest");
		buf = empty();
		checkStatus(dev.probe(ids[0], 3, CONTEXT), 0, 3, Type.OBJECT, 1);
		dev.recv(buf, ids[0], 3, CONTEXT);
		check(Arrays.equals(big, (byte[]) readObjects(buf)[0]), "big object by ssend");
		dev.send(ints(1), ids[me], 3, CONTEXT);
		dev.recv(buf, ids[me], 3, CONTEXT);
		check(buf.getDynamicBuffer() == null, "a message without a dynamic section must clear the old one");
	}

	@Case
	void heapBuffers() throws Exception {
		int size = 200000;
		byte[] payload = bytes(size, 4);
		byte[] framed = new byte[size + 8 + 5];
		ByteBuffer.wrap(framed).put(5, (byte) Type.BYTE.getCode()).putInt(5 + 4, size);
		System.arraycopy(payload, 0, framed, 13, size);
		ByteBuffer heap = ByteBuffer.allocate(framed.length + 11);
		heap.position(11);
		ByteBuffer slice = heap.slice();
		slice.put(framed);
		slice.clear();
		if (me == 0) {
			for (ByteBuffer memory : new ByteBuffer[] {slice, slice.asReadOnlyBuffer()}) {
				Buffer buf = on(memory, 5);
				buf.commit();
				buf.setSize(size + 8);
				dev.send(buf, ids[1], 4, CONTEXT);
				dev.ssend(buf, ids[1], 4, CONTEXT);
				dev.isend(buf, ids[1], 4, CONTEXT).iwait();
				dev.issend(buf, ids[1], 4, CONTEXT).iwait();
			}
			return;
		}
		for (int i = 0; i < 8; i++) {
			ByteBuffer parent = ByteBuffer.allocate(size + 100);
			parent.position(3);
			Buffer buf = on(parent.slice(), 9);
			if (i % 4 == 0) {
				dev.recv(buf, ids[0], 4, CONTEXT);
			} else if (i % 4 == 1) {
				dev.irecv(buf, ids[0], 4, CONTEXT, null).iwait();
			} else if (i % 4 == 2) {
				Request request = dev.irecv(buf, ids[0], 4, CONTEXT, null);
				while (request.itest() == null)
					Thread.onSpinWait();
			} else {
				while (dev.iprobeAndFetch(ids[0], null, 4, CONTEXT, buf) == null)
					Thread.onSpinWait();
			}
			equal(0, (int) parent.get(3 + 8), "byte in front of the offset");
			checkPattern(buf, size, 4);
		}
		fails(() -> dev.recv(on(slice.asReadOnlyBuffer(), 0), ids[0], 4, CONTEXT), "read-only");
	}

	/** Whatever order the numbers are packed in, and whatever order the receiver's memory has had. */
	@Case
	void byteOrders() throws Exception {
		int n = 30000;
		double[] values = new double[n];
		Arrays.setAll(values, i -> i / 7.0);
		ByteOrder[] orders = {ByteOrder.BIG_ENDIAN, ByteOrder.LITTLE_ENDIAN};
		for (int i = 0; i < 16; i++) {
			ByteOrder packed = orders[i & 1];
			ByteBuffer memory = ((i & 4) == 0 ? ByteBuffer.allocateDirect(8 * n + 8) : ByteBuffer.allocate(8 * n + 8)).order(orders[(i & 2) / 2]);
			Buffer buf = on(memory, 0);
			if (me == 0) {
				memory.order(packed);
				buf.putSectionHeader(Type.DOUBLE);
				buf.write(values, 0, n);
				if ((i & 8) == 0)
					dev.send(buf, ids[1], 5, CONTEXT);
				else
					dev.isend(buf, ids[1], 5, CONTEXT).iwait();
				continue;
			}
			checkStatus(dev.probe(ids[0], 5, CONTEXT), 0, 5, Type.DOUBLE, n);
			if ((i & 8) == 0)
				dev.recv(buf, ids[0], 5, CONTEXT);
			else
				dev.irecv(buf, ids[0], 5, CONTEXT, null).iwait();
			equal(packed, memory.order(), "order");
			buf.commit();
			buf.getSectionHeader();
			equal(n, buf.getSectionSize(), "section size");
			double[] got = new double[n];
			buf.read(got, 0, n);
			check(Arrays.equals(values, got), "numbers packed " + packed);
		}
		RawBuffer pooled = BufferFactory.create(64);
		equal(ByteOrder.nativeOrder(), ((NIOBuffer) pooled).getBuffer().order(), "order of the pool's buffers");
		BufferFactory.destroy(pooled);
	}

	@Case
	void oneBufferToManyAndClearedEarly() throws Exception {
		int n = 40;
		if (me == 0) {
			Buffer buf = ints(11, 22);
			Request[] sends = new Request[n];
			for (int i = 0; i < n; i++)
				sends[i] = dev.isend(buf, ids[1], i, CONTEXT);
			buf.clear();
			for (Request send : sends)
				check(send.iwait() != null, "the status of a send");
			return;
		}
		for (int i = n - 1; i >= 0; i--) {
			Buffer buf = empty();
			checkStatus(dev.recv(buf, ids[0], i, CONTEXT), 0, i, Type.INT, 2);
			equal(22, readInts(buf)[1], "element");
		}
	}

	@Case
	void uncommittedBufferIsCommitted() throws Exception {
		if (me == 0) {
			Buffer buf = new Buffer(32);
			buf.putSectionHeader(Type.INT);
			buf.write(new int[] {7}, 0, 1);
			dev.send(buf, ids[1], 5, CONTEXT);
		} else {
			checkStatus(dev.recv(empty(), ids[0], 5, CONTEXT), 0, 5, Type.INT, 1);
		}
	}

	@Case
	void tagsAndContextsOfAllBits() throws Exception {
		int[] values = {Integer.MIN_VALUE, -994576, -3, -1, 0, 1, 1 << 16, 1 << 24, Integer.MAX_VALUE};
		if (me == 0) {
			for (int context : values)
				for (int tag : values)
					dev.send(ints(tag, context), ids[1], tag, context);
			dev.send(ints(1), ids[1], -2, CONTEXT);
			return;
		}
		for (int i = values.length - 1; i >= 0; i--)
			for (int tag : values) {
				Buffer buf = empty();
				dev.recv(buf, ids[0], tag, values[i]);
				check(Arrays.equals(new int[] {tag, values[i]}, readInts(buf)), "tag " + tag + " context " + values[i]);
			}
		equal(-2, dev.recv(empty(), ids[0], Device.ANY_TAG, CONTEXT).tag, "tag -2");
	}

	@Case
	void unexpectedInReverse() throws Exception {
		int n = 3000;
		if (me == 0) {
			for (int i = 0; i < n; i++)
				dev.isend(ints(i), ids[1], i, CONTEXT).iwait();
			signal(1, 1);
			return;
		}
		await(0, 1);
		for (int i = n - 1; i >= 0; i--) {
			Buffer buf = empty();
			dev.recv(buf, Device.ANY_SRC, i, CONTEXT);
			equal(i, readInts(buf)[0], "element");
		}
	}

	@Case
	void orderAcrossProtocols() throws Exception {
		int[] sizes = {8, 500000, 100, 200000, 0, 70000, 8, 1000000};
		int rounds = 4;
		if (me == 0) {
			Request[] sends = new Request[rounds * sizes.length];
			for (int i = 0; i < sends.length; i++) {
				Buffer buf = pattern(sizes[i % sizes.length], i);
				sends[i] = i % 3 == 0 ? dev.issend(buf, ids[1], 6, CONTEXT) : dev.isend(buf, ids[1], 6, CONTEXT);
			}
			for (Request send : sends)
				send.iwait();
			return;
		}
		for (int i = 0; i < rounds * sizes.length; i++) {
			Buffer buf = room(1000000);
			ProcessID source = i % 2 == 0 ? Device.ANY_SRC : ids[0];
			checkStatus(dev.recv(buf, source, i % 4 < 2 ? Device.ANY_TAG : 6, CONTEXT), 0, 6, Type.BYTE, sizes[i % sizes.length]);
			checkPattern(buf, sizes[i % sizes.length], i);
		}
	}

	@Case
	void probesShowTheNextMessage() throws Exception {
		int[] sizes = {16, 300000};
		if (me == 0) {
			for (int size : sizes) {
				dev.isend(pattern(size, 1), ids[1], 7, CONTEXT).iwait();
				dev.issend(pattern(size, 2), ids[1], 8, CONTEXT).iwait();
			}
			return;
		}
		for (int size : sizes) {
			for (int sync = 0; sync < 2; sync++) {
				Status status = dev.probe(Device.ANY_SRC, 7 + sync, CONTEXT);
				checkStatus(status, 0, 7 + sync, Type.BYTE, size);
				checkStatus(dev.iprobe(ids[0], Device.ANY_TAG, CONTEXT), 0, 7 + sync, Type.BYTE, size);
				check(dev.iprobe(ids[0], 99, CONTEXT) == null, "another tag");
				check(dev.iprobe(ids[0], 7 + sync, CONTEXT + 1) == null, "another context");
				checkStatus(dev.iprobe(ids[0], ids[1], 7 + sync, CONTEXT), 0, 7 + sync, Type.BYTE, size);
				check(dev.iprobe(ids[0], ids[0], 7 + sync, CONTEXT) == null, "another destination");
				Buffer buf = room(size);
				check(dev.iprobeAndFetch(ids[0], ids[0], 7 + sync, CONTEXT, buf) == null, "another destination");
				if (sync == 0)
					dev.recv(buf, new ProcessID(status.srcID), status.tag, CONTEXT);
				else
					checkStatus(dev.iprobeAndFetch(ids[0], ids[1], 8, CONTEXT, buf), 0, 8, Type.BYTE, size);
				checkPattern(buf, size, 1 + sync);
				check(dev.iprobe(ids[0], 7 + sync, CONTEXT) == null, "taken");
				check(dev.iprobeAndFetch(ids[0], null, 7 + sync, CONTEXT, buf) == null, "taken");
			}
		}
	}

	@Case
	void fetchTruncates() throws Exception {
		dev.send(pattern(100, 1), ids[me], 9, CONTEXT);
		fails(() -> dev.iprobeAndFetch(ids[me], null, 9, CONTEXT, room(10)), "108", "18");
		check(dev.iprobe(ids[me], 9, CONTEXT) == null, "the truncated message is consumed");
	}

	@Case
	void probeOfSelfSends() throws Exception {
		check(dev.iprobe(Device.ANY_SRC, Device.ANY_TAG, CONTEXT) == null, "nothing there");
		Request sync = dev.issend(pattern(300000, 1), ids[me], 10, CONTEXT);
		checkStatus(dev.probe(ids[me], 10, CONTEXT), me, 10, Type.BYTE, 300000);
		check(sync.itest() == null, "a synchronous send waits for its receive");
		dev.recv(room(300000), ids[me], 10, CONTEXT);
		sync.iwait();
	}

	@Case
	void foreignProcessIds() throws Exception {
		ProcessID alien = new ProcessID(UUID.nameUUIDFromBytes("alien".getBytes(StandardCharsets.US_ASCII)));
		ProcessID twin = new ProcessID(ids[1 - me].uuid());
		Request send = dev.isend(ints(me), twin, 11, CONTEXT);
		checkStatus(dev.recv(empty(), new ProcessID(twin.uuid()), 11, CONTEXT), 1 - me, 11, Type.INT, 1);
		send.iwait();
		Request any = dev.irecv(empty(), new ProcessID(Device.ANY_SRC.uuid()), 12, CONTEXT, null);
		dev.send(ints(1), ids[me], 12, CONTEXT);
		checkStatus(any.iwait(), me, 12, Type.INT, 1);
		fails(() -> dev.send(ints(1), alien, 1, CONTEXT), "send", "destination", alien.uuid().toString(), "init");
		fails(() -> dev.send(ints(1), Device.ANY_SRC, 1, CONTEXT), "destination");
		fails(() -> dev.recv(empty(), alien, 1, CONTEXT), "recv", "source", alien.uuid().toString());
		fails(() -> dev.isend(ints(1), null, 1, CONTEXT), "isend", "null");
		fails(() -> dev.irecv(empty(), null, 1, CONTEXT, null), "irecv", "null");
		fails(() -> dev.probe(null, 1, CONTEXT), "probe", "null");
		fails(() -> dev.iprobe(ids[0], alien, 1, CONTEXT), "destination");
		fails(() -> dev.issend(ints(1), new ProcessID(null), 1, CONTEXT), "issend", "null");
	}

	@Case
	void wrongBuffers() throws Exception {
		Buffer freed = ints(1, 2);
		freed.free();
		fails(() -> dev.send(null, ids[me], 1, CONTEXT), "send", "buffer is null");
		fails(() -> dev.issend(null, ids[me], 1, CONTEXT), "issend", "buffer is null");
		fails(() -> dev.recv(null, ids[me], 1, CONTEXT), "recv", "buffer is null");
		fails(() -> dev.irecv(null, ids[me], 1, CONTEXT, null), "irecv", "buffer is null");
		fails(() -> dev.iprobeAndFetch(ids[me], null, 1, CONTEXT, null), "buffer is null");
		fails(() -> dev.send(freed, ids[me], 1, CONTEXT), "send", "freed");
		fails(() -> dev.isend(freed, ids[me], 1, CONTEXT), "isend", "freed");
		fails(() -> dev.recv(freed, ids[me], 1, CONTEXT), "recv", "freed");
		fails(() -> dev.irecv(freed, ids[me], 1, CONTEXT, null), "irecv", "freed");
		Buffer lying = ints(1, 2);
		lying.setSize(1000);
		fails(() -> dev.send(lying, ids[me], 1, CONTEXT), "1000", "24");
		lying.setSize(-1);
		fails(() -> dev.isend(lying, ids[me], 1, CONTEXT), "-1");
		Buffer hollow = new Buffer(8);
		hollow.setStaticBuffer(null);
		fails(() -> dev.recv(hollow, ids[me], 1, CONTEXT), "no static section");
		check(dev.iprobe(Device.ANY_SRC, Device.ANY_TAG, CONTEXT) == null, "nothing was sent");
	}

	@Case
	void limitsOfTheByteBufferDoNotMatter() throws Exception {
		Buffer buf = ints(1, 2, 3, 4);
		ByteBuffer memory = ((mpjbuf.NIOBuffer) buf.getStaticBuffer()).getBuffer();
		memory.limit(2);
		dev.send(buf, ids[me], 13, CONTEXT);
		equal(2, memory.limit(), "limit");
		Buffer to = empty();
		ByteBuffer room = ((mpjbuf.NIOBuffer) to.getStaticBuffer()).getBuffer();
		room.limit(1);
		checkStatus(dev.recv(to, ids[me], 13, CONTEXT), me, 13, Type.INT, 4);
		equal(1, room.limit(), "limit");
		room.clear();
		equal(4, readInts(to)[3], "element");
	}
}
