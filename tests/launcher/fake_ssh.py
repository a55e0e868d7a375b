#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""In place of ssh: fake_ssh.py HOST COMMAND... runs the command on this machine, but not as a child that would die with
it, and carries its input and output; so it can be killed or stopped as a network is cut.

In the folder FAKE_SSH_FOLDER it leaves a file for every host with its own pid and that of the command.
"""
import os
import selectors
import subprocess
import sys


def main():
    host, words = sys.argv[1], sys.argv[2:]
    environ = dict(os.environ, FAKE_HOST=host)
    if host.startswith("noisy"):
        sys.stdout.write("Welcome to %s!\n" % host)
        sys.stdout.flush()
    if host.startswith("down"):
        sys.stderr.write("no route to " + host + "\n")
        return 255
    if host.startswith("bare"):
        print("python3: command not found", flush=True)
        return 127
    command = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True, env=environ,
                               cwd="/")
    path = os.path.join(os.environ["FAKE_SSH_FOLDER"], "host." + host)
    with open(path + "~", "w", encoding="ascii") as f:
        f.write("%d %d\n" % (os.getpid(), command.pid))
    os.rename(path + "~", path)
    carry(command.stdin, command.stdout)
    return command.wait()


def carry(to_command, from_command):
    with selectors.DefaultSelector() as selector:
        selector.register(0, selectors.EVENT_READ, to_command.fileno())
        selector.register(from_command.fileno(), selectors.EVENT_READ, 1)
        while True:
            for key, _ in selector.select():
                data = os.read(key.fd, 65536)
                if not data:
                    selector.unregister(key.fd)
                    if key.fd:
                        return
                    to_command.close()
                while data:
                    try:
                        data = data[os.write(key.data, data):]
                    except BrokenPipeError:
                        return


sys.exit(main())
