// SPDX-License-Identifier: MIT
package ibvbench;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/** The command line: the options of bench_ibvx that apply, and the level. */
final class Options {
	static final String USAGE =
			"options: --level mpi|xdev|xxdev|natives  --label NAME  --message bytes|doubles|column|tree  --sizes 0,8,64k,1m  --op LIST  --warmup N  --samples N\n"
			+ "  --sample-ms N  --window N  --json FILE  --quiet  --probe-ms N  --near-below NS  --busy-above NS  --no-probe  --seek near|far";

	String level = "mpi";
	/** What the report calls the device; null: its name. */
	String label;
	/** What messages between two ranks are, see {@link Messages}. */
	String message = Messages.BYTES;
	List<Integer> sizes = numbers("0,1,8,64,256,1k,4k,16k,64k,128k,256k,1m,4m,16m", ",");
	List<Op.Plan> plans;
	int warmup = 20000;
	int samples = 9;
	long sampleNs = 20_000_000;
	long probeNs = 5_000_000;
	double nearBelowNs = 130;
	double busyAboveNs = 600;
	int window = 16;
	String json;
	boolean quiet;
	boolean keepAll;
	/** The only state to take samples of, or null. */
	String seek;

	/**
	 * Parses.
	 *
	 * @throws IllegalArgumentException with a text for the user
	 */
	Options(List<String> args) {
		String ops = "latency";
		for (int i = 0; i < args.size(); i++) {
			String name = args.get(i);
			if (name.equals("--quiet"))
				quiet = true;
			else if (name.equals("--no-probe"))
				keepAll = true;
			else if (i + 1 == args.size())
				throw new IllegalArgumentException(name + ": no such option, or it lacks its value");
			else if (name.equals("--op"))
				ops = args.get(++i);
			else
				set(name, args.get(++i));
		}
		plans = Op.plans(ops, sizes, window);
	}

	private void set(String name, String value) {
		switch (name) {
		case "--level":
			level = value;
			break;
		case "--label":
			label = value;
			break;
		case "--message":
			if (!Messages.KINDS.contains(value))
				throw new IllegalArgumentException("--message takes one of " + Messages.KINDS + "; not \"" + value + "\"");
			message = value;
			break;
		case "--sizes":
			sizes = numbers(value, ",");
			break;
		case "--warmup":
			warmup = number(value);
			break;
		case "--samples":
			samples = number(value);
			break;
		case "--sample-ms":
			sampleNs = number(value) * 1_000_000L;
			break;
		case "--window":
			window = number(value);
			break;
		case "--seek":
			if (!List.of("near", "far").contains(value))
				throw new IllegalArgumentException("--seek takes near or far; not \"" + value + "\"");
			seek = value;
			break;
		case "--json":
			json = value;
			break;
		case "--probe-ms":
			probeNs = number(value) * 1_000_000L;
			break;
		case "--near-below":
			nearBelowNs = number(value);
			break;
		case "--busy-above":
			busyAboveNs = number(value);
			break;
		default:
			throw new IllegalArgumentException(name + ": no such option");
		}
	}

	/** Also with k or m behind it. */
	private static int number(String text) {
		String lower = text.toLowerCase(Locale.ROOT);
		int shift = lower.endsWith("k") ? 10 : lower.endsWith("m") ? 20 : 0;
		try {
			return Math.multiplyExact(Integer.parseUnsignedInt(shift == 0 ? lower : lower.substring(0, lower.length() - 1)), 1 << shift);
		} catch (NumberFormatException | ArithmeticException e) {
			throw new IllegalArgumentException("\"" + text + "\" is not a number, such as 8, 64k or 1m", e);
		}
	}

	static List<Integer> numbers(String list, String separator) {
		List<Integer> numbers = new ArrayList<>();
		for (String text : list.split(separator))
			numbers.add(number(text));
		return numbers;
	}
}
