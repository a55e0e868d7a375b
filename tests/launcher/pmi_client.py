# SPDX-License-Identifier: MIT
"""A rank that speaks the PMI-1 wire: everybody puts a value, meets the others, and prints what rank 0 and its neighbour
put.

usage: pmi_client.py [ROUNDS]; or pmi_client.py abort STATUS, which rank 1 does while the others wait
"""
import os
import socket
import sys


class Client:
    def __init__(self):
        self.rank = int(os.environ["PMI_RANK"])
        self.size = int(os.environ["PMI_SIZE"])
        self._wire = socket.socket(fileno=os.dup(int(os.environ["PMI_FD"]))).makefile("rw", newline="\n")

    def ask(self, text, answer):
        self._wire.write(text + "\n")
        self._wire.flush()
        line = self._wire.readline()
        fields = dict(w.split("=", 1) for w in line.split() if "=" in w)
        if fields.get("cmd") != answer:
            sys.exit("rank %d: asked %r, got %r" % (self.rank, text, line))
        return fields


def rounds(client, count):
    for number in range(count):
        client.ask("cmd=init pmi_version=1 pmi_subversion=1", "response_to_init")
        client.ask("cmd=get_maxes", "maxes")
        kvs = client.ask("cmd=get_my_kvsname", "my_kvsname")["kvsname"]
        put = "cmd=put kvsname=%s key=k%d value=%d-%s" % (kvs, client.rank, number, "x" * client.rank)
        client.ask(put, "put_result")
        client.ask("cmd=barrier_in", "barrier_out")
        neighbour = (client.rank + 1) % client.size
        got = [client.ask("cmd=get kvsname=%s key=k%d" % (kvs, r), "get_result")["value"] for r in (0, neighbour)]
        missing = client.ask("cmd=get kvsname=%s key=none" % kvs, "get_result")
        if got != ["%d-" % number, "%d-%s" % (number, "x" * neighbour)] or missing["rc"] != "-1":
            sys.exit("rank %d, round %d: got %s, %s" % (client.rank, number, got, missing))
        client.ask("cmd=finalize", "finalize_ack")
    print("rank %d of %d met" % (client.rank, client.size))


def main():
    client = Client()
    if sys.argv[1:2] == ["abort"]:
        client.ask("cmd=init pmi_version=1 pmi_subversion=1", "response_to_init")
        if client.rank == 1:
            client.ask("cmd=abort exitcode=%s error_msg=no_reason" % sys.argv[2], "never")
        client.ask("cmd=barrier_in", "never")
    rounds(client, int((sys.argv[1:] or ["1"])[0]))


main()
