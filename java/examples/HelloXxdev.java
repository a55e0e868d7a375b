// SPDX-License-Identifier: MIT

import java.util.ArrayList;
import java.util.List;
import xxdev.Device;
import xxdev.PID;
import xxdev.Request;
import xxdev.Status;

/**
 * A first program on the interface of FastMPJ's devices: arrays and objects go as they are, without a buffer.
 *
 * <p>{@code ibvrun -np 2 -dev xxdev HelloXxdev}. The arguments are rank, conf file, device.
 */
public final class HelloXxdev {
	private static final int CONTEXT = 0;
	private static final int NUMBERS = 1;
	private static final int WORDS = 2;

	private HelloXxdev() {}

	public static void main(String[] args) {
		Device device = Device.newInstance(args[2]);
		PID[] all = device.init(args);
		int rank = device.id().rank();
		PID next = all[(rank + 1) % all.length];

		double[] numbers = {rank, rank / 2.0, rank / 4.0};
		double[] received = new double[8]; // room for more
		Request request = device.irecv(received, Device.ANY_SRC, NUMBERS, CONTEXT);
		device.send(numbers, next, NUMBERS, CONTEXT);
		Status status = request.iwait();
		System.out.println("rank " + rank + " got " + status + ": " + received[0] + ", " + received[1] + ", " + received[2]);

		List<String> words = new ArrayList<>(List.of("any", "Serializable", "object", "of rank " + rank));
		Request sent = device.isend(words, next, WORDS, CONTEXT);
		Object[] object = new Object[1]; // an object is received in an array
		status = device.recv(object, Device.ANY_SRC, WORDS, CONTEXT);
		sent.iwait();
		System.out.println("rank " + rank + " got " + status + ": " + object[0]);

		device.send(numbers, 1, 2, device.id(), NUMBERS, CONTEXT); // a portion, to itself
		device.recv(received, 6, 2, device.id(), NUMBERS, CONTEXT);
		if (received[6] != numbers[1] || received[7] != numbers[2]) {
			throw new IllegalStateException("the portion is wrong");
		}
		device.finish();
	}
}
