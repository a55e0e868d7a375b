# SPDX-License-Identifier: MIT
"""UCX by its own ucx_perftest: a run is a sample, between two runs of our probe."""
import json
import os
import socket
import subprocess
import time

AGREE = 1.3
NEAR_BELOW_NS = 130
BUSY_ABOVE_NS = 600
RUN_LIMIT_S = 60
KEY = {"tool": "ucx", "level": "c"}
# our operation -> theirs, and how many times of ours their rate of messages holds
TESTS = {"latency": "tag_lat", "bandwidth": "tag_bw", "rate": "tag_bw"}


def _probe(floor, cpus, folder):
    """Half round trip of a cache line in ns."""
    path = os.path.join(folder, "probe")
    open(path, "w").close()
    subprocess.run([floor, "--only", "cacheline", "--samples", "1", "--sample-ms", "5", "--warmup", "1000", "--no-probe",
                    "--quiet", "--json", path], check=True, timeout=RUN_LIMIT_S, stdin=subprocess.DEVNULL,
                   preexec_fn=lambda: os.sched_setaffinity(0, cpus))
    with open(path, encoding="utf-8") as lines:
        return json.loads(lines.readline())["median"] * 1e3


def _free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def _perftest(test, what_bytes, window, iterations, cpus, settings):
    """us for a message (latency: half a round trip)."""
    port = str(_free_port())
    common = ["-p", port, "-v"]
    environment = {**os.environ, "UCX_WARN_UNUSED_ENV_VARS": "n", **settings}
    server = subprocess.Popen(["ucx_perftest", "-c", str(cpus[1]), *common], env=environment,
                              stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        client = ["ucx_perftest", "127.0.0.1", "-c", str(cpus[0]), *common, "-t", test, "-s", str(what_bytes),
                  "-n", str(iterations), "-w", str(max(2, iterations // 10)), "-O", str(window)]
        for _ in range(50):  # the server may not listen yet
            done = subprocess.run(client, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, timeout=RUN_LIMIT_S, check=False)
            output = done.stdout.decode(errors="replace")
            if done.returncode == 0 or "onnect" not in output:
                break
            time.sleep(0.02)
        if done.returncode:
            raise RuntimeError(output.strip() or "ucx_perftest: exit status %d" % done.returncode)
        fields = output.strip().splitlines()[-1].split(",")
        return float(fields[3]) if test == "tag_lat" else 1e6 / float(fields[7])
    finally:
        try:
            server.wait(5)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def _state(before, after):
    """The state that both probes name, or None."""
    agrees = before < AGREE * after and after < AGREE * before and before < BUSY_ABOVE_NS
    if not agrees or (before < NEAR_BELOW_NS) != (after < NEAR_BELOW_NS):
        return None
    return "near" if before < NEAR_BELOW_NS else "far"


def _measure(results, contestant, op, size, window, options, cpus, probe):
    budget_us = options.sample_ms * 1e3
    guess = 0.3 + size / 8e3
    for _ in range(options.perftest_samples):
        before = probe()
        iterations = min(1000000, max(4, int(budget_us / guess / (2 if op == "latency" else 1))))
        took = _perftest(TESTS[op], size, window, iterations, cpus, contestant.environment)
        guess = max(took, 0.01)
        after = probe()
        state = "any" if options.no_probe else _state(before, after)
        results.add({**KEY, "device": contestant.key[2], "op": op, "bytes": size, "param": 1 if op == "latency" else window, "ranks": 2,
                     "state": state or "any", "unit": "us", "values": [took] if state else [],
                     "probe_ns": (before + after) / 2, "discarded": 0 if state else 1})


def run(results, contestant, floor, section, options, cpus, folder):
    """All of a section that ucx_perftest can do; None, or what went wrong."""
    cpus = sorted(cpus or os.sched_getaffinity(0))
    if len(cpus) < 2:
        return "it needs two processors"
    try:
        for op, sizes, params in section.expanded(options):
            for size in sizes if op in TESTS else ():
                for param in params:
                    if size:  # ucx_perftest wants at least a byte
                        _measure(results, contestant, op, size, param, options, cpus,
                                 lambda: _probe(floor, cpus, folder))
    except (OSError, RuntimeError, ValueError, IndexError, subprocess.SubprocessError) as error:
        return str(error)
    return None
