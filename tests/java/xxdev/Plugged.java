// SPDX-License-Identifier: MIT
package xxdevtest;

/** A serializer of the program's own, on rank 0, and, depending on the job, on rank 1, too. */
final class Plugged extends Program {
	public static void main(String[] args) throws Exception {
		if (args[0].equals("0") || args[3].equals("both"))
			System.setProperty("xxdev.serializer", TextSerializer.class.getName());
		Plugged program = new Plugged();
		program.both = args[3].equals("both");
		program.launch(args);
	}

	private boolean both;

	@Case
	void itSerializes() throws Exception {
		if (!both) {
			if (me == 0)
				dev.send(17, ids[1], 1, CONTEXT);
			else
				fails(() -> dev.recv(new Object[1], ids[0], 1, CONTEXT), "Java serialization", "xxdev.serializer");
			return;
		}
		Object[] in = new Object[2];
		dev.isend(new Object[] {17, new Parcels.NotSerializable()}, ids[me], 1, CONTEXT);
		dev.recv(in, ids[me], 1, CONTEXT);
		equal(17, in[0], "a number");
		check(in[1] instanceof Parcels.NotSerializable, "what Java cannot serialize");
		fails(() -> dev.send(2.5, ids[me], 1, CONTEXT), "what is 2.5?");
	}
}
