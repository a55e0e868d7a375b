// SPDX-License-Identifier: MIT

import java.io.File;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.jacoco.core.analysis.Analyzer;
import org.jacoco.core.analysis.CoverageBuilder;
import org.jacoco.core.analysis.ICounter;
import org.jacoco.core.analysis.ISourceFileCoverage;
import org.jacoco.core.tools.ExecFileLoader;

/**
 * What JaCoCo has recorded, in lines: arguments are the recorded file, then the jars. Prints {@code PACKAGE FILE LINES-RUN LINES} for each source file and, indented
 * by a tab, the numbers of those that did not run. For {@code scripts/coverage --java}, which runs this file as it is.
 */
public final class JavaCoverage {
	private JavaCoverage() {}

	/**
	 * Prints the report.
	 *
	 * @param args the file, and the jars
	 */
	public static void main(String[] args) throws Exception {
		ExecFileLoader recorded = new ExecFileLoader();
		recorded.load(new File(args[0]));
		CoverageBuilder builder = new CoverageBuilder();
		Analyzer analyzer = new Analyzer(recorded.getExecutionDataStore(), builder);
		for (int i = 1; i < args.length; i++)
			analyzer.analyzeAll(new File(args[i]));
		Map<String, ISourceFileCoverage> files = new TreeMap<>();
		for (ISourceFileCoverage file : builder.getSourceFiles())
			files.put(file.getPackageName() + " " + file.getName(), file);
		for (Map.Entry<String, ISourceFileCoverage> entry : files.entrySet())
			print(entry.getKey(), entry.getValue());
		if (!builder.getNoMatchClasses().isEmpty())
			throw new IllegalStateException(builder.getNoMatchClasses().size()
					+ " classes were recorded in another version than the jars have: " + builder.getNoMatchClasses().iterator().next().getName());
	}

	private static void print(String name, ISourceFileCoverage file) {
		List<String> missed = new ArrayList<>();
		for (int line = file.getFirstLine(); line <= file.getLastLine(); line++)
			if (file.getLine(line).getStatus() == ICounter.NOT_COVERED)
				missed.add(Integer.toString(line));
		System.out.println(name + " " + file.getLineCounter().getCoveredCount() + " " + file.getLineCounter().getTotalCount());
		System.out.println("\t" + String.join(" ", missed));
	}
}
