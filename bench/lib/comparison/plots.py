# SPDX-License-Identifier: MIT
"""SVG and PNG plots of latency and bandwidth over size, by gnuplot."""
import os
import shutil
import subprocess

from .tables import size_text

GNUPLOT_LIMIT_S = 60
# by tool, level and device; the others get grey
COLOURS = {("ibvx", "c", "ibvdev"): "#d62728", ("java", "natives", "ibvdev"): "#ff7f0e", ("java", "xxdev", "ibvdev"): "#e377c2",
           ("java", "xdev", "ibvdev"): "#bcbd22", ("java", "mpi", "ibvdev"): "#8c564b", ("java", "xdev", "niodev"): "#aec7e8",
           ("java", "mpi", "niodev"): "#1f77b4", ("java", "mpi", "smpdev"): "#17becf", ("openmpi", "c", "default"): "#2ca02c",
           ("openmpi", "c", "no CMA"): "#006400", ("mpich", "c", "default"): "#9467bd", ("ucx", "c", "default"): "#000000"}
OTHER = "#999999"
NOT_SHOWN = (("floor", "c", "memcpy"),)  # a copy within a process is no round trip
PLOTS = (("latency", "half round trip, us"), ("bandwidth", "bandwidth, GB/s"))


def _data(results, contestant, op, state):
    lines = []
    for what in results.whats(op):
        cell = results.cell(contestant.key, what, state)
        if cell and what.bytes:
            low, high = cell.quartiles()
            scale = (lambda us, n=what.bytes: n / us / 1e3) if op == "bandwidth" else (lambda us: us)
            ends = sorted((scale(low), scale(high)))
            lines.append("%d %g %g %g" % (what.bytes, scale(cell.median), *ends))
    return lines


def _script(op, label, state, named, sizes, machine):
    """(settings and data, the plot command) for gnuplot."""
    ticks = ", ".join("\"%s\" %d" % (size_text(n), n) for n in sizes if n & (n - 1) == 0)
    title = op if state == "any" else "%s, processors %s" % (op, state)
    lines = ["set title \"%s\"" % title, "set logscale xy", "set xlabel \"bytes (%s)\" noenhanced" % machine.replace('"', "'"),
             "set ylabel \"%s\"" % label, "set xtics (%s) rotate by -45" % ticks, "set grid lc rgb \"#dddddd\"",
             "set key outside right noenhanced", "set bars small"]
    parts = []
    for number, (contestant, data) in enumerate(named):
        lines += ["$d%d << EOD" % number, *data, "EOD"]
        style = "lw %d dt %d lc rgb \"%s\" pt 7 ps 0.4" % (2 if contestant.ours else 1, 2 if contestant.key[0] == "floor" else 1,
                                                           COLOURS.get(contestant.key, OTHER))
        parts.append("$d%d using 1:2:3:4 with yerrorlines %s title \"%s\"" % (number, style, contestant.title))
    return lines, "plot " + ", ".join(parts)


def draw(results, contestants, folder, machine):
    """(files that were written, what could not be done)."""
    if not shutil.which("gnuplot"):
        return [], "no plots: gnuplot is not installed (apt-get install gnuplot-nox)"
    written = []
    for op, label in PLOTS:
        for state in results.states(op):
            named = [(c, _data(results, c, op, state)) for c in contestants]
            named = [(c, d) for c, d in named if len(d) > 1 and c.key not in NOT_SHOWN]
            if not named:
                continue
            sizes = [w.bytes for w in results.whats(op) if w.bytes]
            lines, plot = _script(op, label, state, named, sizes, machine)
            for suffix, terminal in (("svg", "svg size 900,560 background \"#ffffff\" font \"sans,12\""),
                                     ("png", "png size 900,560 font \"sans,10\"")):
                path = os.path.join(folder, "%s-%s.%s" % (op, state, suffix))
                script = ["set terminal " + terminal, "set output \"%s\"" % path, *lines, plot, "unset output"]
                done = subprocess.run(["gnuplot"], input="\n".join(script) + "\n", text=True, stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT, timeout=GNUPLOT_LIMIT_S, check=False)
                if done.returncode or not os.path.exists(path):
                    return written, "gnuplot failed: " + done.stdout.strip()
                written.append(path)
    return written, None
