#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Fails when jni-headers/ is not what javac -h makes of the sources now."""
import argparse
import filecmp
import os
import subprocess
import sys
import tempfile


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--tool', required=True)
    parser.add_argument('--classpath', required=True)
    parser.add_argument('--headers', required=True)
    parser.add_argument('sources', nargs='+')
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix='ibvdev-headers-') as fresh:
        make = ['--classpath', args.classpath, '-o', 'unused']
        status = subprocess.run([args.tool] + make + ['--headers', fresh] + args.sources).returncode
        if status:
            return status
        names = sorted(set(os.listdir(fresh)) | set(os.listdir(args.headers)))
        _, different, missing = filecmp.cmpfiles(fresh, args.headers, names, shallow=False)
    if not names or different or missing:
        print('jni-headers/ is stale: ' + ' '.join(different + missing or ['(empty)']), file=sys.stderr)
        print('refresh it with: java/to_jar.py %s --headers jni-headers java/**/*.java' % ' '.join(make),
              file=sys.stderr)
        return 1
    return 0


if __name__ == '__main__':
    sys.exit(main())
