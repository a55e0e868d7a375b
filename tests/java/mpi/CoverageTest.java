// SPDX-License-Identifier: MIT
package mpitest;

import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.DataInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.lang.reflect.Constructor;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Paths;
import java.util.Collections;
import java.util.HashSet;
import java.util.Set;
import java.util.TreeSet;
import java.util.jar.JarEntry;
import java.util.jar.JarFile;
import org.junit.jupiter.api.Test;

/** Every public method of our package mpi is called by a program of this folder: the calls are read from the programs' class files. */
class CoverageTest {
	/** Inherited members without an effect, which programs do not call. */
	private static final Set<String> LEFT_OUT = Set.of("finalize()V", "toString()Ljava/lang/String;");

	@Test
	void noMethodIsWithoutATest() throws Exception {
		String jar = System.getProperty("ibvdev.test.mpi");
		URL[] path = {Paths.get(jar).toUri().toURL(), Paths.get(System.getProperty("ibvdev.test.jar")).toUri().toURL(),
				Paths.get(System.getProperty("ibvdev.test.xxdev_jar")).toUri().toURL(), Paths.get(System.getProperty("ibvdev.test.mpj_jar")).toUri().toURL()};
		try (URLClassLoader loader = new URLClassLoader(path)) {
			Set<String> members = new TreeSet<>();
			for (Class<?> type : publicClasses(jar, loader)) {
				addMembers(type, members);
			}
			assertTrue(members.size() > 140, "the list of methods is too short: " + members);
			Set<String> calls = new HashSet<>();
			for (String programs : System.getProperty("java.class.path").split(java.io.File.pathSeparator)) {
				if (programs.endsWith("tests.jar")) {
					addCalls(programs, loader, calls);
				}
			}
			members.removeAll(calls);
			assertTrue(members.isEmpty(), "no program of tests/java/mpi calls:\n" + String.join("\n", members));
		}
	}

	private static Set<Class<?>> publicClasses(String jar, ClassLoader loader) throws Exception {
		Set<Class<?>> found = new HashSet<>();
		try (JarFile file = new JarFile(jar)) {
			for (JarEntry entry : Collections.list(file.entries())) {
				if (!entry.getName().endsWith(".class")) {
					continue;
				}
				Class<?> type = Class.forName(entry.getName().replace(".class", "").replace('/', '.'), false, loader);
				if (Modifier.isPublic(type.getModifiers())) {
					found.add(type);
				}
			}
		}
		return found;
	}

	private static void addMembers(Class<?> type, Set<String> members) {
		for (Method method : type.getMethods()) {
			String name = method.getName() + descriptor(method.getParameterTypes(), method.getReturnType());
			if (isOurs(method.getDeclaringClass()) && !LEFT_OUT.contains(name)) {
				members.add(first(type, name) + "." + name);
			}
		}
		for (Constructor<?> made : Modifier.isAbstract(type.getModifiers()) ? new Constructor<?>[ 0 ] : type.getConstructors()) {
			members.add(type.getName() + ".<init>" + descriptor(made.getParameterTypes(), void.class));
		}
	}

	private static boolean isOurs(Class<?> type) {
		return type != null && type.getName().startsWith("mpi.");
	}

	private static String descriptor(Class<?>[] parameters, Class<?> result) {
		return java.lang.invoke.MethodType.methodType(result, parameters).toMethodDescriptorString();
	}

	/** The name of the class furthest up that has the method: a call names any that inherits it. */
	private static String first(Class<?> type, String method) {
		String found = type.getName();
		for (Class<?> up = type; isOurs(up); up = up.getSuperclass()) {
			for (Method declared : up.getDeclaredMethods()) {
				if (method.equals(declared.getName() + descriptor(declared.getParameterTypes(), declared.getReturnType()))) {
					found = up.getName();
				}
			}
		}
		return found;
	}

	private static void addCalls(String jar, ClassLoader loader, Set<String> calls) throws Exception {
		try (JarFile file = new JarFile(jar)) {
			for (JarEntry entry : Collections.list(file.entries())) {
				if (!entry.getName().endsWith(".class")) {
					continue;
				}
				try (InputStream in = file.getInputStream(entry)) {
					addCalls(new DataInputStream(in), loader, calls);
				}
			}
		}
	}

	/** The method references of a class file's constant pool (JVM specification, section 4.4). */
	private static void addCalls(DataInputStream in, ClassLoader loader, Set<String> calls) throws IOException, ClassNotFoundException {
		in.readLong(); // magic number and version
		int count = in.readUnsignedShort();
		String[] texts = new String[count];
		int[][] pairs = new int[count][];
		Set<Integer> methods = new HashSet<>();
		for (int i = 1; i < count; i++) {
			int tag = in.readUnsignedByte();
			switch (tag) {
			case 1: // Utf8
				texts[i] = in.readUTF();
				break;
			case 5: // Long
			case 6: // Double
				in.readLong();
				i++;
				break;
			case 7: // Class
			case 8: // String
			case 16: // MethodType
			case 19: // Module
			case 20: // Package
				pairs[i] = new int[] {in.readUnsignedShort()};
				break;
			case 15: // MethodHandle
				in.readUnsignedByte();
				in.readUnsignedShort();
				break;
			default: // Integer and Float, references, NameAndType, Dynamic, InvokeDynamic
				pairs[i] = new int[] {in.readUnsignedShort(), in.readUnsignedShort()};
				if (tag == 10 || tag == 11) { // Methodref, InterfaceMethodref
					methods.add(i);
				}
				break;
			}
		}
		for (int method : methods) {
			String owner = texts[pairs[pairs[method][0]][0]].replace('/', '.');
			int[] name = pairs[pairs[method][1]];
			String member = texts[name[0]] + texts[name[1]];
			if (owner.startsWith("mpi.")) {
				calls.add((member.startsWith("<init>") ? owner : first(Class.forName(owner, false, loader), member)) + "." + member);
			}
		}
	}
}
