// SPDX-License-Identifier: MIT
package device;

import mpjbuf.Buffer;
import mpjdev.Request;
import xdev.Device;
import xdev.XDevException;

/** A rank dies; the others are inside an operation, and must get an exception that names it. */
final class Victims extends Program {
	public static void main(String[] args) throws Exception {
		new Victims().run(args);
	}

	private void run(String[] args) throws Exception {
		ids = dev.init(args);
		size = ids.length;
		me = Integer.parseInt(args[0]);
		int victim = size - 1;
		meet();
		System.out.println("ready");
		System.out.flush();
		if (me == victim)
			for (;;)
				Thread.sleep(1000);
		try {
			operation(args[3], victim);
		} catch (XDevException e) {
			if (!String.valueOf(e.getMessage()).contains("rank " + victim))
				throw e;
			System.out.println("error: " + e.getMessage());
			checkCode(e, ECONNRESET, victim);
			/* The other threads of the rank, and later operations, learn it too. */
			fails(() -> dev.recv(empty(), ids[victim], 1, CONTEXT), "rank " + victim);
			return;
		}
		throw new AssertionError("no exception");
	}

	private void operation(String what, int victim) throws Exception {
		Buffer big = pattern(2000000, 1);
		switch (what) {
		case "recv":
			dev.recv(empty(), ids[victim], 1, CONTEXT);
			break;
		case "irecv":
			dev.irecv(empty(), ids[victim], 1, CONTEXT, null).iwait();
			break;
		case "itest":
			Request request = dev.irecv(empty(), ids[victim], 1, CONTEXT, null);
			while (request.itest() == null)
				Thread.onSpinWait();
			break;
		case "any":
			dev.recv(empty(), Device.ANY_SRC, 1, CONTEXT);
			break;
		case "send":
			for (;;)
				dev.send(ints(1, 2, 3), ids[victim], 1, CONTEXT);
		case "ssend":
			dev.ssend(big, ids[victim], 1, CONTEXT);
			break;
		case "issend":
			dev.issend(ints(1), ids[victim], 1, CONTEXT).iwait();
			break;
		case "probe":
			dev.probe(ids[victim], 1, CONTEXT);
			break;
		case "other":
			dev.recv(empty(), ids[me == 0 ? 1 : 0], 1, CONTEXT);
			break;
		default:
			throw new AssertionError(what);
		}
	}
}
