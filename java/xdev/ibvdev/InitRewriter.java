// SPDX-License-Identifier: MIT
package xdev.ibvdev;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;

/**
 * Renames {@code Init} in the class file of MPJ Express's {@code mpi.MPI} and adds a new one, which is
 * {@code return Init$ibvdev(Launched.arguments(args))}. The format is that of chapter 4 of the JVM's specification;
 * a class that is not MPJ Express's is left as it is.
 */
final class InitRewriter {
	/** The class whose file is rewritten, as class files spell it. */
	static final String TARGET = "mpi/MPI";

	private static final String NAME = "Init";
	private static final String TYPE = "([Ljava/lang/String;)[Ljava/lang/String;";
	/** MPJ Express's mpi.MPI refers to this class; Open MPI's, which has the same Init, does not. */
	private static final String MARK = "mpjdev/MPJDev";

	private static final int UTF8 = 1;
	private static final int CLASS = 7;
	private static final int METHOD = 10;
	private static final int NAME_AND_TYPE = 12;
	private static final int STATIC = 0x0008;

	/** Extra bytes of a constant by its tag; 0: there is no such tag (or, of UTF8, the length follows). */
	private static final int[] CONSTANT_BYTES = {0, 0, 0, 4, 4, 8, 8, 2, 2, 4, 4, 4, 4, 0, 0, 3, 2, 4, 4, 2, 2};
	private static final int LONG = 5;
	private static final int DOUBLE = 6;

	private final byte[] file;
	private final DataInputStream in;
	private int constants;
	private int constantsEnd;
	private int thisClass;
	private int name;
	private int type;
	private boolean marked;

	private InitRewriter(byte[] file) {
		this.file = file;
		in = new DataInputStream(new ByteArrayInputStream(file));
	}

	/**
	 * The new class file.
	 *
	 * @param file the class file of mpi.MPI
	 * @return null if it is not MPJ Express's, or has no such Init
	 */
	static byte[] rewrite(byte[] file) {
		try {
			return new InitRewriter(file).rewritten();
		} catch (IOException e) {
			return null; // cut short: the JVM reports what is wrong with it
		}
	}

	private int position() throws IOException {
		return file.length - in.available();
	}

	private byte[] rewritten() throws IOException {
		in.skipBytes(8); // magic, versions
		if (!readConstants() || !marked || name == 0 || type == 0)
			return null;
		constantsEnd = position();
		in.skipBytes(2); // access
		thisClass = in.readUnsignedShort();
		in.skipBytes(2); // super class
		in.skipBytes(2 * in.readUnsignedShort());
		skipMembers(false);
		int methods = position();
		int init = skipMembers(true);
		return init < 0 ? null : assemble(methods, init, position());
	}

	private boolean readConstants() throws IOException {
		constants = in.readUnsignedShort();
		for (int i = 1; i < constants; i++) {
			int tag = in.readUnsignedByte();
			if (tag == UTF8) {
				String text = in.readUTF();
				if (text.equals(NAME))
					name = i;
				else if (text.equals(TYPE))
					type = i;
				marked |= text.equals(MARK);
			} else if (tag >= CONSTANT_BYTES.length || CONSTANT_BYTES[tag] == 0) {
				return false;
			} else {
				in.skipBytes(CONSTANT_BYTES[tag]);
				if (tag == LONG || tag == DOUBLE)
					i++; // it takes two numbers
			}
		}
		return true;
	}

	/** Passes over the fields or the methods; gives where the name of Init's index stands, or -1. */
	private int skipMembers(boolean methods) throws IOException {
		int found = -1;
		for (int left = in.readUnsignedShort(); left > 0; left--) {
			int access = in.readUnsignedShort();
			int where = position();
			boolean ours = in.readUnsignedShort() == name & in.readUnsignedShort() == type;
			if (methods && ours && (access & STATIC) != 0)
				found = where;
			for (int attributes = in.readUnsignedShort(); attributes > 0; attributes--) {
				in.skipBytes(2);
				in.skipBytes(in.readInt());
			}
		}
		return found;
	}

	private byte[] assemble(int methods, int init, int methodsEnd) throws IOException {
		ByteArrayOutputStream bytes = new ByteArrayOutputStream(file.length + 256);
		DataOutputStream out = new DataOutputStream(bytes);
		int oldName = constants;
		int hookMethod = constants + 5;
		int oldMethod = constants + 7;
		int code = constants + 8;
		out.write(file, 0, 8);
		out.writeShort(constants + 9);
		out.write(file, 10, constantsEnd - 10);
		writeUtf8(out, NAME + "$ibvdev");
		writeUtf8(out, Launched.class.getName().replace('.', '/'));
		writeConstant(out, CLASS, constants + 1);
		writeUtf8(out, "arguments");
		writeConstant(out, NAME_AND_TYPE, constants + 3, type);
		writeConstant(out, METHOD, constants + 2, constants + 4);
		writeConstant(out, NAME_AND_TYPE, oldName, type);
		writeConstant(out, METHOD, thisClass, constants + 6);
		writeUtf8(out, "Code");
		out.write(file, constantsEnd, methods - constantsEnd);
		out.writeShort(((file[methods] & 0xff) << 8 | file[methods + 1] & 0xff) + 1);
		out.write(file, methods + 2, init - methods - 2);
		out.writeShort(oldName);
		out.write(file, init + 2, methodsEnd - init - 2);
		writeNewInit(out, file[init - 2] << 8 | file[init - 1] & 0xff, code, hookMethod, oldMethod);
		out.write(file, methodsEnd, file.length - methodsEnd);
		return bytes.toByteArray();
	}

	private void writeNewInit(DataOutputStream out, int access, int code, int hookMethod, int oldMethod) throws IOException {
		out.writeShort(access);
		out.writeShort(name);
		out.writeShort(type);
		out.writeShort(1); // attributes
		out.writeShort(code);
		out.writeInt(20);
		out.writeShort(1); // stack
		out.writeShort(1); // locals
		out.writeInt(8);
		out.writeByte(0x2a); // aload_0
		out.writeByte(0xb8); // invokestatic
		out.writeShort(hookMethod);
		out.writeByte(0xb8);
		out.writeShort(oldMethod);
		out.writeByte(0xb0); // areturn
		out.writeShort(0); // exception table
		out.writeShort(0); // attributes
	}

	private static void writeUtf8(DataOutputStream out, String text) throws IOException {
		out.writeByte(UTF8);
		out.writeShort(text.length());
		out.write(text.getBytes(StandardCharsets.US_ASCII));
	}

	private static void writeConstant(DataOutputStream out, int tag, int... indices) throws IOException {
		out.writeByte(tag);
		for (int index : indices)
			out.writeShort(index);
	}
}
