# SPDX-License-Identifier: MIT
"""Which hosts, how many slots on each, and which rank goes where."""
import re
import socket
from dataclasses import dataclass, field
from typing import List, Optional

from .errors import UserError

MAX_SLOTS = 65535
MAX_EXPANDED = 1 << 20  # names that one bracket list may stand for


@dataclass
class Host:
    """One node.  slots: None where the user named none."""
    name: str
    slots: Optional[int] = None


@dataclass
class Node:
    """A host that got ranks.  number: its place in the job, 0 first; rank 0 is on node 0."""
    number: int
    name: str
    ranks: List[int] = field(default_factory=list)


def parse_list(text, origin="--hosts"):
    """a:4,b:4,node[01-03]:2,[2001:db8::1]:4 -> hosts; repeats add up."""
    hosts = []
    for word in _split(text):
        hosts += _parse_word(word, "%s %s" % (origin, text))
    if not hosts:
        raise UserError("%s \"%s\": names no host; write for example %s a:4,b:4" % (origin, text, origin))
    return _add_up(hosts)


def read_file(path, origin="--hostfile"):
    """host / host slots=4 / host:4 / host 4, one a line; # begins a comment; repeats add up."""
    try:
        with open(path, encoding="utf-8", errors="replace") as f:
            lines = f.read().splitlines()
    except OSError as e:
        raise UserError("%s %s: %s" % (origin, path, e.strerror)) from e
    hosts = []
    for number, line in enumerate(lines, 1):
        words = line.partition("#")[0].split()
        if words:
            hosts += _parse_line(words, "%s %s, line %d" % (origin, path, number))
    if not hosts:
        raise UserError("%s %s: names no host" % (origin, path))
    return _add_up(hosts)


def allocation(environ):
    """(hosts, name of the batch system) of the job that we were started in, or None."""
    nodes = environ.get("SLURM_JOB_NODELIST") or environ.get("SLURM_NODELIST")
    if nodes and environ.get("SLURM_JOB_ID"):
        return _slurm(nodes, environ), "Slurm"
    if environ.get("LSB_DJOB_HOSTFILE"):
        return read_file(environ["LSB_DJOB_HOSTFILE"], "LSB_DJOB_HOSTFILE"), "LSF"
    if environ.get("LSB_MCPU_HOSTS"):
        words = environ["LSB_MCPU_HOSTS"].split()
        pairs = [h + ":" + n for h, n in zip(words[::2], words[1::2])]
        return parse_list(",".join(pairs), "LSB_MCPU_HOSTS"), "LSF"
    if environ.get("PBS_NODEFILE"):
        return read_file(environ["PBS_NODEFILE"], "PBS_NODEFILE"), "PBS"
    return None


def place(hosts, np, map_by="slot", ppn=None):
    """Nodes with their ranks.  np: None means every slot.  Hosts that get no rank are left out.

    slot: a node is filled before the next one; node: ranks are dealt out one by one.  Where no host has
    slots given, np ranks are divided evenly.
    """
    if ppn is not None:
        hosts = [Host(h.name, ppn) for h in hosts]
    if all(h.slots is None for h in hosts):
        share, more = divmod(np if np is not None else len(hosts), len(hosts))
        hosts = [Host(h.name, share + (i < more)) for i, h in enumerate(hosts)]
    slots = [1 if h.slots is None else h.slots for h in hosts]
    total = sum(slots)
    if np is None:
        np = total
    if np > total:
        raise UserError("-np %d: the hosts have %d slots (%s); name more hosts or slots, or leave the slots out to "
                        "divide the ranks evenly" % (np, total, _shown(hosts)))
    counts = _fill(slots, np) if map_by == "slot" else _deal(slots, np)
    nodes, owners = [], []
    for host, count in zip(hosts, counts):
        if count:
            nodes.append(Node(len(nodes), host.name))
            owners.append(count)
    if map_by == "slot":
        first = 0
        for node, count in zip(nodes, owners):
            node.ranks = list(range(first, first + count))
            first += count
    else:
        _number_round_robin(nodes, owners)
    return nodes


def is_here(name):
    """Does this name mean the machine that we run on?"""
    mine = socket.gethostname()
    return name in ("localhost", "::1", mine, mine.partition(".")[0]) or name.startswith("127.")


def expand(text, origin):
    """prefix[01-03,7]suffix, several times -> names."""
    match = re.search(r"\[([0-9,-]+)\]", text)
    if not match:
        return [text]
    before, after = text[:match.start()], expand(text[match.end():], origin)
    names = []
    for part in match.group(1).split(","):
        low, dash, high = part.partition("-")
        high = high if dash else low
        if not low.isdigit() or not high.isdigit() or int(high) < int(low):
            raise UserError("%s: [%s] is not a list of numbers such as [1-3,5]" % (origin, match.group(1)))
        if (int(high) - int(low) + 1) * len(after) + len(names) > MAX_EXPANDED:
            raise UserError("%s: [%s] stands for more than %d hosts" % (origin, match.group(1), MAX_EXPANDED))
        names += ["%s%0*d%s" % (before, len(low), n, a) for n in range(int(low), int(high) + 1) for a in after]
    return names


def _split(text):
    """At commas and blanks outside of brackets."""
    return [w for w in re.split(r"[,\s]+(?![^\[]*\])", text) if w]


def _parse_word(word, origin):
    """host, host:4, node[1-3]:4, [::1]:4, ::1"""
    literal = re.fullmatch(r"((?:[^@\[\]]+@)?)\[([0-9a-fA-F:.%\w]*:[^\]]*)\](?::(.*))?", word)
    if literal:
        names, slots = [literal.group(1) + literal.group(2)], literal.group(3)
    elif word.count(":") > 1:
        names, slots = [word], None  # an IPv6 address without brackets
    else:
        name, colon, count = word.partition(":")
        names, slots = expand(name, origin), count if colon else None
    for name in names:
        if not name or name.startswith("-") or re.search(r"[\[\]'\"\\$`;&|<>()*?!\x00-\x20]", name):
            raise UserError("%s: \"%s\" is not the name or address of a host" % (origin, name))
    return [Host(n, None if slots is None else _slots(slots, origin)) for n in names]


def _parse_line(words, origin):
    slots = None
    for word in words[1:]:
        key, equals, value = word.partition("=")
        if not equals and word.isdigit():
            slots = _slots(word, origin)
        elif equals and key in ("slots", "cpu", "cpus", "count"):
            slots = _slots(value, origin)
        elif not equals or key not in ("max_slots", "max-slots"):
            raise UserError("%s: \"%s\" is not understood; a line is host, host slots=4 or host:4" % (origin, word))
    hosts = _parse_word(words[0], origin)
    return hosts if slots is None else [Host(h.name, slots) for h in hosts]


def _slots(text, origin):
    if not text.isdigit() or not 1 <= int(text) <= MAX_SLOTS:
        raise UserError("%s: %s slots: must be a whole number from 1 to %d" % (origin, text or "no", MAX_SLOTS))
    return int(text)


def _add_up(hosts):
    """One entry a name.  A name that is repeated without slots has one for each time (PBS)."""
    found, times = {}, {}
    for host in hosts:
        times[host.name] = times.get(host.name, 0) + 1
        if host.name in found:
            found[host.name] += 1 if host.slots is None else host.slots
        else:
            found[host.name] = 1 if host.slots is None else host.slots
    bare = all(h.slots is None for h in hosts) and all(n == 1 for n in times.values())
    return [Host(name, None if bare else slots) for name, slots in found.items()]


def _slurm(nodes, environ):
    names = [h.name for h in parse_list(nodes, "SLURM_JOB_NODELIST")]
    text = environ.get("SLURM_TASKS_PER_NODE") or environ.get("SLURM_JOB_CPUS_PER_NODE") or ""
    counts = []
    for word in filter(None, text.split(",")):
        match = re.fullmatch(r"(\d+)(?:\(x(\d+)\))?", word)
        if not match:
            raise UserError("SLURM_TASKS_PER_NODE=%s: not understood; name the hosts by --hosts" % text)
        counts += [int(match.group(1))] * int(match.group(2) or 1)
    if len(counts) < len(names):
        counts += [1] * (len(names) - len(counts))
    return [Host(n, c) for n, c in zip(names, counts)]


def _fill(slots, np):
    counts = []
    for s in slots:
        counts.append(min(s, np))
        np -= counts[-1]
    return counts


def _deal(slots, np):
    counts = [0] * len(slots)
    while np > 0:
        for i, s in enumerate(slots):
            if np > 0 and counts[i] < s:
                counts[i] += 1
                np -= 1
    return counts


def _number_round_robin(nodes, counts):
    rank, left = 0, list(counts)
    while any(left):
        for i, node in enumerate(nodes):
            if left[i]:
                node.ranks.append(rank)
                rank += 1
                left[i] -= 1


def _shown(hosts):
    texts = [h.name if h.slots is None else "%s:%d" % (h.name, h.slots) for h in hosts]
    return ", ".join(texts[:8]) + (", ..." if len(texts) > 8 else "")
