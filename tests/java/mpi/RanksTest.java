// SPDX-License-Identifier: MIT
package mpitest;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import mpi.MPI;
import mpi.MPIException;
import mpi.Ranks;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Ranks as threads of this JVM, as a user's unit test has them. */
@Timeout(120)
class RanksTest {
	private static int counter;
	private final Object notSerializable = new Object();

	@Test
	void aLambdaOnFourRanks() {
		int base = 10; // captured
		Ranks.run(4, () -> {
			int rank = MPI.COMM_WORLD.Rank();
			int[] sum = {base + rank};
			MPI.COMM_WORLD.Allreduce(sum, 0, sum, 0, 1, MPI.INT, MPI.SUM);
			assertEquals(46, sum[0]);
			counter += rank + 1; // of this rank alone
			int[] all = new int[4];
			MPI.COMM_WORLD.Allgather(new int[] {counter}, 0, 1, MPI.INT, all, 0, 1, MPI.INT);
			assertArrayEquals(new int[] {1, 2, 3, 4}, all);
		});
		assertEquals(0, counter);
	}

	@Test
	void arraysOfOneHeapOfAllSizes() {
		Ranks.run(2, () -> {
			int rank = MPI.COMM_WORLD.Rank();
			for (int length : new int[] {0, 1, 100, 5000, 100_000, 3_000_000}) {
				double[] out = new double[length];
				double[] in = new double[length];
				for (int round = 0; round < 5; round++) {
					Arrays.fill(out, rank + length + round);
					MPI.COMM_WORLD.Sendrecv(out, 0, length, MPI.DOUBLE, 1 - rank, 5, in, 0, length, MPI.DOUBLE, 1 - rank, 5);
					Arrays.fill(out, 1 - rank + length + round);
					assertArrayEquals(out, in);
				}
			}
		});
	}

	/** A program may run another one, in the same job. */
	@Test
	void aProgramAsAValue() {
		Ranks.Program barrier = () -> MPI.COMM_WORLD.Barrier();
		Ranks.run(2, () -> {
			barrier.run();
			barrier.run();
		});
	}

	@Test
	void objectsOfClassesOfTheRank() {
		Ranks.run(3, () -> {
			Object[] item = {MPI.COMM_WORLD.Rank() == 0 ? new Parcel(7, 1, 100) : null};
			MPI.COMM_WORLD.Bcast(item, 0, 1, MPI.OBJECT, 0);
			assertEquals(new Parcel(7, 1, 100), item[0]);
		});
	}

	@Test
	void oneRankThatFailsEndsTheOthers() {
		MPIException e = assertThrows(MPIException.class, () -> Ranks.run(3, () -> {
			if (MPI.COMM_WORLD.Rank() == 1)
				throw new IllegalStateException("thrown by rank 1");
			MPI.COMM_WORLD.Recv(new byte[8], 0, 8, MPI.BYTE, 1, 0); // never sent
		}));
		assertEquals("rank 1: java.lang.IllegalStateException: thrown by rank 1", e.getMessage());
		assertEquals(IllegalStateException.class, e.getCause().getClass());
		assertEquals(2, e.getSuppressed().length);
		for (Throwable other : e.getSuppressed())
			assertTrue(other.getMessage().matches("rank [02]: mpi.MPIException: .*rank 1.*"), other.getMessage());
	}

	@Test
	void aThreadThatIsInsideWhenItsRankFails() {
		MPIException e = assertThrows(MPIException.class, () -> Ranks.run(2, () -> {
			int rank = MPI.COMM_WORLD.Rank();
			if (rank == 0) {
				Thread inside = new Thread(() -> MPI.COMM_WORLD.Recv(new byte[8], 0, 8, MPI.BYTE, 1, 0));
				inside.setDaemon(true);
				inside.start();
				while (inside.getState() == Thread.State.NEW)
					Thread.onSpinWait();
				Thread.sleep(100);
				throw new IllegalStateException("thrown by rank 0");
			}
			MPI.COMM_WORLD.Recv(new byte[8], 0, 8, MPI.BYTE, 0, 0); // never sent
		}));
		assertTrue(e.getMessage().contains("thrown by rank 0"), e.getMessage());
	}

	/** A program whose threads outlive its main method, and which notes how it was called. */
	public static final class Prog {
		private Prog() {}

		public static void main(String[] args) throws Exception {
			String[] own = MPI.Init(args);
			new Thread(() -> {
				try {
					Files.writeString(Path.of(own[0], "rank" + MPI.COMM_WORLD.Rank()), String.join(" ", own).substring(own[0].length()));
				} catch (IOException e) {
					throw new AssertionError(e);
				}
				if (!own[1].equals("leave"))
					MPI.Finalize();
			}).start();
			if (own[1].equals("leave") && MPI.COMM_WORLD.Rank() == 1)
				MPI.COMM_WORLD.Recv(new byte[8], 0, 8, MPI.BYTE, 0, 0);
		}
	}

	@Test
	void aProgramWithAMainMethod(@TempDir Path folder) throws IOException {
		Ranks.run(3, Prog.class, folder.toString(), "a", "b c");
		for (int rank = 0; rank < 3; rank++)
			assertEquals(" a b c", Files.readString(folder.resolve("rank" + rank)));
	}

	@Test
	void aRankThatEndsWithoutFinalizeIsDead(@TempDir Path folder) {
		MPIException e = assertThrows(MPIException.class, () -> Ranks.run(2, Prog.class, folder.toString(), "leave"));
		assertTrue(e.getMessage().startsWith("rank 1: ") && e.getMessage().contains("rank 0"), e.getMessage());
	}

	@Test
	void jobsAtOnceAndOneAfterTheOther() throws Exception {
		List<CompletableFuture<Void>> jobs =
				List.of(CompletableFuture.runAsync(() -> sum(2, 1)), CompletableFuture.runAsync(() -> sum(3, 3)), CompletableFuture.runAsync(() -> sum(1, 0)));
		for (CompletableFuture<Void> job : jobs)
			job.get();
		for (int i = 0; i < 5; i++)
			sum(2, 1);
		for (int i = 0; i < 200 && copies() > 0; i++) {
			System.gc();
			Thread.sleep(50);
		}
		assertEquals(0, copies(), "copies of the library that are still mapped");
	}

	private static void sum(int ranks, int expected) {
		Ranks.run(ranks, () -> {
			int[] sum = {MPI.COMM_WORLD.Rank()};
			MPI.COMM_WORLD.Allreduce(sum, 0, sum, 0, 1, MPI.INT, MPI.SUM);
			assertEquals(expected, sum[0]);
		});
	}

	/** Each copy has one part that can be executed. */
	private static long copies() throws IOException {
		return Files.readAllLines(Path.of("/proc/self/maps")).stream().filter(line -> line.contains("libibvdev") && line.contains(" r-xp ")).count();
	}

	@Test
	void badArguments() {
		MPIException e = assertThrows(MPIException.class, () -> Ranks.run(2, () -> assertFalse(notSerializable.equals(this))));
		assertTrue(e.getMessage().contains("RanksTest") && e.getMessage().contains("local variables"), e.getMessage());
		for (int ranks : new int[] {-1, 0, 1025})
			assertTrue(assertThrows(MPIException.class, () -> Ranks.run(ranks, () -> {})).getMessage().contains(ranks + " ranks"));
		assertThrows(MPIException.class, () -> Ranks.run(1, (Ranks.Program) null));
		assertThrows(MPIException.class, () -> Ranks.run(1, Prog.class, (String[]) null));
		e = assertThrows(MPIException.class, () -> Ranks.run(2, RanksTest.class));
		assertTrue(e.getMessage().contains("NoSuchMethodException"), e.getMessage());
	}
}
