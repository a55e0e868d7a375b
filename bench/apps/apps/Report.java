// SPDX-License-Identifier: MIT
package apps;

import java.util.Locale;

/** What rank 0 prints; the other ranks are silent. */
final class Report {
	private final boolean talks;

	Report(boolean talks) {
		this.talks = talks;
	}

	void line(String format, Object... values) {
		if (talks)
			System.out.println(String.format(Locale.ROOT, format, values));
	}

	/** Reports how large an error is; true if it is small enough. */
	boolean below(String what, double error, double limit) {
		boolean good = error <= limit; // false for NaN
		line("  %-36s %.2e, at most %.1e%s", what, error, limit, good ? "" : "  TOO LARGE");
		return good;
	}

	/** Reports whether something that is right or wrong is right. */
	boolean check(String what, boolean good) {
		line("  %-36s %s", what, good ? "yes" : "NO");
		return good;
	}
}
