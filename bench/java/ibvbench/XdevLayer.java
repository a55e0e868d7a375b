// SPDX-License-Identifier: MIT
package ibvbench;

import java.util.Map;
import mpjbuf.Buffer;
import mpjbuf.BufferException;
import mpjbuf.BufferFactory;
import mpjbuf.Type;
import mpjdev.Request;
import mpjdev.Status;
import xdev.Device;
import xdev.ProcessID;

/**
 * An xdev.Device alone: the message is an mpjbuf.Buffer that is packed already, with one section of bytes. Its
 * header of 8 bytes travels too.
 */
final class XdevLayer implements Layer {
	private static final int TAG = 1;
	private static final int CONTEXT = 77;
	private static final Map<String, String> CLASSES =
			Map.of("ibvdev", "xdev.ibvdev.IBVDevice", "niodev", "xdev.niodev.NIODevice", "mxdev", "xdev.mxdev.MXDevice");

	private final Device device;
	private final int rank;
	private final ProcessID other;
	private final Buffer answer;
	private final Buffer answered;
	private Buffer out;
	private Buffer in;
	private Buffer[] outs = new Buffer[0];
	private Buffer[] ins = new Buffer[0];
	private Request[] requests;

	XdevLayer(String[] args) throws ReflectiveOperationException, BufferException {
		String name = CLASSES.get(args[2]);
		if (name == null)
			throw new IllegalArgumentException("no class is known for the device \"" + args[2] + "\": one of " + CLASSES.keySet());
		device = (Device) Class.forName(name).getDeclaredConstructor().newInstance();
		rank = Integer.parseInt(args[0]);
		ProcessID[] ids = device.init(args);
		if (ids.length != 2)
			throw new IllegalStateException("the job has " + ids.length + " ranks; this needs 2");
		other = ids[1 - rank];
		if (!BufferFactory.initialized())
			BufferFactory.init("Buddy1");
		answer = message(new byte[0]);
		answered = create(0, device.getRecvOverhead());
	}

	@Override
	public int rank() {
		return rank;
	}

	private static Buffer create(int bytes, int overhead) {
		int room = bytes + 16;
		return new Buffer(BufferFactory.create(room + overhead), overhead, room);
	}

	private Buffer message(byte[] payload) throws BufferException {
		Buffer buffer = create(payload.length, device.getSendOverhead());
		buffer.putSectionHeader(Type.BYTE);
		buffer.write(payload, 0, payload.length);
		buffer.commit();
		return buffer;
	}

	private static void release(Buffer... buffers) {
		for (Buffer buffer : buffers) {
			if (buffer != null)
				BufferFactory.destroy(buffer.getStaticBuffer());
		}
	}

	@Override
	public void prepare(int bytes, int window) throws BufferException {
		release(outs);
		release(ins);
		outs = new Buffer[window];
		ins = new Buffer[window];
		for (int i = 0; i < window; i++) {
			outs[i] = message(new byte[bytes]);
			ins[i] = create(bytes, device.getRecvOverhead());
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
	public void recv() throws BufferException {
		in.clear();
		device.recv(in, other, TAG, CONTEXT);
	}

	@Override
	public void sendMany() throws BufferException {
		for (int i = 0; i < requests.length; i++)
			requests[i] = device.isend(outs[i], other, TAG, CONTEXT);
		finishAll();
		answered.clear();
		device.recv(answered, other, TAG, CONTEXT);
	}

	@Override
	public void recvMany() throws BufferException {
		for (int i = 0; i < requests.length; i++) {
			ins[i].clear();
			requests[i] = device.irecv(ins[i], other, TAG, CONTEXT, new Status(0, TAG, -1)); // niodev wants one
		}
		finishAll();
		device.send(answer, other, TAG, CONTEXT);
	}

	private void finishAll() {
		for (Request request : requests)
			request.iwait();
	}

	@Override
	public void broadcast(byte[] text) throws BufferException {
		if (rank == 0) {
			Buffer buffer = message(text);
			device.send(buffer, other, TAG, CONTEXT);
			release(buffer);
		} else {
			Buffer buffer = create(text.length, device.getRecvOverhead());
			device.recv(buffer, other, TAG, CONTEXT);
			buffer.commit();
			buffer.getSectionHeader();
			buffer.getSectionSize();
			buffer.read(text, 0, text.length);
			release(buffer);
		}
	}

	@Override
	public void close() throws BufferException {
		// a farewell, so that no device closes while the other rank still reads
		prepare(0, 1);
		if (rank == 0) {
			send();
			recv();
		} else {
			recv();
			send();
		}
		device.finish();
	}
}
