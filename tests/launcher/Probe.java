// SPDX-License-Identifier: MIT
import java.io.FileOutputStream;
import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;

/** A rank that speaks to no other: arguments are rank, conf, device, then what to do. */
public final class Probe {
	public static void main(String[] args) throws Exception {
		String rank = args[0];
		switch (args[3]) {
		case "arguments":
			System.out.println(String.join("|", args));
			break;
		case "properties":
			for (String name : Arrays.copyOfRange(args, 4, args.length))
				System.out.println(name + "=" + System.getProperty(name));
			break;
		case "throw":
			if (rank.equals(args[4]))
				throw new IllegalStateException("thrown by rank " + rank);
			break;
		case "exit":
			System.exit(rank.equals(args[4]) ? Integer.parseInt(args[5]) : 0);
			break;
		case "sleep":
			Files.writeString(Path.of(args[4] + rank), ProcessHandle.current().pid() + "\n");
			Thread.sleep(1000000);
			break;
		default:
			throw new IllegalArgumentException(args[3]);
		}
	}
}
