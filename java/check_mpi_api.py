#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares the package mpi of a jar with java/mpi-api.manifest, or writes that file from MPJ Express's mpj.jar.

The manifest has a line for each public member of the API's classes: its kind, class, signature, and the value of a
compile-time constant.  Members that name internal classes of MPJ Express (mpjdev) are not part of it.
"""
import argparse
import re
import subprocess
import sys

CLASSES = ("MPI Comm Intracomm Intercomm Cartcomm Graphcomm Group Datatype Op User_function Request Prequest Status "
           "Errhandler MPIException CartParms GraphParms ShiftParms").split()
# What Status and MPIException of MPJ Express inherit from mpjdev and programs use.
INHERITED = ["mpi.Status public int index", "mpi.Status public int source", "mpi.Status public int tag"]
UNCHECKED = "java.lang.RuntimeException"


def described(jar, path, names):
    """The members of classes, by class: (superclass, lines)."""
    out = subprocess.run(["javap", "-constants", "-public", "-cp", ":".join([jar] + path)] + names, check=True,
                         capture_output=True, text=True).stdout
    found = {}
    for text in re.split(r"(?m)^Compiled from .*\n", out)[1:]:
        lines = text.splitlines()
        name = re.search(r"(?:class|interface) ([\w.$]+)", lines[0]).group(1)
        parent = re.search(r" extends ([\w.$]+)", lines[0])
        members = {normal(line) for line in lines[1:] if line.startswith("  ") and line.strip() != "static {};"}
        found[name] = (parent.group(1) if parent else None, members)
    return found


def normal(line):
    """A member without what does not concern programs: final, unless it has a constant; abstract; unchecked exceptions."""
    line = re.sub(r" throws .*;", ";", line.strip())
    if " = " not in line:
        line = line.replace(" final ", " ")
    return re.sub(r" (abstract|volatile|synchronized|native) ", " ", line).rstrip(";")


def wanted(jar, path):
    found = described(jar, path, ["mpi." + name for name in CLASSES])
    lines = list(INHERITED)
    for name in CLASSES:
        lines += ["mpi.%s %s" % (name, member) for member in found["mpi." + name][1] if "mpjdev." not in member]
    return sorted(set(lines))


def members(jar, path, name, cache):
    """Of a class, and what it inherits within the package."""
    if name not in cache:
        cache.update(described(jar, path, [name]))
    parent, own = cache[name]
    if parent and parent.startswith("mpi."):
        return own | members(jar, path, parent, cache)
    return own


def missing(jar, path, manifest):
    cache = described(jar, path, ["mpi." + name for name in CLASSES])
    absent = []
    for line in manifest:
        name, member = line.split(" ", 1)
        if member not in members(jar, path, name, cache):
            absent.append(line)
    if cache["mpi.MPIException"][0] != UNCHECKED:
        absent.append("mpi.MPIException extends " + UNCHECKED)
    return absent


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="write the manifest from --express")
    parser.add_argument("--express", required=True, help="mpj.jar")
    parser.add_argument("--jar", help="the jar to be checked")
    parser.add_argument("--classpath", default="", help="what it needs")
    parser.add_argument("manifest")
    args = parser.parse_args()
    from_express = wanted(args.express, [])
    if args.write:
        with open(args.manifest, "w", encoding="utf-8") as f:
            f.write("\n".join(from_express) + "\n")
        return 0
    with open(args.manifest, encoding="utf-8") as f:
        manifest = f.read().splitlines()
    stale = sorted(set(from_express) ^ set(manifest))
    absent = missing(args.jar, args.classpath.split(":") + [args.express], manifest)
    for line in stale:
        print("the manifest and %s differ: %s" % (args.express, line))
    for line in absent:
        print("not in %s: %s" % (args.jar, line))
    return 1 if stale or absent or not manifest else 0


if __name__ == "__main__":
    sys.exit(main())
