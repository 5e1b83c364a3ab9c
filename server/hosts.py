"""Which node serves which logical host."""

from __future__ import annotations

import time
from typing import cast

from flwr.app import ConfigRecord, Message, RecordDict
from flwr.serverapp import Grid

from fedprivacy.errors import RunError

HOSTS_TIMEOUT = 120.0


def find_hosts(grid: Grid, hosts: int, timeout: float = HOSTS_TIMEOUT) -> dict[int, int]:
    """Asks every node which logical hosts it serves; the lowest node id serves a host.

    Nodes may register after the ServerApp has started, so it asks until every host has a node.

    Raises:
        RunError: if hosts have no node after `timeout` seconds, or a node cannot answer.
    """
    deadline = time.monotonic() + timeout
    while True:
        served: dict[int, int] = {}
        questions = [
            Message(RecordDict({"ask": ConfigRecord()}), dst_node_id=node, message_type="query")
            for node in sorted(grid.get_node_ids(), reverse=True)
        ]
        for reply in sorted(grid.send_and_receive(questions), key=lambda m: -m.metadata.src_node_id):
            if reply.has_error():
                raise RunError(f"a node cannot say which clients live there: {reply.error.reason}")
            hosts_here = cast("list[int]", reply.content.config_records["hosts"]["hosts"])
            served |= dict.fromkeys(hosts_here, reply.metadata.src_node_id)
        missing = sorted(set(range(hosts)) - set(served))
        if not missing:
            return {host: served[host] for host in range(hosts)}
        if time.monotonic() > deadline:
            raise RunError(f"no node serves the logical hosts {missing} after {timeout:.0f} s")
        time.sleep(0.5)
