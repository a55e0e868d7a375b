// SPDX-License-Identifier: MIT
package xxdev.ibvdev;

import xdev.ibvdev.ResultBlock;
import xxdev.ErrorCode;
import xxdev.XXDevException;

/** Makes the exceptions. Native methods return a negative errno; the text and the rank are those of the calling thread's last native error. */
final class Errors {
	private Errors() {}

	/** What an errno of ibvx.h means to a program. */
	static ErrorCode code(int errno, int rank) {
		switch (errno) {
		case Native.EMSGSIZE:
			return ErrorCode.TRUNCATED;
		case Native.EPROTOTYPE:
			return ErrorCode.TYPE_MISMATCH;
		case Native.ECONNRESET:
			return ErrorCode.PEER_DIED;
		case Native.EPIPE:
			return ErrorCode.PEER_LEFT;
		case Native.ENOMEM:
			return ErrorCode.NO_MEMORY;
		case Native.EMFILE:
		case Native.ENOSPC:
		case Native.EFBIG:
			return ErrorCode.LIMIT;
		case Native.EINVAL:
		case Native.ENOENT:
			return ErrorCode.BAD_ARGUMENT;
		case Native.EBUSY:
			return ErrorCode.BUSY;
		case Native.ESHUTDOWN:
			return ErrorCode.CLOSED;
		case Native.ECANCELED:
			return ErrorCode.CANCELLED;
		default: /* a rank is named by what its connection has failed with, also with ETIMEDOUT */
			return rank >= 0 ? ErrorCode.UNREACHABLE : errno == Native.ETIMEDOUT ? ErrorCode.TIMEOUT : ErrorCode.OTHER;
		}
	}

	/** For a native method that has just returned this on this thread. */
	static XXDevException of(long rc, String operation) {
		int rank = Native.errorRank();
		return new XXDevException(code((int) -rc, rank), rank, operation + ": " + Texts.last());
	}

	/** The same of a send. */
	static XXDevException sending(long rc, String operation, int rank, int tag, int context) {
		return of(rc, Texts.operation(operation, "to", rank, tag, context));
	}

	/** The same of a probe or the start of a receive. */
	static XXDevException receiving(long rc, String operation, int rank, int tag, int context) {
		return of(rc, Texts.operation(operation, "from", rank, tag, context));
	}

	/** The same of a receive; ref is what it was to fill. The result block reports what came, if anything did. */
	static XXDevException received(int rc, String operation, int rank, int tag, int context, ArrayRef ref, ResultBlock result) {
		if (rc != -Native.EMSGSIZE && rc != -Native.EPROTOTYPE)
			return receiving(rc, operation, rank, tag, context);
		return new XXDevException(code(-rc, result.source()), result.source(), Texts.unfit(operation, context, rc, ref, result));
	}

	/** An argument is wrong. */
	static XXDevException argument(String text) {
		return new XXDevException(ErrorCode.BAD_ARGUMENT, -1, text);
	}

	/** Objects that cannot be sent (rank is -1), or not be received from a rank. */
	static XXDevException objects(int rank, String text, Throwable cause) {
		return new XXDevException(ErrorCode.SERIALIZATION, rank, text, cause);
	}

	/** The same exception with the calling thread's stack. */
	static XXDevException again(XXDevException e) {
		return new XXDevException(e.code(), e.rank(), e.getMessage(), e.getCause());
	}
}
