// SPDX-License-Identifier: MIT
package mpi;

import java.util.Arrays;

/** A communicator whose processes form a grid (MPI 4.0, section 8.5): the last coordinate of consecutive ranks varies fastest. */
public class Cartcomm extends Intracomm {
	private final int[] dims;
	private final boolean[] periods;

	Cartcomm(Intracomm made, int[] dims, boolean[] periods) {
		super(made);
		this.dims = dims;
		this.periods = periods;
	}

	/** How many processes a grid has; refuses one for which there are not enough. */
	static int cells(String operation, int[] dims, boolean[] periods, int size) {
		if (dims == null || periods == null || dims.length != periods.length)
			throw Errors.of(operation + ": " + (dims == null ? "no" : dims.length) + " dimensions, " + (periods == null ? "no" : periods.length)
					+ " periods: the arrays must be there and equally long");
		long cells = 1;
		for (int dim : dims) {
			if (dim <= 0)
				throw Errors.of(operation + ": a dimension is " + dim + ": it must be 1 or more (Dims_create)");
			cells *= dim;
			if (cells > size)
				throw Errors.of(
						operation + ": a grid of " + Arrays.toString(dims) + " needs more than the " + size + " processes that there are: make it smaller");
		}
		return (int) cells;
	}

	@Override
	public Object clone() {
		check("clone");
		return new Cartcomm(part(group.ranks), dims, periods);
	}

	/**
	 * The process at some coordinates.
	 *
	 * @param coords one of each dimension; of a periodic one any number
	 * @return its rank
	 */
	public int Rank(int[] coords) {
		check("Rank");
		if (coords == null || coords.length < dims.length)
			throw Errors.of("Rank: " + (coords == null ? "no" : coords.length) + " coordinates: the grid has " + dims.length + " dimensions");
		int rank = 0;
		for (int i = 0; i < dims.length; i++) {
			if (!periods[i] && (coords[i] < 0 || coords[i] >= dims[i]))
				throw Errors.of("Rank: coordinate " + coords[i] + " of dimension " + i + ", which is not periodic: use 0 to " + (dims[i] - 1));
			rank = rank * dims[i] + Math.floorMod(coords[i], dims[i]);
		}
		return rank;
	}

	/**
	 * The coordinates of a process.
	 *
	 * @param rank whose
	 * @return one of each dimension
	 */
	public int[] Coords(int rank) {
		world("Coords", "rank", rank);
		int[] coords = new int[dims.length];
		for (int i = dims.length - 1; i >= 0; i--) {
			coords[i] = rank % dims[i];
			rank /= dims[i];
		}
		return coords;
	}

	/**
	 * The neighbours along a dimension.
	 *
	 * @param direction which dimension
	 * @param disp      how far; negative: backwards
	 * @return where to receive from and send to; MPI.PROC_NULL beyond an edge
	 */
	public ShiftParms Shift(int direction, int disp) {
		check("Shift");
		if (direction < 0 || direction >= dims.length)
			throw Errors.of("Shift: the direction is " + direction + ": use 0 to " + (dims.length - 1));
		ShiftParms parms = new ShiftParms();
		parms.rank_source = neighbour(direction, -disp);
		parms.rank_dest = neighbour(direction, disp);
		return parms;
	}

	private int neighbour(int direction, int disp) {
		int[] coords = Coords(group.self());
		coords[direction] += disp;
		if (!periods[direction] && (coords[direction] < 0 || coords[direction] >= dims[direction]))
			return MPI.PROC_NULL;
		return Rank(coords);
	}

	/**
	 * Divides the grid into grids of fewer dimensions; collective, blocks.
	 *
	 * @param remain_dims which dimensions stay
	 * @return the one of the calling process
	 */
	public Cartcomm Sub(boolean[] remain_dims) {
		check("Sub");
		if (remain_dims == null || remain_dims.length != dims.length)
			throw Errors.of("Sub: " + (remain_dims == null ? "no" : remain_dims.length) + " entries: the grid has " + dims.length + " dimensions");
		int[] coords = Coords(group.self());
		int colour = 0;
		int stay = 0;
		int[] left = new int[dims.length];
		boolean[] around = new boolean[dims.length];
		for (int i = 0; i < dims.length; i++) {
			if (remain_dims[i]) {
				left[stay] = dims[i];
				around[stay++] = periods[i];
			} else {
				colour = colour * dims[i] + coords[i];
			}
		}
		int[] members = members(colour, group.self());
		return new Cartcomm(part(members), Arrays.copyOf(left, stay), Arrays.copyOf(around, stay));
	}

	/**
	 * Where the calling process would be in a grid.
	 *
	 * @param dims    the number of processes of each dimension
	 * @param periods which dimensions are periodic
	 * @return its rank there, or MPI.UNDEFINED
	 */
	public int Map(int[] dims, boolean[] periods) {
		check("Map");
		return group.self() < cells("Map", dims, periods, group.ranks.length) ? group.self() : MPI.UNDEFINED;
	}

	/**
	 * The grid.
	 *
	 * @return its dimensions, and the coordinates of the calling process
	 */
	public CartParms Get() {
		check("Get");
		CartParms parms = new CartParms();
		parms.dims = dims.clone();
		parms.periods = periods.clone();
		parms.coords = Coords(group.self());
		return parms;
	}

	@Override
	public int Topo_test() {
		check("Topo_test");
		return MPI.CART;
	}

	/**
	 * Finds a grid as square as possible (MPI 4.0, section 8.5.2).
	 *
	 * @param nnodes how many processes
	 * @param dims   entries that are not 0 stay; the others are set, the larger ones first
	 */
	public static void Dims_create(int nnodes, int[] dims) {
		int rest = nnodes;
		int free = 0;
		for (int dim : dims) {
			if (dim < 0)
				throw Errors.of("Dims_create: a dimension is " + dim + ": it must be positive, or 0 to be found");
			if (dim == 0)
				free++;
			else if (rest % dim != 0)
				throw Errors.of("Dims_create: " + nnodes + " processes cannot be divided by the dimensions " + Arrays.toString(dims) + ": correct these");
			else
				rest /= dim;
		}
		if (nnodes <= 0 || free == 0 && rest != 1)
			throw Errors.of("Dims_create: " + nnodes + " processes are not a grid of " + Arrays.toString(dims) + ": leave a dimension 0");
		int[] found = new int[free];
		Arrays.fill(found, 1);
		if (free > 0)
			divide(rest, free, found);
		int next = free;
		Arrays.sort(found);
		for (int i = 0; i < dims.length; i++)
			if (dims[i] == 0)
				dims[i] = found[--next];
	}

	/** The factors of a number whose largest is as small as possible, and so on for the rest. */
	private static boolean divide(int number, int count, int[] found) {
		if (count == 1) {
			found[0] = number;
			return true;
		}
		int largest = (int) Math.ceil(Math.pow(number, 1.0 / count) - 1e-9);
		while (number % largest != 0 || Math.pow(largest, count) < number - 0.5)
			largest++;
		found[count - 1] = largest;
		return divide(number / largest, count - 1, found);
	}
}
