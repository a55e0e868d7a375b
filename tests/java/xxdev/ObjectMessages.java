// SPDX-License-Identifier: MIT
package xxdevtest;

import harness.Task;
import java.io.Serializable;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import xxdev.Device;
import xxdev.Request;
import xxdev.Status;
import xxdev.Type;
import xxdevtest.Parcels.Tree;

/** Strings and objects. Two ranks. */
final class ObjectMessages extends Program {
	public static void main(String[] args) throws Exception {
		new ObjectMessages().launch(args);
	}

	/** What the other rank sends, when it does the same. */
	private Object swap(Object out, int tag) {
		Object[] in = new Object[3];
		Request receive = dev.irecv(in, 1, 2, ids[1 - me], tag, CONTEXT);
		dev.send(out, ids[1 - me], tag, CONTEXT);
		Status status = receive.iwait();
		checkStatus(status, 1 - me, tag, out instanceof String ? Type.STRING : Type.OBJECT, 1);
		check(in[0] == null && in[2] == null, "only the first element is filled");
		return in[1];
	}

	@Case
	void strings() {
		String[] texts = {"", "a", "plain", "Größe", "日本語 \uD83D\uDE00", "\uD800 alone", "\0nul", "x".repeat(100000), "€".repeat(50000)};
		for (String text : texts) {
			equal(text, swap(text, 1), "a String");
			String[] in = new String[1];
			Request send = dev.issend(text, ids[me], 2, CONTEXT);
			checkStatus(dev.recv(in, ids[me], 2, CONTEXT), me, 2, Type.STRING, 1);
			send.iwait();
			equal(text, in[0], "a String to itself");
		}
	}

	@Case
	void objectsOfAllSorts() throws Exception {
		Map<String, List<Integer>> map = new HashMap<>(Map.of("one", new ArrayList<>(List.of(1)), "two", new ArrayList<>(List.of(1, 2))));
		Object[] objects = {Tree.of(6, 1), map, 17, 2.5, Parcels.Colour.GREEN, Parcels.Colour.RED, new java.util.BitSet(), Integer.class, int.class,
				List.of("immutable"), new ArrayList<>(Arrays.asList(null, "x"))};
		for (int round = 0; round < 3; round++)
			for (Object object : objects)
				equal(object, swap(object, 3), "an object");
		Parcels.Derived derived = (Parcels.Derived) swap(new Parcels.Derived("me", "x", new int[] {1, 2}, new String[][] {{"y"}}), 4);
		equal("me", derived.name, "a field of the superclass");
		check(Arrays.equals((int[]) derived.content[1], new int[] {1, 2}) && derived.colour.value() == 2, "its content");
		Parcels.External external = new Parcels.External();
		external.value = 42;
		equal(42, ((Parcels.External) swap(external, 5)).value, "an Externalizable");
		Object proxy = Proxy.newProxyInstance(getClass().getClassLoader(), new Class<?>[] {Parcels.Speaker.class}, new Parcels.Speech());
		equal("hello you", ((Parcels.Speaker) swap(proxy, 6)).speak("you"), "a proxy");
	}

	@Case
	void arraysOfObjects() {
		Object[] out = new Object[10];
		for (int i = 0; i < out.length; i++)
			out[i] = i % 3 == 0 ? null : i % 3 == 1 ? "text " + i : Tree.of(3, i);
		out[8] = out[2]; /* the same object, not another that is equal */
		Request send = dev.isend(out, 1, 8, ids[1 - me], 7, CONTEXT);
		checkStatus(dev.probe(ids[1 - me], 7, CONTEXT), 1 - me, 7, Type.OBJECT, 8);
		Serializable[] in = new Serializable[12];
		checkStatus(dev.recv(in, 3, 9, ids[1 - me], 7, CONTEXT), 1 - me, 7, Type.OBJECT, 8);
		send.iwait();
		for (int i = 0; i < in.length; i++)
			equal(i < 3 || i > 10 ? null : out[i - 2], in[i], "element " + i);
		check(in[10] == in[4], "shared objects stay shared");
		Tree[] none = {};
		dev.isend(none, ids[me], 8, CONTEXT);
		checkStatus(dev.recv(none, ids[me], 8, CONTEXT), me, 8, Type.OBJECT, 0);
		String[][] names = {{"a"}, {"b", null}};
		dev.isend(names, ids[me], 9, CONTEXT);
		String[][] same = new String[2][];
		dev.recv(same, ids[me], 9, CONTEXT);
		check(Arrays.deepEquals(names, same), "an array of arrays of objects");
	}

	@Case
	void aLargeTree() {
		Tree tree = Tree.of(QUICK ? 14 : 17, 5);
		for (int i = 0; i < 2; i++)
			equal(tree, swap(tree, 10), "a tree");
		equal("small again", swap("small again", 10), "what follows");
	}

	/** Each of many classes is used first in a message that is received late, or never; see ObjectCodec. */
	@Case
	void descriptionsOutOfOrder() throws Exception {
		Class<?>[] types = {java.util.LinkedList.class, java.util.TreeMap.class, java.util.ArrayDeque.class, java.util.LinkedHashMap.class,
				java.util.Vector.class, java.util.Stack.class, java.util.Hashtable.class, java.util.TreeSet.class, java.util.LinkedHashSet.class,
				java.util.PriorityQueue.class, java.util.IdentityHashMap.class, java.util.Properties.class};
		int other = 1 - me;
		List<Request> sends = new ArrayList<>();
		for (int i = 0; i < types.length; i++)
			sends.add(dev.isend(types[i].getDeclaredConstructor().newInstance(), ids[other], 100 + i, CONTEXT));
		for (int i = 0; i < types.length; i++) /* the second time by number only */
			sends.add(dev.isend(types[i].getDeclaredConstructor().newInstance(), ids[other], 200 + i, CONTEXT));
		/* The first is dropped: received into something that it does not fit. */
		fails(() -> dev.recv(new int[1], ids[other], 100, CONTEXT), "1 object", "int");
		/* The next is received, given up. */
		Request dropped = dev.irecv(new Object[1], ids[other], 101, CONTEXT);
		dropped.free();
		check(dropped.isnull(), "nobody asks any more");
		/* A cancelled receive takes none. */
		Request cancelled = dev.irecv(new Object[1], ids[other], 999, CONTEXT);
		check(cancelled.cancel(), "unmatched");
		fails(cancelled::iwait, "cancelled");
		Object[] in = new Object[1];
		for (int i = types.length - 1; i >= 0; i--) {
			if (i % 2 == 0)
				dev.probe(ids[other], 200 + i, CONTEXT);
			dev.recv(in, i % 3 == 0 ? Device.ANY_SRC : ids[other], 200 + i, CONTEXT);
			equal(types[i], in[0].getClass(), "class " + i);
		}
		for (int i = types.length - 1; i >= 2; i--) {
			Request receive = dev.irecv(in, ids[other], 100 + i, CONTEXT);
			Status status;
			do
				status = receive.test();
			while (status == null);
			equal(types[i], in[0].getClass(), "class " + i);
		}
		for (Request send : sends)
			send.iwait();
	}

	/** The receiver's credit window is full when the classes are used first: they are described in the messages. */
	@Case
	void descriptionsWithoutCredit() throws Exception {
		Class<?>[] types = {java.util.concurrent.ConcurrentHashMap.class, java.util.concurrent.CopyOnWriteArrayList.class,
				java.util.concurrent.LinkedBlockingQueue.class, java.util.concurrent.atomic.AtomicInteger.class, java.util.Date.class};
		int fillers = 300;
		int other = 1 - me;
		List<Request> sends = new ArrayList<>();
		for (int i = 0; i < fillers; i++)
			sends.add(dev.isend(new byte[200], ids[other], 400, CONTEXT));
		for (int round = 0; round < 2; round++)
			for (int i = 0; i < types.length; i++)
				sends.add(dev.isend(types[i].getDeclaredConstructor().newInstance(), ids[other], 401 + i, CONTEXT));
		Object[] in = new Object[1];
		for (int round = 0; round < 2; round++)
			for (int i = types.length - 1; i >= 0; i--) {
				dev.recv(in, ids[other], 401 + i, CONTEXT);
				equal(types[i], in[0].getClass(), "class " + i);
			}
		for (int i = 0; i < fillers; i++)
			dev.recv(new byte[200], Device.ANY_SRC, 400, CONTEXT);
		for (Request send : sends)
			send.iwait();
	}

	@Case
	void descriptionsAreNotRepeated() {
		Tree tree = Tree.of(1, 1);
		long[] lengths = new long[3];
		for (int i = 0; i < lengths.length; i++) {
			dev.isend(tree, ids[me], 11, CONTEXT);
			lengths[i] = dev.probe(ids[me], 11, CONTEXT).bytes();
			dev.recv(new Object[1], ids[me], 11, CONTEXT);
		}
		boolean inside = Boolean.getBoolean("xxdevtest.inside"); /* the job does not let announcements leave eagerly */
		check(lengths[0] < 60 != inside, "a tree of one node takes " + lengths[0] + " bytes; its class alone takes more than 60");
		equal(lengths[0], lengths[2], "the length does not change");
	}

	@Case
	void threadsWithObjects() throws Exception {
		int rounds = QUICK ? 60 : 400;
		Task[] tasks = new Task[4];
		for (int t = 0; t < tasks.length; t++) {
			int tag = 300 + t;
			tasks[t] = Task.start(() -> {
				Random random = new Random(tag + 7L * me);
				for (int i = 0; i < rounds; i++) {
					Object out = random.nextBoolean() ? new ArrayList<>(List.of(tag, i)) : Tree.of(random.nextInt(8) + 1, i);
					Object[] in = new Object[1];
					Request receive = dev.irecv(in, i % 2 == 0 ? ids[1 - me] : Device.ANY_SRC, tag, CONTEXT);
					Request send = i % 3 == 0 ? dev.issend(out, ids[1 - me], tag, CONTEXT) : dev.isend(out, ids[1 - me], tag, CONTEXT);
					receive.iwait();
					send.iwait();
					if (in[0] instanceof Tree)
						equal(i, ((Tree) in[0]).a, "the tree of this round");
					else
						equal(List.of(tag, i), in[0], "the list of this round");
				}
			});
		}
		for (Task task : tasks)
			task.finish();
	}

	private static void onLargeStack(Task.Action action) throws Exception {
		Throwable[] failure = new Throwable[1];
		Thread thread = new Thread(null, () -> {
			try {
				action.run();
			} catch (Throwable t) {
				failure[0] = t;
			}
		}, "deep", 64 << 20);
		thread.start();
		thread.join();
		if (failure[0] != null)
			throw new AssertionError(failure[0]);
	}

	@Case
	void whatCannotBeSentOrRead() throws Exception {
		Object[] in = new Object[1];
		fails(() -> dev.send(new Parcels.NotSerializable(), ids[me], 12, CONTEXT), "send", "NotSerializable");
		fails(() -> dev.isend(List.of(new Parcels.NotSerializable()), ids[me], 12, CONTEXT), "isend", "NotSerializable");
		check(dev.iprobe(ids[me], 12, CONTEXT) == null, "nothing was sent");
		dev.isend(new Parcels.Bomb(), ids[me], 12, CONTEXT);
		fails(() -> dev.recv(in, ids[me], 12, CONTEXT), "recv from rank " + me, "it went off");
		onLargeStack(() -> {
			dev.isend(Parcels.Link.chain(900), ids[me], 12, CONTEXT);
			dev.recv(in, ids[me], 12, CONTEXT);
			dev.isend(Parcels.Link.chain(1100), ids[me], 12, CONTEXT);
			fails(() -> dev.recv(in, ids[me], 12, CONTEXT), "rejected", "nested", "xxdev.maxdepth is 1000");
		});
		fails(() -> dev.isend(Parcels.Link.chain(1000000), ids[me], 12, CONTEXT), "isend", "too deep", "-Xss");
		dev.isend("the device still works", ids[me], 12, CONTEXT);
		dev.recv(in, ids[me], 12, CONTEXT);
		equal("the device still works", in[0], "a String");
		equal(Tree.of(3, 1), swap(Tree.of(3, 1), 13), "an object");
	}
}
