// SPDX-License-Identifier: MIT
package xdev.ibvdev;

import ibvbench.Layer;
import java.nio.ByteBuffer;

/** The native methods alone, with direct buffers: what is left is the crossing and the C library. */
public final class NativesLayer implements Layer {
	private static final int TAG = 1;
	private static final int CONTEXT = 77;

	private final long endpoint;
	private final int rank;
	private ByteBuffer out;
	private ByteBuffer in;
	private ByteBuffer[] outs;
	private ByteBuffer[] ins;
	private int bytes;
	private long[] requests;

	private NativesLayer(String[] args) {
		NativeLibrary.load();
		rank = Integer.parseInt(args[0]);
		endpoint = Native.open(rank, Settings.text(args[1]), Settings.properties(), Settings.defaults());
		if (Native.failed(endpoint))
			throw Errors.of(endpoint, "open of rank " + rank);
		if (Native.size(endpoint) != 2)
			throw new IllegalStateException("the job has " + Native.size(endpoint) + " ranks; this needs 2");
	}

	/**
	 * Joins the job.
	 *
	 * @param args rank, conf, ...
	 * @return the layer
	 */
	public static Layer open(String[] args) {
		return new NativesLayer(args);
	}

	private static void check(String operation, long rc) {
		if (Native.failed(rc))
			throw Errors.of(rc, operation);
	}

	@Override
	public int rank() {
		return rank;
	}

	private ByteBuffer[] buffers(int count) {
		ByteBuffer[] buffers = new ByteBuffer[count];
		for (int i = 0; i < count; i++)
			buffers[i] = ByteBuffer.allocateDirect(bytes + 1);
		return buffers;
	}

	@Override
	public void prepare(int messageBytes, int window) {
		bytes = messageBytes;
		outs = buffers(window);
		ins = buffers(window);
		out = outs[0];
		in = ins[0];
		requests = new long[window];
	}

	@Override
	public void send() {
		check("send", Native.send(endpoint, out, 0, bytes, 0, null, 1 - rank, TAG, CONTEXT));
	}

	@Override
	public void recv() {
		check("recv", Native.recv(endpoint, in, 0, bytes, 1 - rank, TAG, CONTEXT, 0));
	}

	@Override
	public void sendMany() {
		for (int i = 0; i < requests.length; i++)
			requests[i] = Native.isend(endpoint, outs[i], 0, bytes, 0, 0, 0, 1 - rank, TAG, CONTEXT);
		finishAll();
		check("recv", Native.recv(endpoint, in, 0, 0, 1 - rank, TAG, CONTEXT, 0));
	}

	@Override
	public void recvMany() {
		for (int i = 0; i < requests.length; i++)
			requests[i] = Native.irecv(endpoint, ins[i], 0, bytes, 1 - rank, TAG, CONTEXT);
		finishAll();
		check("send", Native.send(endpoint, out, 0, 0, 0, null, 1 - rank, TAG, CONTEXT));
	}

	private void finishAll() {
		for (long request : requests) {
			check("start", request);
			check("wait", Native.waitFor(endpoint, request, 0));
		}
	}

	@Override
	public void broadcast(byte[] text) {
		prepare(text.length, 1);
		if (rank == 0) {
			out.duplicate().put(text);
			send();
		} else {
			recv();
			in.duplicate().get(text);
		}
	}

	@Override
	public void close() {
		check("close", Native.close(endpoint));
	}
}
