"""Which node serves which logical host."""

from __future__ import annotations

import time
from collections.abc import Iterable

from flwr.app import ConfigRecord, Message, RecordDict
from flwr.serverapp import Grid

from fedprivacy.errors import RunError

HOSTS_TIMEOUT = 120.0
_ANSWER_TIMEOUT = 60.0  # a node starts a process, which imports torch, before it can answer
# Flower's codes where a node is gone or too late, which may pass; they have no public names.
_ABSENT = (3, 4, 5)


def find_hosts(grid: Grid, hosts: int, timeout: float = HOSTS_TIMEOUT) -> dict[int, int]:
    """Asks every node which logical hosts it serves; the lowest node id serves a host.

    Nodes may register after the ServerApp has started, so it asks until every host has a node.

    Raises:
        RunError: if hosts have no node after `timeout` seconds, or a node cannot answer, or answers what no
            node can.
    """
    deadline = time.monotonic() + timeout
    answers: dict[int, list[int]] = {}
    while True:
        online = sorted(grid.get_node_ids())
        # A node starts a process for each answer, so nobody is asked twice; who has gone serves nothing.
        answers = {node: here for node, here in answers.items() if node in online}
        questions = [
            Message(RecordDict({"ask": ConfigRecord()}), dst_node_id=node, message_type="query")
            for node in online
            if node not in answers
        ]
        left = max(1.0, deadline - time.monotonic())
        answers |= _answers(grid.send_and_receive(questions, timeout=min(_ANSWER_TIMEOUT, left)), hosts)
        served = {host: node for node in sorted(answers, reverse=True) for host in answers[node]}
        missing = sorted(set(range(hosts)) - set(served))
        if not missing:
            return {host: served[host] for host in range(hosts)}
        if time.monotonic() > deadline:
            raise RunError(
                f"no node serves the logical hosts {missing} after {timeout:.0f} s; {len(online)} "
                f"node{' is' if len(online) == 1 else 's are'} online, {len(answers)} answered."
            )
        time.sleep(0.5)


def _answers(replies: Iterable[Message], hosts: int) -> dict[int, list[int]]:
    """What each node that answered serves."""
    answers: dict[int, list[int]] = {}
    for reply in replies:
        node = reply.metadata.src_node_id
        if reply.has_error():
            if reply.error.code in _ABSENT:
                continue
            raise RunError(f"a node cannot say which clients live there: {reply.error.reason}")
        here = _hosts_of(reply)
        if here is None or not set(here) <= set(range(hosts)):
            raise RunError(
                f"node {node} says that it serves the logical hosts {here}, of a scenario with {hosts}. It "
                "was started for another one, or runs another version."
            )
        answers[node] = here
    return answers


def _hosts_of(reply: Message) -> list[int] | None:
    """The hosts that a node names; None if its answer is none."""
    try:
        here = reply.content.config_records["hosts"]["hosts"]
    except KeyError:
        return None
    if not isinstance(here, list) or not all(type(host) is int for host in here):
        return None
    return [host for host in here if isinstance(host, int)]
