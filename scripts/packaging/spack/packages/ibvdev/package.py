# SPDX-License-Identifier: MIT
from spack.package import *


class Ibvdev(MesonPackage):
    """Native message passing for Java: the package mpi, devices for MPJ Express and FastMPJ, and the C library ibvx below,
    over shared memory, InfiniBand Verbs, UCX and libfabric.

    In a checkout:

        spack repo add scripts/packaging/spack
        spack dev-build ibvdev@0.1.0
    """

    maintainers = []
    license("MIT")

    # There is no archive to download yet: spack dev-build takes the checkout.
    version("0.1.0")

    variant("java", default=True, description="the JNI library and the jars")
    variant("mpj_jar", default="/usr/share/java/mpj.jar", values=str, multi=False, when="+java",
            description="MPJ Express 0.44, against which the device for it is compiled")
    variant("verbs", default=True, description="the transport over RDMA adapters")
    variant("ucx", default=True, description="UCX, which is opened at run time")
    variant("libfabric", default=False, description="libfabric, which is opened at run time")

    depends_on("c", type="build")
    depends_on("meson@1.0.0:", type="build")
    depends_on("ninja", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("python@3.9:", type=("build", "run"))
    depends_on("rdma-core", when="+verbs")
    depends_on("java@11:", type=("build", "run"), when="+java")
    depends_on("ucx@1.12:", type="run", when="+ucx")
    depends_on("libfabric@1.14:", type="run", when="+libfabric")

    requires("platform=linux")

    def meson_args(self):
        spec = self.spec
        args = [
            "-Dtests=false",
            "-Dverbs=" + ("enabled" if spec.satisfies("+verbs") else "disabled"),
            "-Djava=" + ("enabled" if spec.satisfies("+java") else "disabled"),
        ]
        if spec.satisfies("+java"):
            args.append("-Dmpj_jar=" + spec.variants["mpj_jar"].value)
        return args

    def setup_run_environment(self, env):
        """The libraries that are opened at run time are found where the dynamic loader looks."""
        for name in ("rdma-core", "ucx", "libfabric"):
            if name in self.spec:
                for folder in self.spec[name].libs.directories:
                    env.prepend_path("LD_LIBRARY_PATH", folder)
        if self.spec.satisfies("+java"):
            for jar in ("ibvdev-mpi.jar", "ibvdev.jar", "xxdev-api.jar"):
                env.prepend_path("CLASSPATH", join_path(self.prefix.share.java, jar))
