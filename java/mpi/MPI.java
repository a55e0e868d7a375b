// SPDX-License-Identifier: MIT
package mpi;

import java.net.InetAddress;
import java.net.UnknownHostException;
import java.nio.ByteBuffer;

/**
 * Message passing by the API of mpiJava 1.2, MPJ Express and FastMPJ, on the device ibvdev.
 *
 * <pre>
 *   MPI.Init(args);
 *   int rank = MPI.COMM_WORLD.Rank();
 *   double[] data = new double[1000];
 *   if (rank == 0)
 *       MPI.COMM_WORLD.Send(data, 0, 1000, MPI.DOUBLE, 1, 99);
 *   else if (rank == 1)
 *       MPI.COMM_WORLD.Recv(data, 0, 1000, MPI.DOUBLE, 0, 99);
 *   MPI.Finalize();
 * </pre>
 *
 * <p>Semantics are those of MPI 4.0. A message's buffer is an array of a basic type, a java.nio buffer, or an Object[]; offset and count are in elements and items of the
 * datatype. Every error is an {@link MPIException}. The thread level is THREAD_MULTIPLE.
 *
 * <p>Deviations from MPI: a tag may be any number but MPI.ANY_TAG; Init may be called again after Finalize; MPI.ERRORS_RETURN, an exception, is the error handler
 * at first; a datatype's extent and displacements are counted in elements. Not part of this API: one-sided communication, files, dynamic processes.
 */
public class MPI {
	/** As in MPJ Express. */
	public static final boolean DEBUG = true;
	/** Nothing; a program recognises an implementation by a field of this name. */
	static Object logger;

	/** All processes; null before Init. */
	public static Intracomm COMM_WORLD;
	/** The calling process alone; null before Init. */
	public static Comm COMM_SELF;
	/** Without effect: which algorithms MPJ Express uses. */
	public static boolean isOldSelected;
	/** The processors of this machine that the JVM may use. */
	public static final int NUM_OF_PROCESSORS = Runtime.getRuntime().availableProcessors();

	/** No rank, no index, no number. */
	public static final int UNDEFINED = value(-1);
	/** As a source: any. */
	public static final int ANY_SOURCE = value(-2);
	/** As a tag of a receive: any. */
	public static final int ANY_TAG = value(-2);
	/** As a destination or source: no process; the operation does nothing. */
	public static final int PROC_NULL = value(-3);

	/** One thread. */
	public static final int THREAD_SINGLE = value(1);
	/** The thread that called Init. */
	public static final int THREAD_FUNNELED = value(2);
	/** One thread at a time. */
	public static final int THREAD_SERIALIZED = value(3);
	/** Any thread. */
	public static final int THREAD_MULTIPLE = value(4);

	static final int PACKED_TYPE = 9;
	/** No datatype. */
	public static final Datatype NULL = new BasicType("NULL", 0, -1);
	/** Elements of byte[]. */
	public static final Datatype BYTE = new BasicType("BYTE", 1, Kinds.BYTE);
	/** Elements of char[]. */
	public static final Datatype CHAR = new BasicType("CHAR", 2, Kinds.CHAR);
	/** Elements of short[]. */
	public static final Datatype SHORT = new BasicType("SHORT", 3, Kinds.SHORT);
	/** Elements of boolean[]. */
	public static final Datatype BOOLEAN = new BasicType("BOOLEAN", 4, Kinds.BOOLEAN);
	/** Elements of int[]. */
	public static final Datatype INT = new BasicType("INT", 5, Kinds.INT);
	/** Elements of long[]. */
	public static final Datatype LONG = new BasicType("LONG", 6, Kinds.LONG);
	/** Elements of float[]. */
	public static final Datatype FLOAT = new BasicType("FLOAT", 7, Kinds.FLOAT);
	/** Elements of double[]. */
	public static final Datatype DOUBLE = new BasicType("DOUBLE", 8, Kinds.DOUBLE);
	/** What Pack has written. */
	public static final Datatype PACKED = new BasicType("PACKED", PACKED_TYPE, Kinds.BYTE);
	/** In a Struct: the lower bound. */
	public static final Datatype LB = new BasicType("LB", -1, -1);
	/** In a Struct: the upper bound. */
	public static final Datatype UB = new BasicType("UB", -1, -1);
	/** Elements of Object[]; they are serialized. */
	public static final Datatype OBJECT = new BasicType("OBJECT", 12, Kinds.OBJECT);
	/** Pairs of short. */
	public static final Datatype SHORT2 = pair(SHORT);
	/** Pairs of int. */
	public static final Datatype INT2 = pair(INT);
	/** Pairs of long. */
	public static final Datatype LONG2 = pair(LONG);
	/** Pairs of float. */
	public static final Datatype FLOAT2 = pair(FLOAT);
	/** Pairs of double. */
	public static final Datatype DOUBLE2 = pair(DOUBLE);

	/** The highest. */
	public static final Op MAX = new Op("MAX", Op.CODE_MAX);
	/** The lowest. */
	public static final Op MIN = new Op("MIN", Op.CODE_MIN);
	/** The sum. */
	public static final Op SUM = new Op("SUM", Op.CODE_SUM);
	/** The product. */
	public static final Op PROD = new Op("PROD", Op.CODE_PROD);
	/** Logical and. */
	public static final Op LAND = new Op("LAND", Op.CODE_LAND);
	/** Bitwise and. */
	public static final Op BAND = new Op("BAND", Op.CODE_BAND);
	/** Logical or. */
	public static final Op LOR = new Op("LOR", Op.CODE_LOR);
	/** Bitwise or. */
	public static final Op BOR = new Op("BOR", Op.CODE_BOR);
	/** Logical exclusive or. */
	public static final Op LXOR = new Op("LXOR", Op.CODE_LXOR);
	/** Bitwise exclusive or. */
	public static final Op BXOR = new Op("BXOR", Op.CODE_BXOR);
	/** Of pairs of value and index: the highest value, and the lowest index that has it. */
	public static final Op MAXLOC = new Op("MAXLOC", Op.CODE_MAXLOC);
	/** Of pairs of value and index: the lowest value, and the lowest index that has it. */
	public static final Op MINLOC = new Op("MINLOC", Op.CODE_MINLOC);

	/** The status of nothing. */
	public static final Status EMPTY_STATUS = new Status();
	/** Bytes that a message needs in an attached buffer beside its data. */
	public static final int BSEND_OVERHEAD = value(16);
	/** Bytes in front of the data of an mpjbuf.Buffer to be sent. */
	public static final int SEND_OVERHEAD = value(0);
	/** Bytes in front of the data of an mpjbuf.Buffer to receive in. */
	public static final int RECV_OVERHEAD = value(0);

	/** The same: of groups, and of one communicator. */
	public static final int IDENT = 0;
	/** The same members in the same order. */
	public static final int CONGRUENT = 3;
	/** The same members in another order. */
	public static final int SIMILAR = 1;
	/** Other members. */
	public static final int UNEQUAL = 2;
	/** The topology of a {@link Graphcomm}. */
	public static final int GRAPH = value(1);
	/** The topology of a {@link Cartcomm}. */
	public static final int CART = value(2);

	/** An error ends the job. */
	public static final Errhandler ERRORS_ARE_FATAL = new Errhandler("MPI.ERRORS_ARE_FATAL");
	/** An error is an {@link MPIException}. */
	public static final Errhandler ERRORS_RETURN = new Errhandler("MPI.ERRORS_RETURN");

	/** The attribute with the highest tag. */
	public static final int TAG_UB = value(1);
	/** The attribute with the rank of the host process, if there is one. */
	public static final int HOST = value(2);
	/** The attribute with the rank that can do input and output. */
	public static final int IO = value(3);

	/** The group without members. */
	public static final Group GROUP_EMPTY = new Group(new int[0]);
	/** No group. */
	public static final Group GROUP_NULL = new Group(null);
	/** No request. */
	public static final Request REQUEST_NULL = new Request(null);
	/** No communicator. */
	public static final Comm COMM_NULL = new Comm();
	/** What a matched probe of MPI.PROC_NULL returns; to receive it does nothing, any number of times. */
	public static final Message MESSAGE_NO_PROC = new Message();

	private static volatile Errhandler handler = ERRORS_RETURN;

	/** Has no use. */
	public MPI() {}

	/** A number that compilers do not copy into programs: MPJ Express has variables. */
	private static int value(int number) {
		return number;
	}

	private static Datatype pair(Datatype of) {
		Datatype pair = Datatype.Contiguous(2, of);
		pair.Commit();
		return pair;
	}

	/**
	 * Joins the job (MPI 4.0, section 11.2); blocks until all processes have. ibvrun, srun, mpirun, mpiexec, or a rank, a conf file and a device in front of
	 * the arguments decide which job that is; a process that nobody has started so is alone.
	 *
	 * @param argv the arguments of main; null is taken for none
	 * @return those that are the program's own
	 */
	public static String[] Init(String[] argv) {
		String[] own = Job.open(argv);
		Comm.createFirst();
		return own;
	}

	/**
	 * As Init.
	 *
	 * @param argc     without effect
	 * @param required without effect: the level is THREAD_MULTIPLE
	 * @param argv     the arguments of main
	 * @return those that are the program's own
	 */
	public static String[] initThread(int argc, int required, String[] argv) {
		return Init(argv);
	}

	/**
	 * Was Init called by this thread?
	 *
	 * @return true if so
	 */
	public static boolean isMainThread() {
		return Job.current().initialiser == Thread.currentThread();
	}

	/**
	 * Which threads may call this API.
	 *
	 * @return THREAD_MULTIPLE
	 */
	public static int queryThread() {
		return THREAD_MULTIPLE;
	}

	/** Leaves the job; blocks until all processes come to this and everything that was sent is delivered. Receives under way are an error. */
	public static void Finalize() {
		Attached.finish();
		COMM_WORLD.Barrier();
		Job.close();
		COMM_WORLD = null;
		COMM_SELF = null;
	}

	/**
	 * Is it after Init and before Finalize?
	 *
	 * @return true if so
	 */
	public static boolean Initialized() {
		return Job.isOpen();
	}

	/**
	 * The name of this machine.
	 *
	 * @return its host name
	 */
	public static String Get_processor_name() {
		try {
			return InetAddress.getLocalHost().getHostName();
		} catch (UnknownHostException e) {
			return "localhost";
		}
	}

	/**
	 * A clock.
	 *
	 * @return seconds since some moment
	 */
	public static double Wtime() {
		return System.nanoTime() * 1e-9;
	}

	/**
	 * The resolution of {@link #Wtime}.
	 *
	 * @return seconds
	 */
	public static double Wtick() {
		return 1e-9;
	}

	/**
	 * Decides what happens on an error, in all communicators.
	 *
	 * @param errhandler ERRORS_RETURN or ERRORS_ARE_FATAL
	 */
	public static void Errorhandler_set(Errhandler errhandler) {
		if (errhandler == null)
			throw Errors.of("Errorhandler_set: the handler is null: name MPI.ERRORS_RETURN or MPI.ERRORS_ARE_FATAL");
		handler = errhandler;
	}

	/**
	 * What happens on an error.
	 *
	 * @return what was set
	 */
	public static Errhandler Errorhandler_get() {
		return handler;
	}

	/**
	 * Provides room for buffered sends (MPI 4.0, section 3.6).
	 *
	 * @param userBuffer its capacity counts, its contents stay
	 */
	public static void Buffer_attach(ByteBuffer userBuffer) {
		if (userBuffer == null)
			throw Errors.of("Buffer_attach: the buffer is null: name a ByteBuffer");
		Attached.attach(userBuffer, userBuffer.capacity());
	}

	/**
	 * As Buffer_attach.
	 *
	 * @param userBuffer its length counts, its contents stay
	 */
	public static void Buffer_attach(byte[] userBuffer) {
		if (userBuffer == null)
			throw Errors.of("Buffer_attach: the buffer is null: name a byte[]");
		Attached.attach(userBuffer, userBuffer.length);
	}

	/** Takes the room back; blocks until the messages in it have been sent. */
	public static void Buffer_detach() {
		Attached.detach();
	}
}
