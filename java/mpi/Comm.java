// SPDX-License-Identifier: MIT
package mpi;

import java.util.HashMap;
import java.util.Map;

/**
 * A communicator: an ordered group of processes whose messages are apart from those of others (MPI 4.0, sections 3 and 7). Any thread may call any method at any time.
 *
 * <p>A message's buffer must not change until its operation is complete; null is allowed for a count of 0.
 */
public class Comm extends PointToPoint implements Cloneable {
	private final Map<Integer, Object> attributes = new HashMap<>();

	/** COMM_NULL. */
	Comm() {}

	Comm(Group group, Group peers, long number) {
		super(group, peers, number);
		attributes.put(MPI.TAG_UB, Integer.MAX_VALUE);
		attributes.put(MPI.HOST, MPI.PROC_NULL);
		attributes.put(MPI.IO, MPI.ANY_SOURCE);
	}

	/** COMM_WORLD and COMM_SELF. */
	static void createFirst() {
		int[] all = new int[Job.size()];
		for (int i = 0; i < all.length; i++)
			all[i] = i;
		MPI.COMM_WORLD = new Intracomm(new Group(all), 0, Job.current().worldEngine());
		MPI.COMM_SELF = new Intracomm(new Group(new int[] {Job.rank()}), 1, null);
	}

	/**
	 * How many processes the local group has.
	 *
	 * @return the number
	 */
	public int Size() {
		check("Size");
		return group.ranks.length;
	}

	/**
	 * The calling process in the local group.
	 *
	 * @return its rank
	 */
	public int Rank() {
		check("Rank");
		return group.self();
	}

	/**
	 * The local group.
	 *
	 * @return its processes
	 */
	public Group Group() {
		check("Group");
		return group;
	}

	/**
	 * Are they the same (MPI 4.0, section 7.4.1)?
	 *
	 * @param comm1 a communicator
	 * @param comm2 another one
	 * @return MPI.IDENT: one and the same; MPI.CONGRUENT: same processes in the same order; MPI.SIMILAR: in another order; else MPI.UNEQUAL
	 */
	public static int Compare(Comm comm1, Comm comm2) {
		comm1.check("Compare");
		comm2.check("Compare");
		if (comm1 == comm2)
			return MPI.IDENT;
		if (comm1.Test_inter() != comm2.Test_inter())
			return MPI.UNEQUAL;
		int local = Group.Compare(comm1.group, comm2.group);
		int remote = Group.Compare(comm1.peers, comm2.peers);
		if (local == MPI.UNEQUAL || remote == MPI.UNEQUAL)
			return MPI.UNEQUAL;
		return local == MPI.IDENT && remote == MPI.IDENT ? MPI.CONGRUENT : MPI.SIMILAR;
	}

	/** Gives the communicator up; operations under way end as they would, no other may use it. */
	public void Free() {
		check("Free");
		if (this == MPI.COMM_WORLD || this == MPI.COMM_SELF)
			throw Errors.of("Free: MPI.COMM_WORLD and MPI.COMM_SELF cannot be freed: call MPI.Finalize");
		freed = true;
	}

	/**
	 * Does it not exist?
	 *
	 * @return true: COMM_NULL, or freed
	 */
	public boolean Is_null() {
		return freed;
	}

	/**
	 * Does it connect two groups?
	 *
	 * @return true of an inter-communicator
	 */
	public boolean Test_inter() {
		check("Test_inter");
		return false;
	}

	/**
	 * Connects two groups (MPI 4.0, section 7.6.2): called on a communicator to which both leaders belong, by all processes of both groups; blocks.
	 *
	 * @param local_comm    the group of the calling process
	 * @param local_leader  a rank in it
	 * @param remote_leader the rank of the other group's leader in this communicator
	 * @param tag           for the messages of the leaders
	 * @return a new inter-communicator
	 */
	public Intercomm Create_intercomm(Comm local_comm, int local_leader, int remote_leader, int tag) {
		check("Create_intercomm");
		if (!(local_comm instanceof Intracomm))
			throw Errors.of(
					"Create_intercomm: the local communicator is " + (local_comm == null ? "null" : "an inter-communicator") + ": name one of a single group");
		return Intercomm.create(this, (Intracomm) local_comm, local_leader, remote_leader, tag);
	}

	/**
	 * An attribute (MPI 4.0, section 7.7).
	 *
	 * @param keyval MPI.TAG_UB, MPI.HOST or MPI.IO
	 * @return an Integer, or null: there is none
	 */
	public Object Attr_get(int keyval) {
		check("Attr_get");
		return attributes.get(keyval);
	}

	/**
	 * Deletes an attribute.
	 *
	 * @param keyval none that is predefined
	 */
	public void Attr_delete(int keyval) {
		check("Attr_delete");
		throw Errors.of("Attr_delete: " + keyval + (attributes.containsKey(keyval) ? " is predefined and stays" : " is no attribute of this communicator")
				+ ": do without the call");
	}

	/**
	 * The topology.
	 *
	 * @return MPI.CART, MPI.GRAPH, or MPI.UNDEFINED: none
	 */
	public int Topo_test() {
		check("Topo_test");
		return MPI.UNDEFINED;
	}

	/**
	 * Ends the job: this process at once, the others by the starter, or as they notice that this one is gone.
	 *
	 * @param errorcode the status of the process, its lowest eight bits; 0 is taken for 1
	 */
	public void Abort(int errorcode) {
		System.out.flush();
		System.err.println("MPI.Abort(" + errorcode + ") was called by rank " + Job.rank());
		System.err.flush();
		Runtime.getRuntime().halt((errorcode & 0xff) == 0 ? 1 : errorcode & 0xff);
	}

	/**
	 * A communicator of the same processes whose messages are apart (MPI_Comm_dup); collective, blocks.
	 *
	 * @return a new communicator of the same class
	 */
	@Override
	public Object clone() {
		throw Errors.of("clone: the communicator is MPI.COMM_NULL: use another");
	}
}
