#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The Maven artifacts, as their user meets them: java/docs/first-message.md is replayed, with javac and with Maven.

usage: artifacts.py ROOT BUILD
"""
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import xml.etree.ElementTree
import zipfile

SECONDS = 300  # a limit for hangs
BLOCK = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.M | re.S)
PLUGINS = "/usr/share/maven-repo"
NEEDED = [os.path.join(PLUGINS, "org/apache/maven/plugins/maven-%s-plugin" % name) for name in ("compiler", "resources")]
POM = "{http://maven.apache.org/POM/4.0.0}"
SETTINGS = """<settings><localRepository>%s</localRepository>
<mirrors><mirror><id>debian</id><mirrorOf>central</mirrorOf><url>file://%s</url></mirror></mirrors></settings>"""


class Failed(Exception):
    pass


def check(true, what):
    if not true:
        raise Failed(what)


def run(command, folder, fails=False, **more):
    print("$ " + (command if isinstance(command, str) else " ".join(command)), flush=True)
    done = subprocess.run(command, shell=isinstance(command, str), cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, timeout=SECONDS, **more)
    print(done.stdout, flush=True)
    check(fails == (done.returncode != 0), "exit status %d of %s" % (done.returncode, command))
    return done.stdout


def files_of(folder):
    return sorted(os.path.relpath(os.path.join(top, name), folder) for top, _, names in os.walk(folder) for name in names)


def content(path):
    with open(path, "rb") as f:
        return f.read()


def check_same(first, second):
    """The second, made at another hour and under another umask, lacks the Javadoc."""
    names = files_of(second)
    check(len(names) > 20, "too few files: %s" % names)
    check([n for n in files_of(first) if "-javadoc" not in n] == names, "other files at the second time: %s" % names)
    for name in names:
        check(content(os.path.join(first, name)) == content(os.path.join(second, name)), "%s differs between two runs" % name)


def check_pom(path):
    root = xml.etree.ElementTree.parse(path).getroot()
    for wanted in ("description", "licenses/license/name", "scm/connection", "developers/developer/name"):
        found = root.find("/".join(POM + part for part in wanted.split("/")))
        check(found is not None and found.text, "%s has no %s" % (path, wanted))


def check_jar(path):
    with zipfile.ZipFile(path) as jar:
        names = set(jar.namelist())
        check("META-INF/LICENSE" in names, "%s has no licence" % path)
        if path.endswith("-sources.jar"):
            check(any(name.endswith(".java") for name in names), "%s has no sources" % path)
            return
        if path.endswith("-javadoc.jar"):
            check("index.html" in names, "%s has no index.html" % path)
            return
        check(b"Automatic-Module-Name: " in jar.read("META-INF/MANIFEST.MF"), "%s has no module name" % path)
        natives = [name for name in names if name.endswith(".so")]
        check(bool(natives) == ("linux-" in os.path.basename(path)), "%s has the natives %s" % (path, natives))


def check_artifacts(folder):
    for name in files_of(folder):
        path = os.path.join(folder, name)
        if name.endswith(".pom"):
            check_pom(path)
        elif name.endswith(".jar"):
            check_jar(path)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def matches(wanted, printed):
    lines = sorted(printed.splitlines())
    check(lines == sorted(wanted.splitlines()), "the guide shows other lines than %s" % lines)


class Guide:
    def __init__(self, root, folder):
        text = content(os.path.join(root, "java", "docs", "first-message.md")).decode()
        self.block = {(kind, tag): body for kind, tag, body in BLOCK.findall(text)}
        self.folder = folder
        with open(os.path.join(folder, "First.java"), "w", encoding="utf-8") as f:
            f.write(self.block["java", "First"])
        with open(os.path.join(folder, "pom.xml"), "w", encoding="utf-8") as f:
            f.write(self.block["xml", "pom.xml"])

    def shell(self, tag, env):
        return run(self.block["sh", tag], self.folder, env=env)

    def start(self, env, repository):
        """The two ranks, with the jars of one repository and a port that is free."""
        commands = self.block["sh", "start"].replace("@20000@", "@%d@" % free_port()).replace("find repository", "find " + repository)
        matches(self.block["output", ""], run(commands, self.folder, env=env))


def with_maven(guide, env):
    """Debian's Maven with Debian's plugins: the network is not used."""
    if not shutil.which("mvn") or not all(os.path.isdir(path) for path in NEEDED):
        print("Maven or its plugins are not installed (maven libmaven-compiler-plugin-java libmaven-resources-plugin-java)")
        return
    folder = guide.folder
    shutil.rmtree(os.path.join(folder, "classes"))
    os.makedirs(os.path.join(folder, ".mvn"))
    with open(os.path.join(folder, "settings.xml"), "w", encoding="utf-8") as f:
        f.write(SETTINGS % (os.path.join(folder, "local"), PLUGINS))
    with open(os.path.join(folder, ".mvn", "maven.config"), "w", encoding="utf-8") as f:
        f.write("-B -s settings.xml\n")
    guide.shell("maven", env)
    guide.start(env, "local/ibvdev")  # just what Maven has fetched


def loading(folder, env):
    """The library out of its jar: at the same time, as another user, where nothing may be executed; nothing is left."""
    jars = [name for name in files_of(folder) if name.startswith("repository/") and re.search(r"(\d|x86_64|aarch_64)\.jar$", name)]
    temporary = os.path.join(folder, "temporary")
    os.mkdir(temporary)
    os.chmod(temporary, 0o1777)
    java = ["java", "-Dibvdev.tmpdir=" + temporary, "-cp", ":".join(jars), "xdev.ibvdev.Info"]
    starts = [subprocess.Popen(java, cwd=folder, env=env, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    for start in starts:
        printed = start.communicate(timeout=SECONDS)[0]
        check(start.returncode == 0 and "native library: ibvdev.jar!/META-INF/native/" in printed, "a start of three fails: " + printed)
    gone = run([java[0], java[1] + "/none"] + java[2:], folder, fails=True, env=env)
    check("-Dibvdev.tmpdir=" in gone and temporary + "/none" in gone, "a folder that is not there: no remedy")
    if os.geteuid() == 0 and shutil.which("setpriv"):
        run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] + java, folder, env=env)
    check(not os.listdir(temporary), "left: %s" % os.listdir(temporary))
    mount = "mount -t tmpfs -o noexec none %s" % temporary
    if subprocess.run(["unshare", "-m", "sh", "-c", mount], stderr=subprocess.DEVNULL).returncode == 0:
        denied = run(["unshare", "-m", "sh", "-c", mount + ' && exec "$@"', "sh"] + java, folder, fails=True, env=env)
        check("mounted noexec? -Dibvdev.tmpdir=" in denied, "noexec is not named")


def main(root, build):
    env = {name: value for name, value in os.environ.items() if not name.startswith("IBVDEV_")}
    env["IBVDEV_BUILD"] = build
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        os.symlink(os.path.join(root, "scripts"), os.path.join(folder, "scripts"))
        guide = Guide(root, folder)
        try:
            guide.shell("artifacts", env)
            run("umask 077; scripts/packaging/maven --no-javadoc second", folder, env=dict(env, TZ="Asia/Tokyo", LC_ALL="C"))
            check_artifacts(os.path.join(folder, "repository"))
            check_same(os.path.join(folder, "repository"), os.path.join(folder, "second"))
            guide.shell("javac", env)
            guide.start(env, "repository")
            with_maven(guide, env)
            loading(folder, env)
        except (Failed, subprocess.TimeoutExpired) as e:
            print("artifacts: %s" % e)
            return 1
    return 0


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
