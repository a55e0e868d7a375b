// SPDX-License-Identifier: MIT
package xxdev.ibvdev;

import java.nio.charset.StandardCharsets;
import xdev.ibvdev.ResultBlock;
import xxdev.Device;

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

	/** A message that its receive could not take: rc is the native's, ref what it was to fill. */
	static String unfit(String operation, int context, int rc, ArrayRef ref, ResultBlock result) {
		String why = last();
		String what = operation(operation, "from", result.source(), result.tag(), context) + ": ";
		if (rc == -Native.EMSGSIZE && ref.nativeKind == Native.BODY)
			return what + "the message holds " + Word.text(result.user()) + " (" + result.bytes() + " bytes), the system property xxdev.maxbytes is "
					+ ref.length + "; the message is gone";
		return what + mismatch(result.user(), result.bytes(), ref) + (rc == -Native.EMSGSIZE && Word.depth(result.user()) > 1 ? ": " + why : "");
	}

	/** A message for a segment that is no more. */
	static String closed(String operation, int context, ResultBlock result) {
		return operation(operation, "from", result.source(), result.tag(), context)
				+ ": the arena of the MemorySegment was closed before the receive was complete; "
				+ "the message is gone, nothing was written: close an arena after its operations";
	}

	/** Both sides of a message that does not fit. */
	static String mismatch(long word, long bytes, ArrayRef ref) {
		return "the message holds " + Word.text(word) + " (" + bytes + " bytes), the receive has " + ref.text()
				+ "; the message is gone, the buffer is unchanged";
	}
}
