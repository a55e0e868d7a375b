// SPDX-License-Identifier: MIT
package xxdev.ibvdev;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import xdev.ibvdev.NativeLibrary;
import xdev.ibvdev.Settings;
import xxdev.Device;
import xxdev.PID;
import xxdev.Request;
import xxdev.Status;

/** A job of one rank that sends to itself: what each operation costs without a second processor. */
@State(Scope.Benchmark)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
public class SelfBench {
	private static final int TAG = 1;
	private Device device;
	private PID self;
	private long endpoint;
	private final byte[] none = {};
	private final byte[] out = new byte[8];
	private final byte[] in = new byte[8];
	private BounceBuffer bounce;
	private Request never;

	/** Two endpoints: the device's, and one that the natives are called for. */
	@Setup
	public void setup() throws IOException {
		Path conf = Files.createTempFile("ibvbench", ".conf");
		Files.writeString(conf, "1\n131072\nlocalhost@11311@11312@0@0\n");
		device = Device.newInstance("ibvdev");
		self = device.init(new String[] {"0", conf.toString(), "ibvdev"})[0];
		NativeLibrary.load();
		endpoint = Native.open(0, Settings.text(conf.toString()), Settings.properties(), Settings.defaults());
		if (Native.failed(endpoint))
			throw new IllegalStateException(Texts.last());
		Files.delete(conf);
		never = device.irecv(in, self, 99, 0);
	}

	@TearDown
	public void close() {
		never.cancel();
		device.finish();
		Native.close(endpoint);
	}

	/** Each thread has its own. */
	private BounceBuffer bounce() {
		if (bounce == null)
			bounce = BounceBuffer.own();
		return bounce;
	}

	/** The library by way of natives, with memory outside of the heap: no array is touched. */
	@Benchmark
	public int natives8BytesMemory() {
		long at = bounce().address;
		int rc = Native.send(endpoint, null, Native.MEMORY, at, 8, 0, TAG, 0, 2);
		return rc | Native.recv(endpoint, null, Native.MEMORY, at + 8, 8, 0, TAG, 0, 2, bounce.result.address);
	}

	/** The same with arrays, which the natives ask the JVM for. */
	@Benchmark
	public int natives8BytesArray() {
		int rc = Native.send(endpoint, out, Native.BYTE, 0, 8, 0, TAG, 0, 2);
		return rc | Native.recv(endpoint, in, Native.BYTE, 0, 8, 0, TAG, 0, 2, bounce().result.address);
	}

	/** What the device does with a short array instead: to native memory, and from there. */
	@Benchmark
	public byte[] roomThereAndBack() {
		bounce().put(Native.BYTE, out, 0, 8);
		bounce.get(Native.BYTE, in, 0, 8);
		return in;
	}

	/** All of it. */
	@Benchmark
	public Status device8Bytes() {
		device.send(out, self, TAG, 0);
		return device.recv(in, self, TAG, 0);
	}

	@Benchmark
	public Status device0Bytes() {
		device.send(none, self, TAG, 0);
		return device.recv(none, self, TAG, 0);
	}

	@Benchmark
	public Status isendRecvIwait8Bytes() {
		Request send = device.isend(out, self, TAG, 0);
		Status status = device.recv(in, self, TAG, 0);
		send.iwait();
		return status;
	}

	@Benchmark
	public Status irecvIsend8BytesIwaitBoth() {
		Request receive = device.irecv(in, self, TAG, 0);
		Request send = device.isend(out, self, TAG, 0);
		send.iwait();
		return receive.iwait();
	}

	@Benchmark
	public Status testOfPending() {
		return never.test();
	}

	@Benchmark
	public Status iprobeNothing() {
		return device.iprobe(self, TAG, 0);
	}
}
