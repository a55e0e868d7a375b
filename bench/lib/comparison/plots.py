# SPDX-License-Identifier: MIT
"""SVG and PNG plots of latency and bandwidth over size, by gnuplot."""
import os
import shutil
import subprocess

from .tables import size_text

GNUPLOT_LIMIT_S = 60
COLOURS = ("#d62728", "#ff7f0e", "#1f77b4", "#2ca02c", "#9467bd", "#8c564b", "#e377c2", "#17becf", "#bcbd22", "#7f7f7f",
           "#000000", "#aec7e8", "#98df8a")
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
    ticks = ", ".join("\"%s\" %d" % (size_text(n), n) for n in sizes)
    lines = ["set title \"%s, state %s\\n{/*0.75 %s}\" noenhanced" % (op, state, machine.replace('"', "'")),
             "set logscale xy", "set xlabel \"bytes\"", "set ylabel \"%s\"" % label, "set xtics (%s) rotate by -45" % ticks,
             "set grid lc rgb \"#dddddd\"", "set key outside right noenhanced", "set bars small"]
    lines[0] = "set title \"%s, both processors %s\" noenhanced" % (op, state) if state != "any" else "set title \"%s\"" % op
    for number, (_, data) in enumerate(named):
        lines += ["$d%d << EOD" % number, *data, "EOD"]
    parts = []
    for number, (contestant, _) in enumerate(named):
        style = "lw %s dt %s lc rgb \"%s\" pt %d ps 0.4" % ("2" if contestant.ours else "1",
                                                           "2" if contestant.key[0] == "floor" else "1",
                                                           COLOURS[number % len(COLOURS)], 4 + number % 10)
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
            named = [(c, d) for c, d in named if len(d) > 1]
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
