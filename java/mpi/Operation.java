// SPDX-License-Identifier: MIT
package mpi;

import xxdev.XXDevException;
import xxdev.ibvdev.Communicator;

/** One collective operation of the native library on memory of its own: what it does, and where its result belongs. Run at once, or started and completed later. */
final class Operation implements Pending {
	private final Engine engine;
	private final String name;
	private final Bounce bounce;
	private final Communicator.Description description;
	/** Where the result belongs; null: nowhere. */
	private Object target;
	private int offset;
	private Parts parts;
	private int count;
	private Datatype type;
	private int at;
	/** While it is under way. */
	private long handle;
	private volatile boolean abandoned;

	/** dataBytes: of all that in() and out() are going to name, each rounded up by Bounce.room(). */
	Operation(Engine engine, String name, int kind, int root, long dataBytes) {
		this.engine = engine;
		this.name = name;
		bounce = engine.bounce();
		long tables = 2 * Bounce.room(2L * Long.BYTES * engine.size);
		bounce.begin(name, Communicator.Description.BYTES, Communicator.Description.BYTES + tables + dataBytes);
		description = new Communicator.Description(bounce.memory(), kind, root);
	}

	/** Bytes of these parts. */
	static long bytes(Parts parts, int count, Datatype type) {
		return parts.items(count) * type.size * type.unitBytes();
	}

	/** The sizes of the parts in bytes, and where each begins: the offset of the table; 0: they are even. */
	private int table(Parts of, int number, Datatype each) {
		if (of.isEven())
			return 0;
		int table = bounce.take(2L * Long.BYTES * number);
		long begin = 0;
		for (int i = 0; i < number; i++) {
			long bytes = (long) of.count(i) * each.size * each.unitBytes();
			bounce.memory().putLong(table + i * Long.BYTES, bytes).putLong(table + (number + i) * Long.BYTES, begin);
			begin += bytes;
		}
		return table;
	}

	/** What is sent: so many parts. fill is false: only room for what is received in the same memory. */
	void in(Object buf, int from, Parts of, int number, Datatype each, boolean fill) {
		int where = bounce.take(bytes(of, number, each));
		description.in(where, of.isEven() ? of.count(0) * each.size * each.unitBytes() : 0, table(of, number, each));
		if (!fill)
			result(buf, from, of, number, each, where);
		else
			walk(true, buf, from, of, number, each, where);
	}

	/** What is received. */
	void out(Object buf, int to, Parts of, int number, Datatype each) {
		int where = bounce.take(bytes(of, number, each));
		description.out(where, of.isEven() ? of.count(0) * each.size * each.unitBytes() : 0, table(of, number, each));
		result(buf, to, of, number, each, where);
	}

	/** The operands, and room for the result. */
	void operands(Object sendbuf, int sendoffset, int items, Datatype each, int libraryType, int libraryOp, boolean pairs) {
		int where = bounce.take((long) items * each.size * each.unitBytes());
		bounce.put(where, sendbuf, sendoffset, items, each);
		description.in(where, 0, 0);
		description.reduction(pairs ? items * each.size / 2 : items * each.size, libraryType, libraryOp);
	}

	/** So many elements of the result belong to each rank. */
	void shares(int[] counts, Datatype each, boolean pairs) {
		int table = bounce.take((long) Long.BYTES * counts.length);
		for (int i = 0; i < counts.length; i++)
			bounce.memory().putLong(table + i * Long.BYTES, pairs ? counts[i] * each.size / 2 : counts[i] * each.size);
		description.shares(table);
	}

	void uneven() {
		description.uneven();
	}

	private void result(Object buf, int to, Parts of, int number, Datatype each, int where) {
		target = buf;
		offset = to;
		parts = of;
		count = number;
		type = each;
		at = where;
	}

	/** Copies parts to the bounce buffer, or back. */
	private void walk(boolean put, Object buf, int first, Parts of, int number, Datatype each, int where) {
		int now = where;
		int steps = of.isEven() ? 1 : number;
		for (int i = 0; i < steps; i++) {
			int items = of.isEven() ? number * of.count(0) : of.count(i);
			if (put)
				bounce.put(now, buf, of.begin(first, i, each), items, each);
			else
				bounce.get(now, buf, of.begin(first, i, each), items, each);
			now += items * each.size * each.unitBytes();
		}
	}

	private void deliver() {
		if (target != null)
			walk(false, target, offset, parts, count, type, at);
		engine.release(bounce);
	}

	/** Executes it; blocks. */
	void run() {
		try {
			engine.communicator.run(name, bounce.memory());
		} catch (XXDevException e) {
			engine.release(bounce);
			throw Errors.of(e);
		}
		deliver();
	}

	/** Begins it. Its memory stays reachable until it is complete, whatever becomes of the request. */
	void start() {
		try {
			handle = engine.communicator.start(name, bounce.memory());
		} catch (XXDevException e) {
			throw Errors.of(e);
		}
		Job.current().add(this);
	}

	@Override
	public boolean complete(boolean block) {
		try {
			if (!engine.communicator.complete(name, handle, block))
				return false;
		} catch (XXDevException e) {
			Job.current().remove(this);
			throw e;
		}
		Job.current().remove(this);
		if (!abandoned)
			deliver();
		return true;
	}

	@Override
	public void abandon() {
		abandoned = true;
	}

	/** Completes it, or tries to, if its request was freed. Nobody sees how it ends. */
	void reap(boolean block) {
		try {
			if (abandoned)
				complete(block);
		} catch (XXDevException e) {
			return;
		}
	}
}
