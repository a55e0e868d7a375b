// SPDX-License-Identifier: MIT
package ibvbench;

/**
 * A way to pass messages between ranks, as the harness drives it. Messages of send, recv, sendMany and recvMany go to and come
 * from the other one of two ranks; the size of all of them is what {@link #prepare} was given last. Whatever a method throws ends
 * the benchmark.
 */
public interface Layer {
	/**
	 * Which end this is.
	 *
	 * @return 0 leads, 1 follows
	 */
	int rank();

	/**
	 * Ranks of the job.
	 *
	 * @return 2 or more
	 */
	default int size() {
		return 2;
	}

	/**
	 * What it can do beyond latency, bandwidth and rate.
	 *
	 * @param op none of these three
	 * @return whether perform takes it
	 */
	default boolean offers(Op op) {
		return false;
	}

	/**
	 * Carries out an operation that it offers; called by all ranks.
	 *
	 * @param command the operation
	 * @throws Exception of the layer
	 */
	default void perform(Command command) throws Exception {
		throw new UnsupportedOperationException(command.op().toString());
	}

	/**
	 * Makes buffers for messages of this size. Not timed.
	 *
	 * @param bytes  payload of a message
	 * @param window messages under way at once in sendMany and recvMany
	 * @throws Exception of the layer
	 */
	void prepare(int bytes, int window) throws Exception;

	/**
	 * Sends one message, blocking.
	 *
	 * @throws Exception of the layer
	 */
	void send() throws Exception;

	/**
	 * Receives one message, blocking.
	 *
	 * @throws Exception of the layer
	 */
	void recv() throws Exception;

	/**
	 * Starts a window of sends, waits for all, and for an empty answer.
	 *
	 * @throws Exception of the layer
	 */
	void sendMany() throws Exception;

	/**
	 * Starts a window of receives, waits for all, and sends an empty answer.
	 *
	 * @throws Exception of the layer
	 */
	void recvMany() throws Exception;

	/**
	 * Before anything else: what rank 0 gives arrives at all others.
	 *
	 * @param text at the others an array of the same length, to be filled
	 * @throws Exception of the layer
	 */
	void broadcast(byte[] text) throws Exception;

	/**
	 * Leaves the job.
	 *
	 * @throws Exception of the layer
	 */
	void close() throws Exception;
}
