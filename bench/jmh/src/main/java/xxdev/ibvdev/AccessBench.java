// SPDX-License-Identifier: MIT
package xxdev.ibvdev;

import java.nio.ByteBuffer;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;

/** What it costs to copy a Java array to native memory. */
@State(Scope.Benchmark)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
public class AccessBench {
	@Param({"8", "256", "4096", "65536", "1048576"}) private int bytes;
	private byte[] array;
	private ByteBuffer buffer;

	@Setup
	public void setup() {
		array = new byte[bytes];
		buffer = ByteBuffer.allocateDirect(bytes);
	}

	@Benchmark
	public void getArrayRegion() {
		Access.region(array, bytes);
	}

	@Benchmark
	public void getPrimitiveArrayCritical() {
		Access.critical(array, bytes);
	}

	@Benchmark
	public void getArrayElements() {
		Access.elements(array, bytes);
	}

	@Benchmark
	public void directBuffer() {
		Access.direct(buffer, bytes);
	}
}
