// SPDX-License-Identifier: MIT
package mpitest;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The ends of a job as ibvrun reports them. */
@Timeout(120)
class LauncherTest {
	private static final Pattern IN_STATE = Pattern.compile("rank (\\d+) is in [^,]*, process (\\d+)");

	private static Process ibvrun(int np, Class<?> main, String... args) throws IOException {
		List<String> command = new java.util.ArrayList<>(List.of(
				System.getProperty("ibvdev.test.ibvrun"), "-np", Integer.toString(np), "-cp", System.getProperty("ibvdev.test.programs"), main.getName()));
		command.addAll(Arrays.asList(args));
		ProcessBuilder builder = new ProcessBuilder(command).redirectErrorStream(true);
		builder.environment().put("IBVDEV_BUILD", System.getProperty("ibvdev.test.build"));
		builder.redirectInput(new File("/dev/null"));
		return builder.start();
	}

	private static BufferedReader output(Process process) {
		return new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8));
	}

	private static String rest(BufferedReader output) throws IOException {
		StringBuilder text = new StringBuilder();
		String line;
		while ((line = output.readLine()) != null) {
			text.append(line).append('\n');
		}
		return text.toString();
	}

	@Test
	void forgottenFinalizeIsNoFailure() throws Exception {
		Process job = ibvrun(2, Endings.class, "forget");
		String text = rest(output(job));
		assertEquals(0, job.waitFor(), text);
	}

	@Test
	void theStatusIsThatOfTheRankThatFailedFirst() throws Exception {
		Process job = ibvrun(3, Endings.class, "exit");
		String text = rest(output(job));
		assertEquals(Endings.EXIT, job.waitFor(), text);
		assertTrue(text.contains("rank 1"), text);
		job = ibvrun(3, Endings.class, "throw");
		text = rest(output(job));
		assertEquals(1, job.waitFor(), text);
		assertTrue(text.contains("thrown on purpose by rank 1"), text);
	}

	@Test
	void aKilledRankEndsTheJob() throws Exception {
		Process job = ibvrun(4, Victims.class, "2", "recv-from-other", "barrier", "any-source");
		BufferedReader output = output(job);
		Map<Integer, Long> processes = new HashMap<>();
		String line;
		while (processes.size() < 4 && (line = output.readLine()) != null) {
			Matcher matcher = IN_STATE.matcher(line);
			if (matcher.find()) {
				processes.put(Integer.parseInt(matcher.group(1)), Long.parseLong(matcher.group(2)));
			}
		}
		assertEquals(4, processes.size(), "ranks that came to their state");
		ProcessHandle.of(processes.get(2)).orElseThrow().destroyForcibly();
		String text = rest(output);
		assertTrue(job.waitFor(60, TimeUnit.SECONDS), "ibvrun does not end");
		assertNotEquals(0, job.exitValue(), text);
		assertTrue(Pattern.compile("ibvrun: .*rank 2\\b").matcher(text).find(), "ibvrun does not name rank 2\n" + text);
		for (long process : processes.values()) {
			assertTrue(ProcessHandle.of(process).filter(ProcessHandle::isAlive).isEmpty(), "process " + process + " lives on");
		}
	}
}
