# SPDX-License-Identifier: MIT
"""Where things are: this project's jar and library, MPJ Express, and the JVM."""
import os
import re
import subprocess
import zipfile

from .errors import UserError

DEBIAN_MPJ_HOME = "/usr/share/mpj"
DEBIAN_JAVA_FOLDER = "/usr/share/java"
CONF_FILE_OF_MPJ = os.path.join("conf", "mpjexpress.conf")


def first_file(candidates):
    return next((os.path.abspath(c) for c in candidates if os.path.isfile(c)), None)


class Installation:
    """This project, either a checkout with a build folder or an installed prefix."""

    def __init__(self, script, environ):
        folder = os.path.dirname(script)
        self.is_checkout = os.path.isfile(os.path.join(folder, "lib", "ibvrun", "cli.py"))
        self.root = os.path.dirname(folder)
        self.build = environ.get("IBVDEV_BUILD") or (
            os.path.join(self.root, "build") if self.is_checkout else None)
        if self.build:
            self.build = os.path.abspath(self.build)

    def jar(self):
        """Path of ibvdev.jar, or None."""
        if self.build:
            return first_file(os.path.join(self.build, *p) for p in (("java", "ibvdev.jar"), ("ibvdev.jar",)))
        return first_file(os.path.join(self.root, "share", *p)
                          for p in (("java", "ibvdev.jar"), ("ibvdev", "ibvdev.jar")))

    def xxdev_jar(self):
        """Path of xxdev-api.jar, which lies beside ibvdev.jar, or None."""
        jar = self.jar()
        return jar and first_file([os.path.join(os.path.dirname(jar), "xxdev-api.jar")])

    def require_mpi_jar(self):
        """Path of ibvdev-mpi.jar, which lies beside ibvdev.jar."""
        folder = os.path.dirname(self.require_jar())
        jar = first_file([os.path.join(folder, "ibvdev-mpi.jar")])
        if not jar:
            raise UserError("ibvdev-mpi.jar is not in %s: %s" % (folder, "build it again" if self.build else "install the package again"))
        return jar

    def library(self):
        """Path of the libibvdev.so of a build folder; None when installed (the jar finds it)."""
        if not self.build:
            return None
        return first_file(os.path.join(self.build, *p, "libibvdev.so")
                          for p in (("native", "jni"), ("native",), ("jni",), ()))

    def version(self):
        """From the jar's manifest, else from the build definition."""
        jar = self.jar()
        found = manifest(jar).get("Implementation-Version") if jar else None
        if not found and self.is_checkout:
            with open(os.path.join(self.root, "meson.build"), encoding="utf-8") as f:
                match = re.search(r"version:\s*'([^']+)'", f.read())
            found = match.group(1) if match else None
        return found or "unknown"

    def require_jar(self):
        jar = self.jar()
        if jar:
            return jar
        if self.build:
            raise UserError("no java/ibvdev.jar in the build folder %s: build it (meson setup %s && meson "
                            "compile -C %s), or name another build folder by IBVDEV_BUILD"
                            % (self.build, self.build, self.build))
        raise UserError("ibvdev.jar is not in %s/share/java: install the package again" % self.root)


class Mpj:
    """An MPJ Express: a home with conf/mpjexpress.conf, mpj.jar, and the log4j that mpj.jar needs."""

    def __init__(self, wanted_home, environ):
        if wanted_home is not None and not os.path.isdir(wanted_home):
            raise UserError("-mpjhome %s: no such folder" % wanted_home)
        homes = [wanted_home] if wanted_home else [environ.get("MPJ_HOME"), DEBIAN_MPJ_HOME]
        homes = [os.path.abspath(h) for h in homes if h]
        self.home = next((h for h in homes if os.path.isfile(os.path.join(h, CONF_FILE_OF_MPJ))), None)
        self.folders = [os.path.join(h, "lib") for h in homes]
        if not wanted_home:
            self.folders.append(DEBIAN_JAVA_FOLDER)

    def jar(self, name, advice="install it (Debian: apt install libmpj-java), or name its folder by -mpjhome"):
        found = first_file(os.path.join(f, name) for f in self.folders)
        if not found:
            raise UserError("%s is in none of %s: %s" % (name, ", ".join(self.folders), advice))
        return found

    def found_jars(self):
        """mpj.jar and its log4j, where they are."""
        try:
            return [self.jar("mpj.jar"), self.log4j()]
        except UserError:
            return []

    def log4j(self):
        found = first_file([os.path.join(f, n) for f in self.folders + [DEBIAN_JAVA_FOLDER]
                            for n in ("log4j-1.2.jar", "log4j.jar", "log4j-1.2.17.jar", "log4j-1.2.11.jar")])
        if not found:
            raise UserError("log4j 1.2, which mpj.jar needs, is in none of %s: install it (Debian: apt install "
                            "liblog4j1.2-java)" % ", ".join(self.folders + [DEBIAN_JAVA_FOLDER]))
        return found

    def require_home(self):
        if not self.home:
            raise UserError("no MPJ Express home with %s: install it (Debian: apt install libmpj-java), or name "
                            "one by MPJ_HOME or -mpjhome" % CONF_FILE_OF_MPJ)
        return self.home


class Java:
    """A java command and its feature release."""

    def __init__(self, wanted, environ):
        self.path = self._find(wanted, environ)
        self._feature = None

    @staticmethod
    def _find(wanted, environ):
        home = environ.get("JAVA_HOME")
        if wanted:
            candidates, origin = [wanted, os.path.join(wanted, "bin", "java")], "-java " + wanted
        elif home:
            candidates, origin = [os.path.join(home, "bin", "java")], "JAVA_HOME=" + home
        else:
            folders = environ.get("PATH", os.defpath).split(os.pathsep)
            candidates, origin = [os.path.join(f or ".", "java") for f in folders], "PATH"
        for path in candidates:
            if os.path.isfile(path) and os.access(path, os.X_OK):
                return os.path.abspath(path)
        raise UserError("no java command found by %s: install a JDK (Debian: apt install default-jdk-headless) or "
                        "name one by JAVA_HOME or --java" % origin)

    def feature(self):
        """17 for JDK 17.0.15.  Read from the file release, which costs no JVM start, or asked for."""
        if self._feature is None:
            self._feature = self._from_release() or self._from_command()
        return self._feature

    def _from_release(self):
        home = os.path.dirname(os.path.dirname(os.path.realpath(self.path)))
        try:
            with open(os.path.join(home, "release"), encoding="utf-8", errors="replace") as f:
                return parse_feature(f.read(), r'^JAVA_VERSION="([^"]+)"')
        except OSError:
            return None

    def _from_command(self):
        try:
            done = subprocess.run([self.path, "-version"], stdin=subprocess.DEVNULL, capture_output=True,
                                  text=True, errors="replace", timeout=60, check=False)
        except (OSError, subprocess.TimeoutExpired) as e:
            raise UserError("%s -version: %s" % (self.path, e)) from e
        found = parse_feature(done.stderr + done.stdout, r'version "([^"]+)"')
        if not found:
            raise UserError("%s -version names no version that ibvrun understands: %s"
                            % (self.path, (done.stderr + done.stdout).strip()[:200]))
        return found


def native_options(installation, java, users, place=lambda path: path):
    """What the native library asks of the JVM, unless the user's options already set it.  place(path): where a file
    of ours is for the JVM."""
    options = []
    library = installation.library()
    if library and not any(o.startswith("-Dibvdev.library=") for o in users):
        options.append("-Dibvdev.library=" + place(library))
    if java.feature() >= 22 and not any(o.startswith("--enable-native-access") for o in users):
        options.append("--enable-native-access=ALL-UNNAMED")
    return options


def parse_feature(text, pattern):
    match = re.search(pattern, text, re.MULTILINE)
    numbers = re.findall(r"\d+", match.group(1)) if match else []
    if not numbers:
        return None
    return int(numbers[1]) if numbers[0] == "1" and len(numbers) > 1 else int(numbers[0])  # 1.8 is 8


def manifest(jar):
    """The main attributes of a jar's manifest."""
    try:
        with zipfile.ZipFile(jar) as z:
            text = z.read("META-INF/MANIFEST.MF").decode("utf-8", "replace")
    except KeyError:
        return {}
    except (OSError, zipfile.BadZipFile) as e:
        raise UserError("%s: not a readable jar: %s" % (jar, e)) from e
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\n ", "")  # long lines go on after "\n "
    main_section = text.split("\n\n", 1)[0]
    pairs = (line.split(":", 1) for line in main_section.split("\n") if ":" in line)
    return {name.strip(): value.strip() for name, value in pairs}
