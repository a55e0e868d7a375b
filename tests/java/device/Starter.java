// SPDX-License-Identifier: MIT
package device;

import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.ArrayList;
import java.util.List;
import java.util.TreeMap;

/** MPJ Express's starter, as far as ranks see it: collects the ports of N ranks and sends them to all, once. */
final class Starter implements AutoCloseable {
	private final ServerSocket server = new ServerSocket(0, 64, InetAddress.getLoopbackAddress());
	private final int size;

	Starter(int size) throws IOException {
		this.size = size;
		Thread thread = new Thread(this::serve);
		thread.setDaemon(true);
		thread.start();
	}

	/** The second argument of the ranks. */
	String conf() {
		return "#Number of Processes;" + size + ";#Protocol Switch Limit;131072;#Server Name;localhost;#Server Port;" + server.getLocalPort();
	}

	private void serve() {
		List<Socket> sockets = new ArrayList<>();
		TreeMap<Integer, String> ranks = new TreeMap<>();
		try {
			while (ranks.size() < size) {
				Socket socket = server.accept();
				sockets.add(socket);
				DataInputStream in = new DataInputStream(socket.getInputStream());
				if (!in.readUTF().startsWith("Sending Info"))
					throw new IOException("not a rank");
				int writePort = in.readInt();
				int readPort = in.readInt();
				int rank = in.readInt();
				ranks.put(rank, "127.0.0.1@" + readPort + "@" + writePort + "@" + rank + "@0");
			}
			String answer = "#Peer Information;" + String.join(";", ranks.values());
			for (Socket socket : sockets) {
				new DataOutputStream(socket.getOutputStream()).writeUTF(answer);
				socket.close();
			}
		} catch (IOException e) {
			System.err.println("starter: " + e);
		}
	}

	@Override
	public void close() throws IOException {
		server.close();
	}
}
