#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The C examples of README.md compile without a warning, and the program prints hello on two ranks.

usage: readme.py ROOT BUILD LIBRARY CC...
"""
import os
import re
import subprocess
import sys
import tempfile


def run(command, **more):
    print("$ " + " ".join(command), flush=True)
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **more)
    print(done.stdout, flush=True)
    return done


def main(root, build, library, cc):
    with open(os.path.join(root, "README.md"), encoding="utf-8") as f:
        blocks = re.findall(r"^```c\n(.*?)^```$", f.read(), re.M | re.S)
    if len(blocks) != 2:
        print("README.md has %d C examples, expected a program and a fragment" % len(blocks))
        return 1
    folder = os.path.dirname(os.path.abspath(library))
    with tempfile.TemporaryDirectory() as work:
        source, program = os.path.join(work, "hello.c"), os.path.join(work, "hello")
        with open(source, "w", encoding="utf-8") as f:
            f.write(blocks[0])
        built = run(cc + ["-Wall", "-Wextra", "-Werror", "-I", os.path.join(root, "native"), source, "-o", program,
                          "-L", folder, "-libvdev", "-Wl,-rpath," + folder])
        if built.returncode:
            return 1
        with open(source, "w", encoding="utf-8") as f:
            f.write("#include <ibvx.h>\nvoid fragment(struct ibvx *ep);\nvoid fragment(struct ibvx *ep)\n{\n%s}\n" % blocks[1])
        if run(cc + ["-Wall", "-Wextra", "-Werror", "-I", os.path.join(root, "native"), "-c", source, "-o", program + ".o"]).returncode:
            return 1
        job = run([os.path.join(root, "scripts", "ibvrun"), "-np", "2", "--exec", program, "{rank}", "{conf}"],
                  env=dict(os.environ, IBVDEV_BUILD=build), timeout=60)
        if job.returncode or job.stdout.strip() != 'rank 1 got "hello"':
            return 1
        alone = run([program, "0", "/no/such/file.conf"], timeout=60)
        return 0 if alone.returncode == 1 and "/no/such/file.conf" in alone.stdout else 1


if __name__ == "__main__":
    if len(sys.argv) < 5:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:]))
