// SPDX-License-Identifier: MIT
package mpi;

/** A communicator of two groups: ranks of messages are those of the other group (MPI 4.0, section 7.6). */
public class Intercomm extends Comm {
	private static final int LEADERS = 20;
	private static final int MERGE = 21;

	/** Collective operations of the local group, for making further communicators. */
	private final Intracomm local;

	private Intercomm(Group group, Group remote, long number) {
		super(group, remote, number);
		local = new Intracomm(group, number, null);
	}

	static Intercomm create(Comm bridge, Intracomm mine, int leader, int remoteLeader, int tag) {
		mine.check("Create_intercomm");
		if (leader < 0 || leader >= mine.group.ranks.length)
			throw Errors.of("Create_intercomm: the local leader is " + leader + ": use 0 to " + (mine.group.ranks.length - 1));
		long[] number = {mine.agree()};
		int[] theirs = null;
		if (mine.group.self() == leader)
			theirs = swap(bridge, mine.group.ranks, number, remoteLeader, tag);
		int[] count = {theirs == null ? 0 : theirs.length};
		mine.collectives.bcast(count, 0, 1, MPI.INT, leader);
		mine.collectives.bcast(number, 0, 1, MPI.LONG, leader);
		if (theirs == null)
			theirs = new int[count[0]];
		mine.collectives.bcast(theirs, 0, count[0], MPI.INT, leader);
		return new Intercomm(mine.group, new Group(theirs), number[0]);
	}

	/** The other group's ranks, got from its leader; the number becomes the higher one. In the context of collective operations, apart from the program's messages. */
	private static int[] swap(Comm bridge, int[] ranks, long[] number, int remoteLeader, int tag) {
		int own = tag ^ LEADERS << 24;
		long[] head = {number[0], ranks.length};
		long[] other = new long[2];
		exchange(bridge, head, other, MPI.LONG, remoteLeader, own);
		number[0] = Math.max(number[0], other[0]);
		int[] theirs = new int[(int) other[1]];
		exchange(bridge, ranks, theirs, MPI.INT, remoteLeader, own);
		return theirs;
	}

	private static void exchange(Comm comm, Object out, Object in, Datatype type, int peer, int tag) {
		Request receive = new Request(comm);
		comm.startRecv(receive, "Create_intercomm", in, 0, Kinds.length(in), type, peer, tag, comm.collective);
		comm.send("Create_intercomm", false, out, 0, Kinds.length(out), type, peer, tag, comm.collective);
		receive.Wait();
	}

	/** Two words of each group's process 0, brought to all: the number becomes the higher one. The other side's second word. */
	private long settle(long[] number, long word) {
		long[] in = new long[2];
		if (group.self() == 0)
			exchange(this, new long[] {number[0], word}, in, MPI.LONG, 0, MERGE);
		local.collectives.bcast(in, 0, 2, MPI.LONG, 0);
		number[0] = Math.max(number[0], in[0]);
		return in[1];
	}

	@Override
	public boolean Test_inter() {
		check("Test_inter");
		return true;
	}

	/**
	 * How many processes the other group has.
	 *
	 * @return the number
	 */
	public int Remote_size() {
		check("Remote_size");
		return peers.ranks.length;
	}

	/**
	 * The other group.
	 *
	 * @return its processes
	 */
	public Group Remote_group() {
		check("Remote_group");
		return peers;
	}

	/**
	 * Makes one group of both; collective, blocks.
	 *
	 * @param high the same at all of a group: true: its processes come after the others
	 * @return a new communicator
	 */
	public Intracomm Merge(boolean high) {
		check("Merge");
		long[] number = {local.agree()};
		boolean other = settle(number, high ? 1 : 0) != 0;
		boolean last = high == other ? group.ranks[0] > peers.ranks[0] : high;
		int[] first = last ? peers.ranks : group.ranks;
		int[] second = last ? group.ranks : peers.ranks;
		int[] all = java.util.Arrays.copyOf(first, first.length + second.length);
		System.arraycopy(second, 0, all, first.length, second.length);
		return new Intracomm(new Group(all), number[0], null);
	}

	@Override
	public Object clone() {
		check("clone");
		long[] number = {local.agree()};
		settle(number, 0);
		return new Intercomm(group, peers, number[0]);
	}
}
