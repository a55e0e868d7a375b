# SPDX-License-Identifier: MIT
"""What one node is to do, as files for the guest's /rig: settings (for its shell), as, job, shell."""
import os
import pwd
import shlex

from . import RigError, packages

PASSED_ON = ("PATH", "LANG", "LANGUAGE", "TERM", "JAVA_HOME", "ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS",
             "LD_LIBRARY_PATH", "CLASSPATH", "MESON_TEST_ITERATION")
RESULTS = "/run/ibvdev-vm/results"
TOOLS = "/run/ibvdev-vm/bin"


def user_record(name):
    try:
        return pwd.getpwnam(name)
    except KeyError:
        raise RigError("--user %s: there is no such user" % name) from None


def environment(options, node):
    env = {name: value for name, value in os.environ.items()
           if name in PASSED_ON or name.startswith(("IBVDEV_", "LC_"))}
    user = user_record(options.user)
    env["PATH"] = "%s:%s:/usr/local/sbin:/usr/sbin:/sbin" % (TOOLS, env.get("PATH", "/usr/local/bin:/usr/bin:/bin"))
    env.update(HOME=user.pw_dir, USER=user.pw_name, LOGNAME=user.pw_name, SHELL="/bin/sh",
               IBVDEV_TEST_NODE=str(node), IBVDEV_TEST_NODES=str(options.nodes), IBVDEV_VM="1")
    if options.results:
        env["IBVDEV_VM_RESULTS"] = RESULTS
    env.update(options.env)
    return env


def in_host_tmp(options):
    """Whether the run is about something in the host's /tmp, or wants a fresh one."""
    texts = [options.directory, *options.command, *options.env.values()]
    return any(t == "/tmp" or "/tmp/" in t for t in texts)


def as_script(options):
    """Gives a command ("$@") the user and the limits of the run."""
    user = user_record(options.user)
    lines = ["# SPDX-License-Identifier: MIT"]
    setpriv = []
    if options.memlock is not None:
        lines.append("ulimit -l %d || exit 125" % options.memlock)
        setpriv += ["--bounding-set=-ipc_lock"]  # or root would be above the limit
    elif user.pw_uid:
        lines.append("ulimit -l unlimited || exit 125")
    if user.pw_uid:
        setpriv += ["--reuid=%d" % user.pw_uid, "--regid=%d" % user.pw_gid, "--init-groups"]
    lines.append("exec %s\"$@\"" % ("setpriv --inh-caps=-all %s -- " % " ".join(setpriv) if setpriv else ""))
    return "\n".join(lines) + "\n"


def job_script(options, node, command):
    lines = ["# SPDX-License-Identifier: MIT", "unset OLDPWD SHLVL"]
    lines += ["export %s=%s" % (name, shlex.quote(value)) for name, value in sorted(environment(options, node).items())]
    lines.append("cd %s || exit 125" % shlex.quote(options.directory))
    lines.append("exec /bin/sh /run/ibvdev-vm/as %s" % " ".join(shlex.quote(word) for word in command))
    return "\n".join(lines) + "\n"


def networks(options):
    """The network devices: (name, what it is for: "rxe", "siw", "control" or "").

    With rxe0 and siw0 on one device RDMA CM would take whichever was made first, whatever the program
    meant: they get one each, and the address chooses.
    """
    links = [name for name, wanted in (("rxe", options.rxe), ("siw", options.siw)) if wanted]
    nets = [("eth%d" % i, link) for i, link in enumerate(links or [""])]
    if options.nodes == 2:
        nets.append(("eth%d" % len(nets), "control"))
    return nets


def files(options, node):
    if node == 0 or options.both:
        job = "shell" if options.shell else "yes"
    else:
        job = "no"
    settings = {
        "PURPOSE": "run", "NODE": node, "NODES": options.nodes, "JOB": job,
        "SHELL_AFTER": "yes" if options.keep and node == 0 else "no", "RESULTS": "yes" if options.results else "no",
        "HOST_TMP": "yes" if in_host_tmp(options) else "no", "NETEM": options.netem or "", "MTU": options.mtu,
        "RDMA_TOOL": packages.which("rdma"), "TC_TOOL": packages.which("tc"),  # busybox has a tc of its own
        "NETS": " ".join("%s:%s" % net for net in networks(options))}
    texts = {"settings": "".join("%s=%s\n" % (name, shlex.quote(str(value))) for name, value in settings.items()),
             "as": as_script(options),
             "shell": job_script(options, node, ["/bin/bash" if os.path.exists("/bin/bash") else "/bin/sh"])}
    if job == "yes":
        texts["job"] = job_script(options, node, options.command)
    return texts
