// SPDX-License-Identifier: MIT
package ibvbench;

import xxdev.Device;
import xxdev.PID;
import xxdev.Request;

/** An xxdev.Device: the message is an array, a double[] if it is long and its size allows that, else a byte[]; or a tree of objects. */
final class XxdevLayer implements Layer {
	private static final int TAG = 1;
	private static final int CONTEXT = 77;
	/** From this size on in bytes. */
	private static final int DOUBLES = 4096;

	private final Device device;
	private final int rank;
	private final PID other;
	private final String kind;
	private final byte[] answer = {};
	private Object out;
	private Object in;
	private Object[] outs;
	private Object[] ins;
	private Request[] requests;

	XxdevLayer(String[] args, String message) {
		kind = message;
		if (kind.equals(Messages.COLUMN))
			throw new IllegalArgumentException("--message column: xxdev has no derived types");
		device = Device.newInstance(args[2]);
		PID[] ids = device.init(args);
		rank = device.id().rank();
		if (ids.length != 2)
			throw new IllegalStateException("the job has " + ids.length + " ranks; this needs 2");
		other = ids[1 - rank];
	}

	@Override
	public int rank() {
		return rank;
	}

	private Object message(int bytes) {
		if (kind.equals(Messages.TREE))
			return Messages.tree(bytes);
		return kind.equals(Messages.DOUBLES) || bytes >= DOUBLES && bytes % 8 == 0 ? new double[bytes / 8] : (Object) new byte[bytes];
	}

	@Override
	public void prepare(int bytes, int window) {
		outs = new Object[window];
		ins = new Object[window];
		for (int i = 0; i < window; i++) {
			outs[i] = message(bytes);
			ins[i] = kind.equals(Messages.TREE) ? new Object[1] : message(bytes); // where the object goes
		}
		out = outs[0];
		in = ins[0];
		requests = new Request[window];
	}

	@Override
	public void send() {
		device.send(out, other, TAG, CONTEXT);
	}

	@Override
	public void recv() {
		device.recv(in, other, TAG, CONTEXT);
	}

	@Override
	public void sendMany() {
		for (int i = 0; i < requests.length; i++)
			requests[i] = device.isend(outs[i], other, TAG, CONTEXT);
		finishAll();
		device.recv(answer, other, TAG, CONTEXT);
	}

	@Override
	public void recvMany() {
		for (int i = 0; i < requests.length; i++)
			requests[i] = device.irecv(ins[i], other, TAG, CONTEXT);
		finishAll();
		device.send(answer, other, TAG, CONTEXT);
	}

	private void finishAll() {
		for (Request request : requests)
			request.iwait();
	}

	@Override
	public void broadcast(byte[] text) {
		if (rank == 0)
			device.send(text, other, TAG, CONTEXT);
		else
			device.recv(text, other, TAG, CONTEXT);
	}

	@Override
	public void close() {
		device.finish();
	}
}
