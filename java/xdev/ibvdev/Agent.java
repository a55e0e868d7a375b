// SPDX-License-Identifier: MIT
package xdev.ibvdev;

import java.io.IOException;
import java.io.InputStream;
import java.lang.instrument.ClassFileTransformer;
import java.lang.instrument.Instrumentation;
import java.security.ProtectionDomain;

/**
 * {@code -javaagent:ibvdev.jar}: puts the plug-in hook in the place of MPJ Express's class wherever mpj.jar stands on
 * the class path, so that it works through launchers that build the class path themselves (mpjrun), and makes
 * {@code MPI.Init} find rank and size by itself where a program's arguments do not begin with them, as in a process
 * that mpirun, mpiexec or srun has started ({@link Launched}). Other programs are not touched.
 */
public final class Agent {
	private static final String HOOK = "mpjdev/javampjdev/MPJDev";

	private Agent() {}

	/**
	 * Called by the JVM before main.
	 *
	 * @param arguments       none are known
	 * @param instrumentation the JVM's
	 * @throws IOException if the jar cannot be read
	 */
	public static void premain(String arguments, Instrumentation instrumentation) throws IOException {
		byte[] hook;
		/* A copy under a name of its own: by the class's name mpj.jar's would be found first. */
		try (InputStream in = Agent.class.getResourceAsStream("/META-INF/ibvdev/MPJDev.bytes")) {
			if (in == null)
				throw new IOException("ibvdev.jar is incomplete: META-INF/ibvdev/MPJDev.bytes is missing");
			hook = in.readAllBytes();
		}
		instrumentation.addTransformer(new ClassFileTransformer() {
			@Override
			public byte[] transform(ClassLoader loader, String name, Class<?> redefined, ProtectionDomain domain, byte[] bytes) {
				if (InitRewriter.TARGET.equals(name))
					return InitRewriter.rewrite(bytes);
				return HOOK.equals(name) ? hook : null;
			}
		});
	}
}
