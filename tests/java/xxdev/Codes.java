// SPDX-License-Identifier: MIT
package xxdevtest;

import harness.Job;
import harness.Task;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import xxdev.Device;
import xxdev.ErrorCode;
import xxdev.Request;
import xxdev.XXDevException;
import xxdev.ibvdev.ByRank;
import xxdev.ibvdev.Communicator;
import xxdev.ibvdev.IBVDevice;
import xxdev.ibvdev.MatchedMessage;

/** What programs learn from exceptions: the code and the rank. Argument: cases; death or leave (of rank 1): two ranks. library (none can be loaded) or devices (as many as there can be): one rank. */
final class Codes extends Program {
	/** How many devices a process can have open (SLOT_COUNT of jni/endpoint.c). */
	private static final int MOST_DEVICES = 256;

	private final String[] args;

	private Codes(String[] args) {
		this.args = args;
	}

	public static void main(String[] args) throws Exception {
		Codes codes = new Codes(args);
		switch (args[3]) {
		case "cases":
			codes.launch(args);
			break;
		case "library":
			codes.noLibrary();
			break;
		case "devices":
			codes.manyDevices();
			break;
		default:
			codes.end(args[3].equals("death"));
		}
	}

	private static void refused(ErrorCode code, int rank, Task.Action action) throws Exception {
		XXDevException e = fails(action);
		if (e.code() != code || e.rank() != rank)
			throw new AssertionError("expected " + code + " of rank " + rank + ", got " + e.code() + " of rank " + e.rank(), e);
	}

	@Case
	void messagesThatDoNotFit() throws Exception {
		int other = 1 - me;
		Object[][] pairs = {{new int[3], new int[2]}, {new int[100000], new int[2]}, {new int[3][3], new int[3][2]}, {new Object[3], new Object[2]}};
		Object[][] mixed = {{new int[3], new long[3]}, {"text", new int[3]}, {new int[3], new Object[3]}, {"text", new Integer[1]}};
		for (int i = 0; i < pairs.length; i++) {
			for (boolean cut : new boolean[] {true, false}) {
				ErrorCode code = cut ? ErrorCode.TRUNCATED : ErrorCode.TYPE_MISMATCH;
				Object[] pair = cut ? pairs[i] : mixed[i];
				Request first = dev.isend(pair[0], ids[other], 1, CONTEXT);
				refused(code, other, () -> dev.recv(pair[1], Device.ANY_SRC, 1, CONTEXT));
				Request second = dev.isend(pair[0], ids[other], 1, CONTEXT);
				Request receive = dev.irecv(pair[1], Device.ANY_SRC, 1, CONTEXT);
				refused(code, other, receive::iwait);
				refused(code, other, receive::test);
				first.iwait();
				second.iwait();
			}
		}
	}

	@Case
	void arguments() throws Exception {
		refused(ErrorCode.BAD_ARGUMENT, -1, () -> dev.send(null, ids[0], 1, CONTEXT));
		refused(ErrorCode.BAD_ARGUMENT, -1, () -> dev.send(new int[1], null, 1, CONTEXT));
		refused(ErrorCode.BAD_ARGUMENT, -1, () -> dev.send(new int[1], 0, 2, ids[0], 1, CONTEXT));
		refused(ErrorCode.BAD_ARGUMENT, -1, () -> dev.recv(new int[1], ids[0], 1, Integer.MIN_VALUE));
		refused(ErrorCode.BAD_ARGUMENT, -1, () -> dev.recv(new int[3][], ids[0], 1, CONTEXT));
		refused(ErrorCode.BAD_ARGUMENT, -1, () -> Device.newInstance("nosuchdev"));
		Device fresh = Device.newInstance("ibvdev");
		refused(ErrorCode.BAD_ARGUMENT, -1, () -> fresh.init(new String[] {"x", args[1], "ibvdev"}));
		refused(ErrorCode.BAD_ARGUMENT, -1, () -> fresh.init(new String[] {"0", "/no/such/conf", "ibvdev"}));
	}

	@Case
	void wrongMoments() throws Exception {
		Device fresh = Device.newInstance("ibvdev");
		refused(ErrorCode.CLOSED, -1, fresh::id);
		refused(ErrorCode.CLOSED, -1, fresh::finish);
		refused(ErrorCode.CLOSED, -1, fresh::peek);
		refused(ErrorCode.CLOSED, -1, () -> fresh.send(new int[1], ids[0], 1, CONTEXT));
		refused(ErrorCode.BUSY, -1, () -> dev.init(args));
		Request receive = dev.irecv(new int[1], ids[me], 5, CONTEXT);
		refused(ErrorCode.BUSY, -1, dev::finish);
		check(receive.cancel(), "unmatched");
		refused(ErrorCode.CANCELLED, -1, receive::iwait);
		fresh.init(new String[] {"auto"});
		Request lost = fresh.irecv(new int[1], fresh.id(), 5, CONTEXT);
		Request sent = fresh.isend(new int[1], fresh.id(), 5, CONTEXT);
		lost.iwait();
		fresh.finish();
		refused(ErrorCode.CLOSED, -1, sent::iwait);
	}

	@Case
	void objects() throws Exception {
		refused(ErrorCode.SERIALIZATION, -1, () -> dev.send(new Parcels.NotSerializable(), ids[me], 1, CONTEXT));
	}

	@Case
	void matchedOnce() throws Exception {
		ByRank device = new ByRank((IBVDevice) dev);
		Request send = dev.isend(new int[1], ids[1 - me], 6, CONTEXT);
		MatchedMessage message = device.match(true, 1 - me, 6, CONTEXT);
		message.irecv("irecv", new int[1], 0, 1).iwait();
		send.iwait();
		refused(ErrorCode.BAD_ARGUMENT, -1, () -> message.irecv("irecv", new int[1], 0, 1));
		refused(ErrorCode.BAD_ARGUMENT, -1, () -> message.irecvObjects("irecv", new Object[1], 0, 1));
	}

	/** The JVM's own error ends the wait; what asks later learns what became of the receive. */
	@Case
	void noMemory() throws Exception {
		Request send = dev.isend(new Object[] {new Parcels.TooBig()}, ids[1 - me], 7, CONTEXT);
		Request receive = dev.irecv(new Object[1], ids[1 - me], 7, CONTEXT);
		try {
			receive.iwait();
			throw new AssertionError("an object that no heap can hold was received");
		} catch (OutOfMemoryError e) {
			refused(ErrorCode.NO_MEMORY, -1, receive::iwait);
			refused(ErrorCode.NO_MEMORY, -1, receive::test);
		}
		send.iwait();
	}

	/** Rank 1 of this job does not come. */
	@Case
	void time() throws Exception {
		Path conf = Files.createTempFile("ibvdev-codes-", ".conf");
		System.setProperty("ibvdev.start_timeout_ms", "100");
		try {
			Job.writeConf(conf, Job.freePorts(4), List.of());
			refused(ErrorCode.TIMEOUT, -1, () -> Device.newInstance("ibvdev").init(new String[] {"0", conf.toString(), "ibvdev"}));
		} finally {
			System.clearProperty("ibvdev.start_timeout_ms");
			Files.delete(conf);
		}
	}

	/** What no test can bring about here. */
	@Case
	void errorNumbers() throws Exception {
		Method code = Class.forName("xxdev.ibvdev.Errors").getDeclaredMethod("code", int.class, int.class);
		code.setAccessible(true);
		equal(ErrorCode.NO_MEMORY, code.invoke(null, 12, -1), "ENOMEM");
		equal(ErrorCode.LIMIT, code.invoke(null, 28, -1), "ENOSPC");
		equal(ErrorCode.UNREACHABLE, code.invoke(null, 5, 3), "EIO of a connection");
		equal(ErrorCode.UNREACHABLE, code.invoke(null, 110, 3), "ETIMEDOUT of a connection");
		equal(ErrorCode.OTHER, code.invoke(null, 5, -1), "EIO");
	}

	/** The property ibvdev.library names no file. */
	private void noLibrary() throws Exception {
		refused(ErrorCode.NO_LIBRARY, -1, () -> dev.init(args));
		System.out.println("finished");
	}

	private void manyDevices() throws Exception {
		Deque<Device> open = new ArrayDeque<>();
		for (int i = 0; i < MOST_DEVICES; i++) {
			open.push(Device.newInstance("ibvdev"));
			open.peek().init(new String[] {"auto"});
		}
		refused(ErrorCode.LIMIT, -1, () -> dev.init(new String[] {"auto"}));
		open.pop().finish();
		dev.init(new String[] {"auto"});
		dev.finish();
		for (Device device : open)
			device.finish();
		System.out.println("finished");
	}

	/** Rank 1 ends, with a finish or without. */
	private void end(boolean dies) throws Exception {
		ErrorCode code = dies ? ErrorCode.PEER_DIED : ErrorCode.PEER_LEFT;
		ids = dev.init(args);
		size = ids.length;
		me = dev.id().rank();
		Communicator world = Communicator.world((IBVDevice) dev);
		meet();
		if (me == 1) {
			world.free();
			if (!dies)
				dev.finish();
			System.out.println("finished");
			System.out.flush();
			Runtime.getRuntime().halt(0);
		}
		Request early = dev.irecv(new int[1], ids[1], 1, CONTEXT);
		refused(code, 1, early::iwait);
		refused(code, 1, () -> dev.recv(new int[1], ids[1], 1, CONTEXT));
		refused(code, 1, () -> dev.recv(new Object[1], ids[1], 1, CONTEXT));
		refused(code, 1, () -> dev.send(new int[1], ids[1], 1, CONTEXT));
		refused(code, 1, () -> dev.isend(new int[100000], ids[1], 1, CONTEXT));
		refused(code, 1, () -> dev.probe(ids[1], 1, CONTEXT));
		ByteBuffer memory = ByteBuffer.allocateDirect(Communicator.Description.BYTES).order(ByteOrder.nativeOrder());
		new Communicator.Description(memory, Communicator.BARRIER, 0);
		refused(code, 1, () -> world.run("Barrier", memory));
		System.out.println("finished");
		System.out.flush();
		Runtime.getRuntime().halt(0);
	}
}
