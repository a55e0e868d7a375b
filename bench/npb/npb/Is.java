// SPDX-License-Identifier: MIT
package npb;

import java.util.Arrays;

/**
 * IS: ranks integer keys ten times by a bucket sort over all ranks, and in the end sorts them.
 *
 * <p>Each time: the sum over all ranks of the sizes of the buckets, then the counts of keys and the keys themselves,
 * from everybody to everybody, so that each rank has a range of keys.
 */
final class Is implements Kernel {
	private static final int[] LOG2_KEYS = {16, 20, 23, 25, 27};
	private static final int[] LOG2_MAX_KEY = {11, 16, 19, 21, 23};
	private static final int ITERATIONS = 10;
	private static final int TESTS = 5;
	private static final int[][] TEST_INDEX = {
		{48427, 17148, 23627, 62548, 4431},
		{357773, 934767, 875723, 898999, 404505},
		{2112377, 662041, 5336171, 3642833, 4250760},
		{41869, 812306, 5102857, 18232239, 26860214},
		{44172927, 72999161, 74326391, 129606274, 21736814},
	};
	private static final int[][] TEST_RANK = {
		{0, 18, 346, 64917, 65463},
		{1249, 11698, 1039987, 1043896, 1048018},
		{104, 17523, 123928, 8288932, 8388264},
		{33422937, 10244, 59149, 33135281, 99},
		{61147, 882988, 266290, 133997595, 133525895},
	};
	/** How the expected rank of a test key moves with the iteration: up (else down), and by iteration + what. */
	private static final boolean[][] UP = {
		{true, true, true, false, false},
		{true, true, false, false, false},
		{true, true, true, false, false},
		{false, true, true, false, true},
		{true, true, true, false, false},
	};
	private static final int[][] LATER = {{0, 0, 0, 0, 0}, {-2, -2, 0, 0, 0}, {-1, -1, -1, -1, -1}, {0, 0, 0, 0, 0},
		{0, 0, 0, 0, 0}};
	private static final int TAG = 200;

	private final CommTimer comm;
	private final int problem;
	private final int log2Keys;
	private final int maxKey;
	private final int buckets;
	private final int bucketShift;
	private final int keysEach;

	private int[] keys;
	private final int[] firstKeys = new int[2 * ITERATIONS + 1]; // those that the iterations of rank 0 change
	private int[] sorted; // by bucket
	private int[] received;
	private int[] bucketCount; // and the test keys after them, from the rank that has them
	private int[] bucketTotal;
	private int[] bucketNext;
	private int[] sendCount;
	private int[] sendPlace;
	private int[] recvCount;
	private int[] recvPlace;
	private int[] firstBucket; // of each rank, and one past the last
	private int[] upTo; // keys of my range that are not larger
	private int minKey;
	private int keyRange;
	private int keysBelow;
	private int keysHere;
	private int passed;

	Is(ProblemClass problem, CommTimer comm) throws UsageException {
		this.comm = comm;
		this.problem = problem.ordinal();
		log2Keys = LOG2_KEYS[this.problem];
		int log2MaxKey = LOG2_MAX_KEY[this.problem];
		maxKey = 1 << log2MaxKey;
		int log2Buckets = problem == ProblemClass.S ? 9 : 10;
		buckets = 1 << log2Buckets;
		bucketShift = log2MaxKey - log2Buckets;
		keysEach = (1 << log2Keys) >> UsageException.log2OfRanks("IS", comm.size);
		if (comm.size > buckets / 4)
			throw new UsageException("IS of class " + problem + " runs on up to " + buckets / 4 + " ranks, not on "
				+ comm.size);
	}

	@Override
	public String name() {
		return "IS";
	}

	@Override
	public String size() {
		return Integer.toString(1 << log2Keys);
	}

	@Override
	public int iterations() {
		return ITERATIONS;
	}

	@Override
	public String operation() {
		return "keys ranked";
	}

	@Override
	public void prepare() {
		keys = new int[keysEach];
		sorted = new int[keysEach];
		received = new int[keysEach * 2];
		bucketCount = new int[buckets + TESTS];
		bucketTotal = new int[buckets + TESTS];
		bucketNext = new int[buckets];
		sendCount = new int[comm.size];
		sendPlace = new int[comm.size];
		recvCount = new int[comm.size];
		recvPlace = new int[comm.size];
		firstBucket = new int[comm.size + 1];
		upTo = new int[maxKey];
		createKeys();
		System.arraycopy(keys, 0, firstKeys, 0, firstKeys.length);
		rank(1);
		reset();
	}

	@Override
	public void reset() {
		System.arraycopy(firstKeys, 0, keys, 0, firstKeys.length);
		passed = 0;
	}

	private void createKeys() {
		NpbRandom random = NpbRandom.after(NpbRandom.SEED, 4L * keysEach * comm.rank);
		double quarter = maxKey / 4;
		for (int i = 0; i < keysEach; i++) {
			double sum = random.next();
			sum += random.next();
			sum += random.next();
			sum += random.next();
			keys[i] = (int) (quarter * sum);
		}
	}

	@Override
	public void run() {
		for (int i = 1; i <= ITERATIONS; i++)
			rank(i);
	}

	private void rank(int iteration) {
		if (comm.rank == 0) {
			keys[iteration] = iteration;
			keys[iteration + ITERATIONS] = maxKey - iteration;
		}
		sortIntoBuckets();
		comm.sum(bucketCount, bucketTotal, buckets + TESTS);
		dealBuckets();
		comm.alltoall(sendCount, recvCount, 1);
		int count = 0;
		for (int k = 0; k < comm.size; k++) {
			recvPlace[k] = count;
			count += recvCount[k];
		}
		if (count > received.length)
			throw new IllegalStateException("IS: rank " + comm.rank + " has room for " + received.length + " keys, not for "
				+ count);
		keysHere = count;
		comm.alltoallv(sorted, sendCount, sendPlace, received, recvCount, recvPlace);
		countKeys();
		checkSome(iteration);
	}

	private void sortIntoBuckets() {
		int[] count = bucketCount;
		int[] next = bucketNext;
		int shift = bucketShift;
		Arrays.fill(count, 0);
		for (int key : keys)
			count[key >> shift]++;
		for (int t = 0; t < TESTS; t++) {
			int index = TEST_INDEX[problem][t];
			if (index / keysEach == comm.rank)
				count[buckets + t] = keys[index % keysEach];
		}
		int place = 0;
		for (int b = 0; b < buckets; b++) {
			next[b] = place;
			place += count[b];
		}
		for (int key : keys)
			sorted[next[key >> shift]++] = key;
	}

	/** Which rank gets which buckets: each as many as make its share of the keys full. */
	private void dealBuckets() {
		int bucket = 0;
		long dealt = 0;
		int place = 0;
		for (int k = 0; k < comm.size; k++) {
			firstBucket[k] = bucket;
			if (k == comm.rank)
				keysBelow = (int) dealt;
			int count = 0;
			long full = k + 1 < comm.size ? (k + 1L) * keysEach : Long.MAX_VALUE;
			while (bucket < buckets && dealt < full) {
				dealt += bucketTotal[bucket];
				count += bucketCount[bucket++];
			}
			sendCount[k] = count;
			sendPlace[k] = place;
			place += count;
		}
		firstBucket[comm.size] = bucket;
		minKey = firstBucket[comm.rank] << bucketShift;
		keyRange = (firstBucket[comm.rank + 1] << bucketShift) - minKey;
	}

	/** upTo[k]: how many of the keys here are at most minKey + k. */
	private void countKeys() {
		int[] count = upTo;
		int min = minKey;
		Arrays.fill(count, 0, keyRange, 0);
		for (int i = 0; i < keysHere; i++)
			count[received[i] - min]++;
		int sum = 0;
		for (int k = 0; k < keyRange; k++) {
			sum += count[k];
			count[k] = sum;
		}
	}

	/** Compares the ranks of the test keys that are in the range of this rank. */
	private void checkSome(int iteration) {
		for (int t = 0; t < TESTS; t++) {
			int k = bucketTotal[buckets + t] - minKey;
			if (k < 0 || k >= keyRange)
				continue;
			int rank = keysBelow + (k > 0 ? upTo[k - 1] : 0);
			int by = iteration + LATER[problem][t];
			if (rank == TEST_RANK[problem][t] + (UP[problem][t] ? by : -by))
				passed++;
		}
	}

	@Override
	public double megaOperations() {
		return 1e-6 * ITERATIONS * (1L << log2Keys);
	}

	/** Sorts the keys, and looks at their order here, between neighbours, and at how many there are. */
	@Override
	public boolean verify(Report report) {
		int[] order = new int[keysHere];
		for (int i = keysHere - 1; i >= 0; i--)
			order[--upTo[received[i] - minKey]] = received[i];
		int largest = keysHere > 0 ? order[keysHere - 1] : minKey;
		int below = comm.fromBelow(largest, 0, TAG);
		int wrong = keysHere > 0 && order[0] < below ? 1 : 0;
		for (int i = 1; i < keysHere; i++) {
			if (order[i - 1] > order[i])
				wrong++;
		}
		double allPassed = comm.sum(passed);
		double allWrong = comm.sum(wrong);
		double allKeys = comm.sum(keysHere);
		report.line(" ranks of test keys: %.0f of %d right; keys: %.0f of %d, %.0f out of order", allPassed,
			TESTS * ITERATIONS, allKeys, 1 << log2Keys, allWrong);
		return allPassed == TESTS * ITERATIONS && allWrong == 0 && allKeys == 1 << log2Keys;
	}
}
