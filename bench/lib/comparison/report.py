# SPDX-License-Identifier: MIT
"""The whole report of a comparison: what ran where, the tables, what they do not carry."""
import os
import platform
import subprocess

from . import plots, tables, targets
from .results import FEW_SAMPLES


def machine(cpus):
    model = platform.processor()
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as info:
            model = next((line.split(":", 1)[1].strip() for line in info if line.startswith("model name")), model)
    except OSError:
        pass
    return "%s, %d processors, Linux %s" % (model, len(cpus), platform.release().split("-")[0])


def _first_line(command, wanted=""):
    try:
        output = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=20,
                                check=False).stdout.decode(errors="replace")
    except (OSError, subprocess.SubprocessError):
        return None
    return next((" ".join(line.split()) for line in output.splitlines() if wanted in line), None)


def versions(contestants):
    """One sentence: the versions of what ran, and the JVM's collector."""
    tools = {c.key[0] for c in contestants}
    output = []
    if "java" in tools:
        collector = _first_line(
            ["sh", "-c", "java -XX:+PrintFlagsFinal -version 2>/dev/null | grep -E ' Use(Serial|Parallel|G1|Z|Shenandoah|Epsilon)GC .*= true'"], "Use")
        output.append("%s, collector %s" % (_first_line(["java", "-version"]), collector.split()[1] if collector else "unknown"))
    for tool, command, wanted in (("openmpi", ["mpirun.openmpi", "--version"], "(Open"), ("mpich", ["mpichversion"], "Version"),
                                  ("ucx", ["ucx_info", "-v"], "version")):
        line = _first_line(command, wanted) if tool in tools else None
        if line:
            output.append(line.lstrip("# ") if tool != "mpich" else "MPICH " + line.split(":", 1)[-1].strip())
    return "; ".join(output) + "." if output else ""


def warnings(results, contestants):
    """Sentences on what the tables do not carry."""
    out = []
    latency = results.whats("latency")
    counts = {state: results.samples(state, ranks=2) for state in ("near", "far")}
    if sum(counts.values()):
        out.append("Of the samples of two ranks %d were near, %d far." % (counts["near"], counts["far"]))
    for state, count in counts.items():
        if not sum(counts.values()):
            break
        thin = [c.title for c in contestants if c.key[0] != "floor" and results.thin(state, c.key, latency)
                and not results.thin("any", c.key, latency, 0)]
        if not count:
            out.append("The state \"%s\" never came while this ran: nothing is reported about it." % state)
        elif thin:
            out.append("The state \"%s\" gave some sizes fewer than %d samples of latency for %s: their ratios there are marked "
                       "and mean little." % (state, FEW_SAMPLES, ", ".join(thin)))
    if results.discarded:
        out.append("%d samples were dropped: the state changed under them, or the machine was busy." % results.discarded)
    return out


def text(results, contestants, absent, facts, as_markdown):
    """Lines.  facts: what comes first."""
    all_tables = list(tables.blocks(results, contestants, facts["processors"]))
    title, header, rows = targets.block(results)
    lines = (["# Comparison", ""] if as_markdown else []) + list(facts["lines"])
    notes = warnings(results, contestants)
    if absent:
        notes += ["Not measured: %s: %s (%s)." % (a.title, a.reason, a.remedy) for a in absent]
    lines += [""] + [("* " if as_markdown else "- ") + note for note in notes]
    lines += tables.lines(list(tables.summary(results)) + all_tables, as_markdown)
    if rows:
        lines += tables.lines([(title, header, rows)], as_markdown)
    return lines


def write(results, contestants, absent, facts, folder):
    """results.jsonl, report.md and the plots in folder; lines that name them."""
    os.makedirs(folder, exist_ok=True)
    results.write(os.path.join(folder, "results.jsonl"))
    files, problem = plots.draw(results, contestants, folder, facts["machine"])
    lines = text(results, contestants, absent, facts, True)
    for path in files:
        if path.endswith(".svg"):
            lines += ["", "![%s](%s)" % (os.path.basename(path)[:-4], os.path.basename(path))]
    with open(os.path.join(folder, "report.md"), "w", encoding="utf-8") as out:
        out.write("\n".join(lines) + "\n")
    output = ["", "in %s: report.md, results.jsonl%s" % (folder, "".join(", " + os.path.basename(f) for f in files))]
    return output + ([problem] if problem else [])
