// SPDX-License-Identifier: MIT
package mpi;

/** An operation that is begun again and again (MPI 4.0, section 3.9). Completing it leaves it inactive, to be started again. */
public class Prequest extends Request {
	/** What begins it. */
	interface Starter {
		void start(Request request);
	}

	private Starter starter;

	Prequest(Messages comm, Starter starter) {
		super(comm);
		this.starter = starter;
	}

	/** Begins the operation; does not block. */
	public void Start() {
		if (starter == null)
			throw Errors.of("Start: the request has been freed: make another");
		if (isActive())
			throw Errors.of("Start: the request is active: complete it first");
		starter.start(this);
	}

	/**
	 * Begins several.
	 *
	 * @param array_of_request which
	 */
	public static void Startall(Prequest[] array_of_request) {
		for (Prequest request : array_of_request)
			request.Start();
	}

	@Override
	public boolean Is_null() {
		return starter == null;
	}

	@Override
	public void Free() {
		starter = null;
		super.Free();
	}
}
