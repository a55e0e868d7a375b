// SPDX-License-Identifier: MIT
package xxdevtest;

import java.io.Externalizable;
import java.io.IOException;
import java.io.ObjectInput;
import java.io.ObjectInputStream;
import java.io.ObjectOutput;
import java.io.Serializable;
import java.util.Objects;

/** Classes to send. */
final class Parcels {
	private Parcels() {}

	/** Needs an array to be read that is longer than any JVM has. */
	static final class TooBig implements Serializable {
		private static final long serialVersionUID = 1;

		private void readObject(ObjectInputStream in) throws IOException, ClassNotFoundException {
			in.defaultReadObject();
			Objects.requireNonNull(new long[Integer.MAX_VALUE]);
		}
	}

	/** A node of a binary tree with four ints, as in the benchmark of MPJ/Ibis. */
	static final class Tree implements Serializable {
		private static final long serialVersionUID = 1;
		int a;
		int b;
		int c;
		int d;
		Tree left;
		Tree right;

		static Tree of(int depth, int seed) {
			if (depth == 0)
				return null;
			Tree tree = new Tree();
			tree.a = seed;
			tree.b = seed + 1;
			tree.c = depth;
			tree.d = -seed;
			tree.left = of(depth - 1, 2 * seed);
			tree.right = of(depth - 1, 2 * seed + 1);
			return tree;
		}

		@Override
		public boolean equals(Object other) {
			if (!(other instanceof Tree))
				return false;
			Tree t = (Tree) other;
			return a == t.a && b == t.b && c == t.c && d == t.d && Objects.equals(left, t.left) && Objects.equals(right, t.right);
		}

		@Override
		public int hashCode() {
			return a;
		}
	}

	enum Colour {
		RED,
		GREEN {
			@Override
			int value() {
				return 2;
			}
		};

		int value() {
			return 1;
		}
	}

	/** Its superclass has a descriptor, too. */
	static class Base implements Serializable {
		private static final long serialVersionUID = 2;
		final String name;

		Base(String name) {
			this.name = name;
		}
	}

	static final class Derived extends Base {
		private static final long serialVersionUID = 3;
		final Object[] content;
		final Colour colour = Colour.GREEN;

		Derived(String name, Object... content) {
			super(name);
			this.content = content;
		}
	}

	/** Writes itself. */
	public static final class External implements Externalizable {
		int value;

		public External() {}

		@Override
		public void writeExternal(ObjectOutput out) throws IOException {
			out.writeInt(value);
		}

		@Override
		public void readExternal(ObjectInput in) throws IOException {
			value = in.readInt();
		}
	}

	static final class NotSerializable {}

	/** Cannot be read. */
	static final class Bomb implements Serializable {
		private static final long serialVersionUID = 4;

		private void readObject(ObjectInputStream in) throws IOException, ClassNotFoundException {
			in.defaultReadObject();
			throw new IOException("it went off");
		}
	}

	/** A list that nests as deep as it is long. */
	static final class Link implements Serializable {
		private static final long serialVersionUID = 5;
		Link next;

		static Link chain(int length) {
			Link first = null;
			for (int i = 0; i < length; i++) {
				Link link = new Link();
				link.next = first;
				first = link;
			}
			return first;
		}
	}

	/** An interface for proxies. */
	interface Speaker {
		String speak(String name);
	}

	/** Their handler. */
	static final class Speech implements java.lang.reflect.InvocationHandler, Serializable {
		private static final long serialVersionUID = 6;

		@Override
		public Object invoke(Object proxy, java.lang.reflect.Method method, Object[] args) {
			return "hello " + args[0];
		}
	}
}
