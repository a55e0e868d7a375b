// SPDX-License-Identifier: MIT
package apps;

import java.util.Arrays;
import java.util.Random;
import mpi.Intracomm;
import mpi.MPI;

/**
 * MolDyn of the Java Grande benchmarks (section 3): particles in a periodic cube under a Lennard-Jones potential.
 *
 * <p>Each rank has all particles and makes the forces of the pairs (i, j > i) for every ranks-th i; an allreduce adds
 * them up. Reduced units (depth, diameter and mass are 1); the potential is cut off and shifted to 0 there, so that
 * energy is conserved; Verlet's method with velocities.
 */
final class MolDyn extends App {
	private static final int STEPS = 50;
	private static final double DENSITY = 0.83134;
	private static final double TEMPERATURE = 0.722;
	private static final double STEP = 0.064 / Math.sqrt(48); // Java Grande's, whose particles have mass 48
	private static final int SAMPLES = 8;
	private static final int AXES = 3;
	private static final double[][] CELL = {{0, 0, 0}, {0, 0.5, 0.5}, {0.5, 0, 0.5}, {0.5, 0.5, 0}};

	private final int cells;
	private final int n;
	private final double side;
	private final double cutOff;
	private final double shift;

	private final double[][] place = new double[AXES][];
	private final double[][] velocity = new double[AXES][];
	/** The forces along each axis, then the potential energy; of this rank's pairs, and of all. */
	private double[] mine;
	private double[] all;
	private double[] distance2;
	private double firstEnergy;

	MolDyn(int cells, Intracomm world) throws UsageException {
		super(world);
		this.cells = cells;
		if (cells < 2 || cells > 100)
			throw new UsageException("moldyn wants 2 to 100 unit cells along an edge, not " + cells);
		n = CELL.length * cells * cells * cells;
		side = Math.cbrt(n / DENSITY);
		cutOff = Math.min(Math.max(cells / 4.0, 2), side / 2);
		shift = potential(cutOff * cutOff);
	}

	@Override
	String size() {
		return n + " particles, " + STEPS + " steps";
	}

	@Override
	void prepare() {
		Random random = new Random(314159);
		for (int axis = 0; axis < AXES; axis++) {
			place[axis] = new double[n];
			velocity[axis] = new double[n];
		}
		mine = new double[AXES * n + 1];
		all = new double[AXES * n + 1];
		distance2 = new double[n];
		double width = side / cells;
		for (int i = 0; i < n; i++) {
			int cell = i / CELL.length;
			int[] at = {cell % cells, cell / cells % cells, cell / cells / cells};
			for (int axis = 0; axis < AXES; axis++) {
				place[axis][i] = width * (at[axis] + CELL[i % CELL.length][axis]);
				velocity[axis][i] = random.nextGaussian();
			}
		}
		atRestAsAWhole();
		makeForces(); // also keeps them for the first step
		firstEnergy = energy();
	}

	/** No momentum, and the temperature as it should be. */
	private void atRestAsAWhole() {
		for (double[] v : velocity) {
			double mean = Arrays.stream(v).sum() / n;
			for (int i = 0; i < n; i++)
				v[i] -= mean;
		}
		double scale = Math.sqrt(AXES * (n - 1) * TEMPERATURE / (2 * kinetic()));
		for (double[] v : velocity) {
			for (int i = 0; i < n; i++)
				v[i] *= scale;
		}
	}

	@Override
	void run() {
		for (int k = 0; k < STEPS; k++) {
			for (int axis = 0; axis < AXES; axis++)
				move(place[axis], velocity[axis], axis * n);
			makeForces();
			for (int axis = 0; axis < AXES; axis++)
				accelerate(velocity[axis], axis * n);
		}
	}

	private void move(double[] r, double[] v, int force) {
		accelerate(v, force);
		for (int i = 0; i < n; i++) {
			double to = r[i] + STEP * v[i];
			r[i] = to < 0 ? to + side : to >= side ? to - side : to;
		}
	}

	private void accelerate(double[] v, int force) {
		for (int i = 0; i < n; i++)
			v[i] += STEP / 2 * all[force + i];
	}

	private void makeForces() {
		Arrays.fill(mine, 0);
		for (int i = rank; i < n; i += ranks)
			mine[AXES * n] += forcesOf(i, i + 1, mine, true);
		enter();
		world.Allreduce(mine, 0, all, 0, mine.length, MPI.DOUBLE, MPI.SUM);
		leave();
	}

	/**
	 * The forces between i and the particles from {@code first} on, added to {@code force}.
	 *
	 * @param both if the forces on the others are wanted too
	 * @return their potential energy
	 */
	private double forcesOf(int i, int first, double[] force, boolean both) {
		double[] x = place[0];
		double[] y = place[1];
		double[] z = place[2];
		distances(x, y, z, distance2, i, first, n, side);
		double limit = cutOff * cutOff;
		double energy = 0;
		for (int j = first; j < n; j++) {
			double r2 = distance2[j];
			if (r2 >= limit || j == i)
				continue;
			energy += potential(r2) - shift;
			double r6 = 1 / (r2 * r2 * r2);
			double f = 24 * r6 * (2 * r6 - 1) / r2;
			double fx = f * nearest(x[i] - x[j]);
			double fy = f * nearest(y[i] - y[j]);
			double fz = f * nearest(z[i] - z[j]);
			force[i] += fx;
			force[n + i] += fy;
			force[2 * n + i] += fz;
			if (both) {
				force[j] -= fx;
				force[n + j] -= fy;
				force[2 * n + j] -= fz;
			}
		}
		return energy;
	}

	/** Squares of the distances between i and the others; a loop of its own, of which the JIT makes vectors. */
	private static void distances(double[] x, double[] y, double[] z, double[] to, int i, int first, int end, double side) {
		double xi = x[i];
		double yi = y[i];
		double zi = z[i];
		for (int j = first; j < end; j++) {
			double dx = Math.abs(xi - x[j]);
			double dy = Math.abs(yi - y[j]);
			double dz = Math.abs(zi - z[j]);
			dx = Math.min(dx, side - dx);
			dy = Math.min(dy, side - dy);
			dz = Math.min(dz, side - dz);
			to[j] = dx * dx + dy * dy + dz * dz;
		}
	}

	private double nearest(double d) {
		return d > side / 2 ? d - side : d < -side / 2 ? d + side : d;
	}

	private static double potential(double r2) {
		double r6 = 1 / (r2 * r2 * r2);
		return 4 * r6 * (r6 - 1);
	}

	private double kinetic() {
		double sum = 0;
		for (double[] v : velocity) {
			for (double value : v)
				sum += value * value / 2;
		}
		return sum;
	}

	private double energy() {
		return kinetic() + all[AXES * n];
	}

	@Override
	double work() {
		return 1e-6 * STEPS * (n * (n - 1.0) / 2);
	}

	@Override
	String unit() {
		return "pairs";
	}

	@Override
	boolean verify(Report report) {
		double momentum = 0;
		for (double[] v : velocity)
			momentum = Math.max(momentum, Math.abs(Arrays.stream(v).sum()) / n);
		boolean good = report.below("momentum per particle", momentum, 1e-10);
		good &= report.below("drift of the energy per particle", Math.abs(energy() - firstEnergy) / n, 5e-3);
		double wrong = 0;
		for (int k = 0; k < SAMPLES; k++)
			wrong = Math.max(wrong, errorOfForce(share(n, k, SAMPLES)));
		return good & report.below("error of forces", wrong, 1e-10);
	}

	/** Against the sum over all others, made here; relative to the largest force there is. */
	private double errorOfForce(int i) {
		double[] alone = new double[AXES * n];
		forcesOf(i, 0, alone, false);
		double most = 0;
		for (int k = 0; k < AXES * n; k++)
			most = Math.max(most, Math.abs(all[k]));
		double wrong = 0;
		for (int axis = 0; axis < AXES; axis++)
			wrong = Math.max(wrong, Math.abs(alone[axis * n + i] - all[axis * n + i]));
		return wrong / most;
	}
}
