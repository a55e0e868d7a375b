# SPDX-License-Identifier: MIT
"""Options that a JVM gets because it shares its machine with other ranks, unless the user's options decide."""

CPUS_TOKEN = "%IBVRUN_CPUS%"  # replaced on the node, which knows its processors (processors)
ALL_RANKS_RAM_PERCENT = 80
DEFAULT_RAM_PERCENT = 25.0    # of a JVM alone


def limits(ranks_here, bind, users):
    """Heap and processors of one of ranks_here JVMs on a machine.

    A JVM takes a quarter of the memory for its heap and a compiler or collector thread for almost every processor.
    Together the ranks of a machine shall have ALL_RANKS_RAM_PERCENT of the one and share the others.  A JVM that is
    bound sees its processors itself.
    """
    options = []
    heap = ("-Xmx", "-XX:MaxHeapSize=", "-XX:MaxRAM")
    if ranks_here * DEFAULT_RAM_PERCENT > ALL_RANKS_RAM_PERCENT and not any(o.startswith(heap) for o in users):
        options.append("-XX:MaxRAMPercentage=%.4g" % (ALL_RANKS_RAM_PERCENT / ranks_here))
    if ranks_here > 1 and bind == "none" and not any(o.startswith("-XX:ActiveProcessorCount=") for o in users):
        options.append("-XX:ActiveProcessorCount=" + CPUS_TOKEN)
    return options


def processors(argv, cpus, ranks_here):
    """argv with CPUS_TOKEN replaced.  At least two, or the JVM takes itself for a small one with a serial collector;
    left out where that would be all there are."""
    count = max(2, cpus // ranks_here)
    if count >= cpus:
        return [w for w in argv if CPUS_TOKEN not in w]
    return [w.replace(CPUS_TOKEN, str(count)) for w in argv]


def shown(argv):
    """The options that a JVM was given by us, for a text; "" if there are none."""
    ours = ("-XX:MaxRAMPercentage=", "-XX:ActiveProcessorCount=", "-XX:SharedArchiveFile=")
    return " ".join(w for w in argv if w.startswith(ours))
