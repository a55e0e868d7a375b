// SPDX-License-Identifier: MIT
package device;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import harness.EveryMode;
import harness.Job;
import harness.Mode;
import harness.Result;
import harness.Running;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The device itself, without mpi.*. */
final class DeviceTest {
	private static void cases(Job job) {
		Result result = job.run().assertSuccess();
		for (int rank = 0; rank < result.ranks.size(); rank++)
			assertTrue(result.stdout(rank).contains("finished"), result.toString());
	}

	@EveryMode
	void defectsOfNiodev(Mode mode) {
		cases(Job.of(mode, 2, Defects.class));
	}

	@EveryMode
	void messages(Mode mode) {
		cases(Job.of(mode, 2, Messages.class));
	}

	@EveryMode
	void messagesWithLowSwitchLimit(Mode mode) {
		cases(Job.of(mode, 2, Messages.class).option("-Dibvdev.psl=200"));
	}

	@EveryMode
	void requests(Mode mode) {
		cases(Job.of(mode, 2, Requests.class));
	}

	@EveryMode
	void finishing(Mode mode) {
		cases(Job.of(mode, 2, Lifecycle.class, "cases"));
	}

	@EveryMode
	void finishTimesOut(Mode mode) {
		cases(Job.of(mode, 2, Lifecycle.class, "timeout").option("-Dibvdev.finish_timeout_ms=2000"));
	}

	@EveryMode
	void finishAfterThePeer(Mode mode) {
		cases(Job.of(mode, 2, Lifecycle.class, "late"));
	}

	@EveryMode
	@Tag("allocator")
	void memoryRunsOut(Mode mode) {
		cases(Job.of(mode, 1, Lifecycle.class, "memory").option("-Xms256m"));
	}

	@EveryMode
	void repeatedInitAndFinish(Mode mode) {
		Result result = Job.of(mode, 2, Lifecycle.class, "rounds", "130").seconds(120).run().assertSuccess();
		assertTrue(result.stdout(0).contains("rounds 130"), result.toString());
	}

	@EveryMode
	void repeatedInitOfFour(Mode mode) {
		Job.of(mode, 4, Lifecycle.class, "rounds", "15").seconds(120).run().assertSuccess();
	}

	@EveryMode
	void badArguments(Mode mode) {
		Result result = Job.of(mode, 1, Lifecycle.class, "alone").run().assertSuccess();
		assertTrue(result.stdout(0).contains("survived"), result.toString());
	}

	@EveryMode
	void missingRank(Mode mode) throws Exception {
		Path conf = Files.createTempFile("ibvdev-missing-", ".conf");
		try {
			Job.writeConf(conf, Job.freePorts(6), java.util.List.of());
			Result result =
					Job.of(mode, 2, Lifecycle.class, "expect", "2").conf(conf.toString()).option("-Dibvdev.start_timeout_ms=3000").run().assertSuccess();
			for (int rank = 0; rank < 2; rank++)
				assertTrue(result.stdout(rank).contains("failed as it should"), result.toString());
		} finally {
			Files.delete(conf);
		}
	}

	@EveryMode
	void unreachableHost(Mode mode) throws Exception {
		Path conf = Files.createTempFile("ibvdev-unreachable-", ".conf");
		try {
			Files.writeString(conf, "2\n131072\nno-such-host.invalid@21000@21001@0@0\nlocalhost@21002@21003@1@0\n");
			/* Rank 0 knows its own port and waits in vain. */
			Result result = Job.of(mode, 2, Lifecycle.class, "unreachable", "no-such-host.invalid")
									.conf(conf.toString())
									.option("-Dibvdev.start_timeout_ms=2000")
									.run()
									.assertSuccess();
			for (int rank = 0; rank < 2; rank++)
				assertTrue(result.stdout(rank).contains("failed as it should"), result.toString());
		} finally {
			Files.delete(conf);
		}
	}

	@EveryMode
	void twoJobsAtOnce(Mode mode) {
		Running first = Job.of(mode, 2, Lifecycle.class, "rounds", "10").start();
		Running second = Job.of(mode, 2, Lifecycle.class, "rounds", "10").start();
		first.await().assertSuccess();
		second.await().assertSuccess();
	}

	@EveryMode
	void forgottenFinish(Mode mode) {
		Result result = Job.of(mode, 2, Lifecycle.class, "forget").run().assertClean();
		for (int rank = 0; rank < 2; rank++)
			assertTrue(result.stdout(rank).contains("main ends"), result.toString());
	}

	@ParameterizedTest
	@ValueSource(strings = {"recv", "irecv", "itest", "any", "send", "ssend", "issend", "probe", "other"})
	void deathOfARank(String operation) {
		Mode mode = operation.equals("recv") || operation.equals("itest") ? Mode.CHECK_JNI : Mode.PLAIN;
		Running running = Job.of(mode, 3, Victims.class, operation).start();
		for (int rank = 0; rank < 3; rank++)
			running.awaitText(rank, "ready");
		running.process(2).destroyForcibly();
		Result result = running.await().assertClean();
		for (int rank = 0; rank < 2; rank++) {
			assertEquals(0, result.exitCode(rank), result.toString());
			assertTrue(result.stdout(rank).contains("error: "), result.toString());
		}
	}
}
