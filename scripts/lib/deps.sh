# SPDX-License-Identifier: MIT
# Sourced by scripts/demo and scripts/test: installs what is missing from Debian, and no more.
#
#   deps_install build        what building and running needs
#   deps_install build tests  what the tests need on top
#   deps_install vm           what scripts/ibvdev-vm and its guests need
#   deps_install packaging    what makes Debian packages, and a Debian to try them in; a compiler and an emulator for arm64
#   deps_install cluster      engines that start ranks over nodes: the test suite cluster
#   deps_install bench        the peers of bench/run, and what draws its plots
#
# A requirement is met by what it provides, not by a package's name: a JDK or a Meson from
# elsewhere is as good.  Without root, sudo is used; without both, the command to run is printed.

# Daemons are not on the path of every user.
deps_has_command() { PATH=$PATH:/usr/sbin:/sbin command -v "$1" >/dev/null 2>&1; }
deps_has_library() { pkg-config --exists "$1" >/dev/null 2>&1; }

# The JDK has to have the JNI header, a bare JRE has not.
deps_has_jdk() {
	local javac
	javac=$(command -v javac 2>/dev/null) || return 1
	[ -e "$(dirname "$(dirname "$(readlink -f "$javac")")")/include/jni.h" ] || [ -e "${JAVA_HOME:-/nowhere}/include/jni.h" ]
}

deps_has_compiler() {
	deps_has_command "$1" && echo '#include <pthread.h>' | "$1" -E -x c - >/dev/null 2>&1
}

# Debian's other busybox needs libc, which an initramfs has not.
deps_has_static_busybox() {
	deps_has_command busybox && ! ldd "$(command -v busybox)" >/dev/null 2>&1
}

deps_has_libfuzzer() {
	deps_has_command clang && [ -n "$(find "$(clang -print-resource-dir)" -name 'libclang_rt.fuzzer[-.]*' -print -quit 2>/dev/null)" ]
}

# An mpicc comes with the MPI, its header with another package.
deps_has_mpi() {
	deps_has_command "mpicc.$1" && echo '#include <mpi.h>' | "mpicc.$1" -E -x c - >/dev/null 2>&1
}

# Prints the packages of one group that are missing.
deps_missing() {
	case $1 in
	build)
		deps_has_compiler cc || echo gcc libc6-dev
		deps_has_command meson || echo meson
		deps_has_command ninja || echo ninja-build
		deps_has_command pkg-config || echo pkg-config
		deps_has_command python3 || echo python3
		deps_has_library libibverbs || echo libibverbs-dev
		deps_has_library librdmacm || echo librdmacm-dev
		deps_has_jdk || echo default-jdk-headless
		[ -e /usr/share/java/mpj.jar ] || echo libmpj-java
		[ -e /usr/share/java/log4j-1.2.jar ] || echo liblog4j1.2-java
		;;
	tests)
		[ -e /usr/share/java/junit-platform-console-standalone.jar ] || echo junit5
		deps_has_library cmocka || echo libcmocka-dev
		deps_has_library ucx || echo libucx-dev libucx0
		deps_has_library libfabric || echo libfabric-dev libfabric1
		deps_has_command nm || echo binutils
		# Programs for MPJ Express: tests/launcher/test_programs.py.
		[ -e /usr/share/jmodeltest/jModelTest.jar ] || echo jmodeltest
		[ -e /usr/share/prottest/prottest.jar ] || echo prottest
		[ -e /usr/lib/phyml/bin/phyml ] || echo phyml
		# For tests/packaging.
		deps_has_command mvn || echo maven
		[ -e /usr/share/maven-repo/org/apache/maven/plugins/maven-compiler-plugin ] || echo libmaven-compiler-plugin-java
		[ -e /usr/share/maven-repo/org/apache/maven/plugins/maven-resources-plugin ] || echo libmaven-resources-plugin-java
		deps_has_command mkdocs || echo mkdocs
		deps_has_command mandoc || echo mandoc
		deps_has_libfuzzer || echo clang libclang-rt-14-dev
		deps_has_command clang-tidy || echo clang-tidy
		deps_has_command clang-format || echo clang-format
		deps_has_command autopep8 || echo python3-autopep8
		deps_has_command shfmt || echo shfmt
		;;
	vm)
		deps_has_command qemu-system-x86_64 || echo qemu-system-x86
		deps_has_static_busybox || echo busybox-static
		deps_has_command rdma || echo iproute2
		deps_has_command setpriv || echo util-linux
		deps_has_command make || echo make
		deps_has_command ibv_devices || echo ibverbs-utils
		deps_has_command rping || echo rdmacm-utils
		deps_has_command ib_send_lat || echo perftest
		[ -e /etc/libibverbs.d/rxe.driver ] || echo ibverbs-providers
		;;
	packaging)
		deps_has_command dpkg-buildpackage || echo dpkg-dev
		deps_has_command dh || echo debhelper
		deps_has_command lintian || echo lintian
		deps_has_command mmdebstrap || echo mmdebstrap
		deps_has_command unshare || echo util-linux
		deps_has_compiler aarch64-linux-gnu-gcc || echo gcc-aarch64-linux-gnu libc6-dev-arm64-cross
		deps_has_command qemu-aarch64-static || echo qemu-user-static
		;;
	cluster)
		deps_has_command ip || echo iproute2
		deps_has_command nsenter || echo util-linux
		deps_has_command sshd || echo openssh-server
		deps_has_command ssh || echo openssh-client
		deps_has_command munged || echo munge
		deps_has_command slurmctld || echo slurmctld
		deps_has_command slurmd || echo slurmd
		deps_has_command srun || echo slurm-client
		deps_has_command mpirun.openmpi || echo openmpi-bin
		deps_has_command mpiexec.hydra || echo mpich
		# Debian's Slurm opens libpmix.so, which only this package has.
		deps_has_library pmix || echo libpmix-dev
		# Where engines from PyPI go (suite cluster-long).
		python3 -c 'import ensurepip' 2>/dev/null || echo python3-venv
		;;
	bench)
		deps_has_mpi openmpi || echo libopenmpi-dev openmpi-bin
		deps_has_mpi mpich || echo libmpich-dev mpich
		deps_has_command ucx_perftest || echo ucx-utils
		deps_has_command gnuplot || echo gnuplot-nox
		;;
	*)
		echo "deps.sh: there is no group \"$1\"" >&2
		return 1
		;;
	esac
}

deps_install() {
	local group packages=() sudo=()

	for group in "$@"; do
		# shellcheck disable=SC2207 # package names have no blanks
		packages+=($(deps_missing "$group")) || return 1
	done
	[ ${#packages[@]} -eq 0 ] && return 0
	if ! deps_has_command apt-get; then
		echo "This is not a Debian system. Install what these Debian packages hold, then try again:" >&2
		echo "  ${packages[*]}" >&2
		return 1
	fi
	if [ "$(id -u)" -ne 0 ]; then
		if ! deps_has_command sudo; then
			echo "Run this as root, then try again:" >&2
			echo "  apt-get install -y --no-install-recommends ${packages[*]}" >&2
			return 1
		fi
		sudo=(sudo)
	fi
	echo "Installing from Debian: ${packages[*]}"
	# A fresh machine has no package lists, an old one stale ones: update when the first try fails.
	deps_apt "${sudo[@]}" -- "${packages[@]}" >/dev/null 2>&1 && return 0
	"${sudo[@]}" apt-get update -qq || return 1
	deps_apt "${sudo[@]}" -- "${packages[@]}"
}

# deps_apt [sudo] -- packages
# Packages of daemons start them when they are installed; policy-rc.d forbids that while ours are.
deps_apt() {
	local before=() policy=/usr/sbin/policy-rc.d status ours=

	while [ "$1" != -- ]; do
		before+=("$1")
		shift
	done
	shift
	if [ ! -e "$policy" ]; then
		ours=1
		printf '#!/bin/sh\nexit 101\n' | "${before[@]}" install -m 755 /dev/stdin "$policy" || return 1
	fi
	"${before[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
		-o DPkg::Lock::Timeout=300 "$@" </dev/null
	status=$?
	[ -z "$ours" ] || "${before[@]}" rm -f "$policy"
	return "$status"
}
