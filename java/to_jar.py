#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compiles Java sources into one jar: javac into a private folder, then jar.

The folder is made anew each time, so a class whose source is gone does not stay in the jar.
"""
import argparse
import os
import shutil
import subprocess
import sys
import tempfile


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('-o', '--output', required=True)
    parser.add_argument('--classpath', default='')
    parser.add_argument('--manifest', help='attributes to add to the manifest')
    parser.add_argument('--doclint', action='store_true', help='public names must have Javadoc')
    parser.add_argument('--resource', action='append', default=[], metavar='PATH=FILE',
                        help='puts FILE into the jar as PATH')
    parser.add_argument('--library', action='append', default=[], metavar='PATH=FILE',
                        help='the same for a shared library, without its debug information')
    parser.add_argument('--objcopy', default='objcopy', help='that of the architecture of the shared library')
    parser.add_argument('--alias', action='append', default=[], metavar='PATH=CLASS',
                        help='puts the compiled file CLASS into the jar a second time, as PATH')
    parser.add_argument('--headers', help='only write the JNI headers into this folder, no jar')
    parser.add_argument('sources', nargs='+')
    return parser.parse_args()


def compile_into(folder, args):
    # -path: mpj.jar's manifest names a jar that Debian does not have in that place.
    # -serial: MPJ's exceptions have no version either.
    command = ['javac', '--release', '11', '-encoding', 'UTF-8', '-g', '-Xlint:all,-path,-serial,-options',
               '-Werror', '-implicit:none', '-proc:none', '-d', folder,
               # Concatenation by invokedynamic makes classes at run time: 10 ms of a start.
               '-XDstringConcat=inline']
    if args.doclint:
        command += ['-Xdoclint:all/public']
    if args.headers:
        command += ['-h', args.headers]
    if args.classpath:
        command += ['-cp', args.classpath]
    return subprocess.run(command + args.sources).returncode


def strip(objcopy, path):
    """Takes the debug information out: a JVM unpacks the library at each start."""
    if shutil.which(objcopy):
        subprocess.run([objcopy, '--strip-debug', path], check=True)


def main():
    args = arguments()
    with tempfile.TemporaryDirectory(prefix='ibvdev-jar-') as folder:
        status = compile_into(folder, args)
        if status or args.headers:
            return status
        aliases = [alias.replace('=', '=' + folder + '/', 1) for alias in args.alias]
        for resource in args.resource + aliases + args.library:
            path, file = resource.split('=', 1)
            target = os.path.join(folder, path)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            shutil.copyfile(file, target)
            if resource in args.library:
                strip(args.objcopy, target)
        output = os.path.abspath(args.output)
        command = ['jar', '--create', '--file', output + '.new']
        if args.manifest:
            command += ['--manifest', args.manifest]
        status = subprocess.run(command + ['-C', folder, '.']).returncode
        if status == 0:
            os.replace(output + '.new', output)
        return status


if __name__ == '__main__':
    sys.exit(main())
