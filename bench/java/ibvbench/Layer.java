// SPDX-License-Identifier: MIT
package ibvbench;

/**
 * A way to pass messages between two ranks, as the harness drives it. Messages go to and come from the other rank;
 * the size of all of them is what {@link #prepare} was told last. Whatever a method throws ends the benchmark.
 */
public interface Layer {
	/**
	 * Which end this is.
	 *
	 * @return 0 leads, 1 follows
	 */
	int rank();

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
	 * Before anything else: what rank 0 gives arrives at rank 1.
	 *
	 * @param text at rank 1 an array of the same length, to be filled
	 * @throws Exception of the layer
	 */
	void tell(byte[] text) throws Exception;

	/**
	 * Leaves the job.
	 *
	 * @throws Exception of the layer
	 */
	void close() throws Exception;
}
