# SPDX-License-Identifier: MIT
"""The launcher ibvrun, by module:

options     the command line, parsed            paths      where jars, libraries and the JVM are
hosts       hosts, slots, allocations           devices    one plan (command lines) a device
conf        job ids, ports, conf files          jvm        options of JVMs that share a machine
job         supervises a job to its end         crew       what it supervises; ranks of this machine
remote      a crew on several nodes             output     tags, files, our standard streams
guardian    cleans up when ibvrun is killed     portserver what niodev needs to start
engine      a task of another launcher          stage      files to copy to the nodes
archive     classes that JVMs map
cli         puts these together

and of its agents, which get these modules through their standard input (bootstrap):

wire        frames and the link they travel on  branch     an agent one level below
agent       the program on a node               ranks      the ranks of a node
pmi         the PMI-1 wire                      keeper     leaves nothing behind on a node
spawner     starts processes                    topology   cores and memory nodes
"""
