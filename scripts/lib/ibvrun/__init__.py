# SPDX-License-Identifier: MIT
"""The launcher ibvrun, by module:

options     the command line, parsed            paths      where jars, libraries and the JVM are
devices     one plan (command lines) a device   conf       job ids, ports, conf files
spawner     starts processes (the seam)         job        supervises them to the end
output      prefixes and files                  portserver what niodev needs to start
guardian    cleans up when ibvrun is killed     cli        puts these together
"""
