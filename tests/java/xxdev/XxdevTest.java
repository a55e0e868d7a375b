// SPDX-License-Identifier: MIT
package xxdevtest;

import static org.junit.jupiter.api.Assertions.assertTrue;

import harness.EveryMode;
import harness.Job;
import harness.Mode;
import harness.Result;
import java.io.File;
import java.util.List;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** The device behind the interface of FastMPJ, without MPJ Express on the class path. */
final class XxdevTest {
	static Job job(Mode mode, int np, Class<?> main, String... args) {
		return Job.of(mode, np, main, args)
				.seconds(180)
				.heap("1g")
				.classPath(String.join(File.pathSeparator, Job.ibvdevJar(), Job.xxdevJar(), System.getProperty("java.class.path")));
	}

	static Result finishes(Job job) {
		Result result = job.run().assertSuccess();
		for (int rank = 0; rank < result.ranks.size(); rank++)
			assertTrue(result.stdout(rank).contains("finished"), result.toString());
		return result;
	}

	@EveryMode
	void messages(Mode mode) {
		finishes(job(mode, 2, Messages.class));
	}

	@EveryMode
	void messagesWithLowSwitchLimit(Mode mode) {
		finishes(job(mode, 2, Messages.class).option("-Dibvdev.psl=200").option("-Dxxdevtest.largest=1048576"));
	}

	/** Where both sides wait: from array to array with one copy. */
	@EveryMode
	void messagesWithOneCopy(Mode mode) {
		boolean leases = mode != Mode.CHECK_JNI && Runtime.getRuntime().availableProcessors() > 1;
		finishes(job(mode, 2, Messages.class).option("-Dibvdev.cma=always").option("-Dibvdev.psl=20000").option("-Dxxdevtest.leases=" + leases));
	}

	@EveryMode
	void objects(Mode mode) {
		finishes(job(mode, 2, ObjectMessages.class));
	}

	/** Nothing leaves eagerly, so classes are described in the messages. */
	@EveryMode
	void objectsWithLowSwitchLimit(Mode mode) {
		finishes(job(mode, 2, ObjectMessages.class).option("-Dibvdev.psl=100").option("-Dxxdevtest.inside=true"));
	}

	/** Some announcements can leave, some cannot. */
	@EveryMode
	void objectsWithSmallCreditWindow(Mode mode) {
		finishes(job(mode, 2, ObjectMessages.class).option("-Dibvdev.eager_window=64k"));
	}

	@EveryMode
	void filters(Mode mode) {
		finishes(job(mode, 1, Filtered.class)
						 .option("-Djdk.serialFilter=maxrefs=50;maxbytes=5000;!xxdevtest.Parcels$Tree")
						 .option("-Dxxdev.maxarray=1000")
						 .option("-Dxxdev.maxbytes=100000"));
	}

	@Test
	void damagedObjects() {
		System.out.print(finishes(job(Mode.PLAIN, 2, Damaged.class).option("-Dibvdev.psl=0")).stdout(0));
	}

	@EveryMode
	void serializers(Mode mode) {
		finishes(job(mode, 2, Plugged.class, "both"));
		finishes(job(mode, 2, Plugged.class, "one"));
	}

	@EveryMode
	void requests(Mode mode) {
		finishes(job(mode, 2, Requests.class));
	}

	@EveryMode
	void requestsWithLowSwitchLimit(Mode mode) {
		finishes(job(mode, 2, Requests.class).option("-Dibvdev.psl=200"));
	}

	@EveryMode
	void waits(Mode mode) {
		finishes(job(mode, 2, Waits.class));
		finishes(job(mode, 2, Waits.class).option("-Dibvdev.cma=always").option("-Dibvdev.psl=20000"));
	}

	/** Needs a JDK with java.lang.foreign; without one the test is reported as aborted. */
	@Test
	void segments() {
		List<Mode> modes = Mode.since(22);
		Assumptions.assumeFalse(modes.isEmpty(), "no JDK 22 or later is installed");
		for (Mode mode : modes) {
			finishes(job(mode, 2, Segments.class));
			finishes(job(mode, 2, Segments.class).option("-Xcheck:jni").option("-Dibvdev.psl=200"));
			finishes(job(mode, 2, Segments.class).option("-Dibvdev.cma=always").option("-Dibvdev.psl=20000"));
			finishes(job(mode, 2, Segments.class).option("-Xcheck:jni").option("-Dxxdev.park_all_threads=true"));
		}
	}

	@Test
	@Tag("allocator")
	void allocations() {
		finishes(job(Mode.PLAIN, 2, Allocations.class));
	}

	/** On a JDK without virtual threads others park in their place. */
	@EveryMode
	void virtualThreads(Mode mode) {
		boolean none = mode != Mode.NEWER_JDK && Runtime.version().feature() < 21;
		finishes(job(mode, 2, Parked.class)
						 .option("-Dxxdev.park_all_threads=" + none)
						 .option("-Djdk.virtualThreadScheduler.parallelism=2")
						 .option("-Djdk.virtualThreadScheduler.maxPoolSize=2"));
	}

	/** Everything else works in threads that park, too. */
	@Test
	void parkedThreads() {
		String parks = "-Dxxdev.park_all_threads=true";
		finishes(job(Mode.CHECK_JNI, 2, Messages.class).option(parks).option("-Dibvdev.psl=200").option("-Dxxdevtest.largest=1048576"));
		finishes(job(Mode.CHECK_JNI, 2, Requests.class).option(parks));
		finishes(job(Mode.CHECK_JNI, 2, Waits.class).option(parks));
		finishes(job(Mode.CHECK_JNI, 2, SeveralMessages.class).option(parks));
		finishes(job(Mode.CHECK_JNI, 2, Codes.class, "leave").option(parks));
	}

	@EveryMode
	void severalMessages(Mode mode) {
		finishes(job(mode, 2, SeveralMessages.class));
	}

	@EveryMode
	void severalMessagesWithLowSwitchLimit(Mode mode) {
		finishes(job(mode, 2, SeveralMessages.class).option("-Dibvdev.psl=200"));
	}

	@EveryMode
	void mismatches(Mode mode) {
		finishes(job(mode, 2, Mismatches.class));
	}

	@EveryMode
	void errorCodes(Mode mode) {
		finishes(job(mode, 2, Codes.class, "cases"));
		finishes(job(mode, 2, Codes.class, "death"));
		finishes(job(mode, 2, Codes.class, "leave"));
	}

	@Test
	void errorCodesOfOneRank() {
		finishes(job(Mode.PLAIN, 1, Codes.class, "library").option("-Dibvdev.library=/nonexistent/libibvdev.so"));
		finishes(job(Mode.PLAIN, 1, Codes.class, "devices"));
	}

	@EveryMode
	void lifecycle(Mode mode) {
		finishes(job(mode, 2, Lifecycle.class, "cases"));
		finishes(job(mode, 2, Lifecycle.class, mode == Mode.PLAIN ? "rounds=1000" : "rounds=20"));
	}
}
