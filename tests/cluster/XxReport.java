// SPDX-License-Identifier: MIT

import java.net.InetAddress;
import xxdev.Device;
import xxdev.PID;
import xxdev.Request;

/** An xxdev program that an engine starts: one line per rank, as cluster-probe report writes it. */
public final class XxReport {
	private XxReport() {}

	public static void main(String[] words) throws Exception {
		Device device = Device.newInstance("ibvdev");
		PID[] all = device.init(new String[] {"auto"});
		int rank = device.id().rank();
		Object[] object = new Object[1];
		Request sent = device.isend("from " + rank, all[(rank + 1) % all.length], 1, 0);
		device.recv(object, Device.ANY_SRC, 1, 0);
		sent.iwait();
		if (!object[0].equals("from " + (rank + all.length - 1) % all.length)) {
			throw new IllegalStateException("rank " + rank + " got " + object[0]);
		}
		boolean reads = rank == 0 && System.getenv("CLUSTER_NO_INPUT") == null;
		int input = !reads ? 0 : System.in.readAllBytes().length;
		StringBuilder line = new StringBuilder("rank " + rank + " of " + all.length + " on " + InetAddress.getLocalHost().getHostName() + ": env "
				+ System.getenv().getOrDefault("CLUSTER_WORD", "none") + ", input " + input + ", words");
		for (String word : words) {
			line.append(" [").append(word).append(']');
		}
		System.out.println(line);
		device.finish();
	}
}
