// SPDX-License-Identifier: MIT
package device;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import harness.EveryMode;
import harness.Job;
import harness.Mode;
import harness.Result;
import java.nio.file.Path;
import java.util.stream.Stream;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.BeforeEach;

/** A transport over a communication library of the system, by TCP on this machine, in real JVMs. */
abstract class NetlibTest {
	private final String transport;
	private final String library;

	/** The library: its file name without the version. */
	NetlibTest(String transport, String library) {
		this.transport = transport;
		this.library = library;
	}

	@BeforeEach
	void theLibraryIsInstalled() {
		Assumptions.assumeTrue(Stream.of("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib")
									   .map(folder -> Path.of(folder).toFile().list((at, name) -> name.startsWith(library)))
									   .anyMatch(found -> found != null && found.length > 0),
				library + " is not installed");
	}

	private Job job(Mode mode, int np, Class<?> main, String... args) {
		return Job.of(mode, np, main, args).option("-Dibvdev.transports=self," + transport).seconds(180);
	}

	@EveryMode
	void leavesTheJvmAlone(Mode mode) {
		Result result = job(mode, 2, Libraries.class, library).run().assertSuccess();
		for (int rank = 0; rank < 2; rank++) {
			assertTrue(result.stdout(rank).contains("the JVM is whole"), result.toString());
			assertEquals("", result.stderr(rank), result.toString());
		}
	}

	@EveryMode
	void repeatedInitAndFinish(Mode mode) {
		Result result = job(mode, 2, Lifecycle.class, "rounds", "100").run().assertSuccess();
		assertTrue(result.stdout(0).contains("rounds 100"), result.toString());
		assertEquals("", result.stderr(0), result.toString());
	}

	@EveryMode
	void messages(Mode mode) {
		job(mode, 2, Messages.class).run().assertSuccess();
	}

	@EveryMode
	void requests(Mode mode) {
		job(mode, 2, Requests.class).run().assertSuccess();
	}
}
