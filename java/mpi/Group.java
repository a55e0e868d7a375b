// SPDX-License-Identifier: MIT
package mpi;

import java.util.Arrays;

/** An ordered set of processes (MPI 4.0, section 7.3). Immutable; any thread; nothing blocks. */
public class Group {
	/** What {@link #code} is of a group without members. */
	public static final int EMPTY = 3;

	/** {@link #EMPTY}, or 0. */
	public int code;

	/** Ranks in MPI.COMM_WORLD; null: GROUP_NULL. */
	final int[] ranks;
	/** Of the calling process; -1: it is no member. */
	private final int self;
	/** Entry i is i. */
	private final boolean identity;
	/** From ranks in MPI.COMM_WORLD to ranks here, of those up to the highest member; made when it is needed. */
	private int[] inverse;

	Group(int[] ranks) {
		this.ranks = ranks;
		code = ranks != null && ranks.length == 0 ? EMPTY : 0;
		boolean same = ranks != null;
		for (int i = 0; same && i < ranks.length; i++)
			same = ranks[i] == i;
		identity = same;
		self = ranks == null ? -1 : rankOf(Job.rank());
	}

	/** The rank here of a rank of MPI.COMM_WORLD; -1: it is no member. */
	final int rankOf(int world) {
		if (identity)
			return world < ranks.length ? world : -1;
		int[] map = inverse;
		if (map == null) {
			int highest = -1;
			for (int rank : ranks)
				highest = Math.max(highest, rank);
			map = new int[highest + 1];
			Arrays.fill(map, -1);
			for (int i = 0; i < ranks.length; i++)
				map[ranks[i]] = i;
			inverse = map;
		}
		return world >= 0 && world < map.length ? map[world] : -1;
	}

	final int self() {
		return self;
	}

	private static void check(String operation, Group... groups) {
		for (Group group : groups)
			if (group == null || group.ranks == null)
				throw Errors.of(operation + ": the group is " + (group == null ? "null" : "MPI.GROUP_NULL") + ": take one from Comm.Group");
	}

	private static void checkArray(String operation, Object ranks) {
		if (ranks == null)
			throw Errors.of(operation + ": the array of ranks is null: pass an empty one for none");
	}

	/** Gives the group up; nothing is held. */
	public void free() {}

	/** Does nothing: the collector frees groups. */
	@Override
	@SuppressWarnings({"deprecation", "removal"})
	public void finalize() {}

	/**
	 * How many members there are.
	 *
	 * @return the number
	 */
	public int Size() {
		check("Group.Size", this);
		return ranks.length;
	}

	/**
	 * The rank of the calling process.
	 *
	 * @return the rank, or MPI.UNDEFINED if it is no member
	 */
	public int Rank() {
		check("Group.Rank", this);
		return self < 0 ? MPI.UNDEFINED : self;
	}

	/**
	 * The ranks in another group.
	 *
	 * @param group1 a group
	 * @param ranks1 ranks in it; MPI.PROC_NULL stays
	 * @param group2 another one
	 * @return the ranks in group2, MPI.UNDEFINED for processes that are not in it
	 */
	public static int[] Translate_ranks(Group group1, int[] ranks1, Group group2) {
		check("Translate_ranks", group1, group2);
		checkArray("Translate_ranks", ranks1);
		int[] found = new int[ranks1.length];
		for (int i = 0; i < ranks1.length; i++) {
			if (ranks1[i] == MPI.PROC_NULL) {
				found[i] = MPI.PROC_NULL;
				continue;
			}
			int rank = group2.rankOf(group1.world("Translate_ranks", ranks1[i]));
			found[i] = rank < 0 ? MPI.UNDEFINED : rank;
		}
		return found;
	}

	private int world(String operation, int rank) {
		if (rank < 0 || rank >= ranks.length)
			throw Errors.of(operation + ": rank " + rank + " is not in this group of " + ranks.length + ": use 0 to " + (ranks.length - 1));
		return ranks[rank];
	}

	/**
	 * Are they the same?
	 *
	 * @param group1 a group
	 * @param group2 another one
	 * @return MPI.IDENT: same members in the same order; MPI.SIMILAR: in another order; else MPI.UNEQUAL
	 */
	public static int Compare(Group group1, Group group2) {
		check("Group.Compare", group1, group2);
		if (Arrays.equals(group1.ranks, group2.ranks))
			return MPI.IDENT;
		int[] a = group1.ranks.clone();
		int[] b = group2.ranks.clone();
		Arrays.sort(a);
		Arrays.sort(b);
		return Arrays.equals(a, b) ? MPI.SIMILAR : MPI.UNEQUAL;
	}

	/**
	 * The members of the first, then those of the second that are not in the first.
	 *
	 * @param group1 a group
	 * @param group2 another one
	 * @return a new group
	 */
	public static Group Union(Group group1, Group group2) {
		check("Union", group1, group2);
		int[] rest = Difference(group2, group1).ranks;
		int[] all = Arrays.copyOf(group1.ranks, group1.ranks.length + rest.length);
		System.arraycopy(rest, 0, all, group1.ranks.length, rest.length);
		return new Group(all);
	}

	/**
	 * The members of the first that are in the second.
	 *
	 * @param group1 a group
	 * @param group2 another one
	 * @return a new group
	 */
	public static Group Intersection(Group group1, Group group2) {
		check("Intersection", group1, group2);
		return new Group(Arrays.stream(group1.ranks).filter(world -> group2.rankOf(world) >= 0).toArray());
	}

	/**
	 * The members of the first that are not in the second.
	 *
	 * @param group1 a group
	 * @param group2 another one
	 * @return a new group
	 */
	public static Group Difference(Group group1, Group group2) {
		check("Difference", group1, group2);
		return new Group(Arrays.stream(group1.ranks).filter(world -> group2.rankOf(world) < 0).toArray());
	}

	/**
	 * Some members.
	 *
	 * @param ranks which, in the order of the new group
	 * @return a new group
	 */
	public Group Incl(int[] ranks) {
		return new Group(chosen("Incl", ranks));
	}

	private int[] chosen(String operation, int[] wanted) {
		check(operation, this);
		checkArray(operation, wanted);
		boolean[] seen = new boolean[ranks.length];
		int[] found = new int[wanted.length];
		for (int i = 0; i < wanted.length; i++) {
			found[i] = world(operation, wanted[i]);
			if (seen[wanted[i]])
				throw Errors.of(operation + ": rank " + wanted[i] + " is named twice: name each once");
			seen[wanted[i]] = true;
		}
		return found;
	}

	/**
	 * All members but some.
	 *
	 * @param ranks which not
	 * @return a new group, in the order of this one
	 */
	public Group Excl(int[] ranks) {
		return Difference(this, new Group(chosen("Excl", ranks)));
	}

	/**
	 * Ranges of members.
	 *
	 * @param ranges each of first rank, last rank, stride
	 * @return a new group
	 */
	public Group Range_incl(int[][] ranges) {
		return Incl(expanded("Range_incl", ranges));
	}

	/**
	 * All members but ranges of them.
	 *
	 * @param ranges each of first rank, last rank, stride
	 * @return a new group
	 */
	public Group Range_excl(int[][] ranges) {
		return Excl(expanded("Range_excl", ranges));
	}

	private static int[] expanded(String operation, int[][] ranges) {
		java.util.stream.IntStream.Builder all = java.util.stream.IntStream.builder();
		checkArray(operation, ranges);
		for (int[] range : ranges) {
			checkArray(operation, range);
			if (range.length != 3 || range[2] == 0)
				throw Errors.of(operation + ": the range is " + Arrays.toString(range) + ": it must be first, last and a stride other than 0");
			for (long rank = range[0]; range[2] > 0 ? rank <= range[1] : rank >= range[1]; rank += range[2])
				all.add((int) rank);
		}
		return all.build().toArray();
	}
}
