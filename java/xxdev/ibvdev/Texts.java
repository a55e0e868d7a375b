// SPDX-License-Identifier: MIT
package xxdev.ibvdev;

import java.nio.charset.StandardCharsets;
import xdev.ibvdev.ResultBlock;
import xxdev.Device;
import xxdev.XXDevException;

/** The words of exceptions. */
final class Texts {
	private Texts() {}

	/** The text of the calling thread's last native error. */
	static String last() {
		return new String(Native.errorText(), StandardCharsets.UTF_8);
	}

	/** "recv from rank 1, tag 5, context 0". */
	static String operation(String operation, String direction, int rank, int tag, int context) {
		return operation + " " + direction + " " + (rank == Peers.ANY ? "any process" : "rank " + rank) + ", tag "
				+ (tag == Device.ANY_TAG ? "any" : Integer.toString(tag)) + ", context " + context;
	}

	/** For a send that has just failed on this thread. */
	static XXDevException sending(String operation, int rank, int tag, int context) {
		return new XXDevException(operation(operation, "to", rank, tag, context) + ": " + last());
	}

	/** For a probe or the start of a receive that has just failed on this thread. */
	static XXDevException receiving(String operation, int rank, int tag, int context) {
		return new XXDevException(operation(operation, "from", rank, tag, context) + ": " + last());
	}

	/** Why a receive failed: rc is the native's, ref what it was to fill. The result block reports what came, if anything did. */
	static String receive(String operation, int rank, int tag, int context, int rc, ArrayRef ref, ResultBlock result) {
		if (rc != -Native.EMSGSIZE && rc != -Native.EPROTOTYPE)
			return operation(operation, "from", rank, tag, context) + ": " + last();
		String why = last();
		if (rc == -Native.EMSGSIZE && ref.nativeKind == Native.BODY)
			return operation(operation, "from", result.source(), result.tag(), context) + ": the message holds " + Word.text(result.user()) + " ("
					+ result.bytes() + " bytes), the system property xxdev.maxbytes is " + ref.length + "; the message is gone";
		return operation(operation, "from", result.source(), result.tag(), context) + ": " + mismatch(result.user(), result.bytes(), ref)
				+ (rc == -Native.EMSGSIZE && Word.depth(result.user()) > 1 ? ": " + why : "");
	}

	/** Both sides of a message that does not fit. */
	static String mismatch(long word, long bytes, ArrayRef ref) {
		return "the message holds " + Word.text(word) + " (" + bytes + " bytes), the receive has " + ref.text()
				+ "; the message is gone, the buffer is unchanged";
	}
}
