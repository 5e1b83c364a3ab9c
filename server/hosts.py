"""Deals the logical hosts of a scenario to nodes: asks each node which it serves, and believes no single one.

A node that answers with an error, or with what no node can answer, costs itself alone. A host that several
nodes claim goes to none of them, since the server cannot know on which one its clients live: they count as
failed. What this does not stop is a node that claims hosts before their own node has come; how hosts were
dealt is therefore in the record.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from flwr.app import ConfigRecord, Message, RecordDict
from flwr.serverapp import Grid

from fedprivacy.errors import RunError
from fedprivacy.faults import REASON
from fedprivacy.printable import printable

logger = logging.getLogger(__name__)

HOSTS_TIMEOUT = 120.0
ERROR_GRACE = 15.0  # seconds in which nodes may still come, once one has answered with an error
_ANSWER_TIMEOUT = 60.0  # a node starts a process, which imports torch, before it can answer
_SHOWN = 10  # hosts, or nodes, that a message names
# Flower's codes where a node is gone or too late, which may pass; they have no public names.
_ABSENT = (3, 4, 5)


@dataclass(frozen=True)
class Dealing:
    """Which node serves which logical host.

    Args:
        hosts: How many logical hosts there are.
        nodes: For each host that is served its node.
        contested: For each host that several nodes claim these nodes; it is dealt to none of them.
        errors: For each node that could not say what it serves the reason, which may depend on its data.
    """

    hosts: int
    nodes: Mapping[int, int]
    contested: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    errors: Mapping[int, str] = field(default_factory=dict)

    @property
    def missing(self) -> list[int]:
        """The hosts that no node claims."""
        return [host for host in range(self.hosts) if host not in self.nodes and host not in self.contested]

    def fault(self, host: int) -> tuple[str, str] | None:
        """The kind of fault (`fedprivacy.faults`) and the reason of a host without a node, else None."""
        if host in self.contested:
            named = _listed(self.contested[host])
            return "contested", f"nodes {named} all say that they serve logical host {host}: it goes to none"
        if host in self.nodes:
            return None
        first = next((f" Node {node} answered: {said}" for node, said in self.errors.items()), "")
        return "no_node", f"no node serves logical host {host}.{first}"

    def to_json(self) -> dict[str, Any]:
        """How hosts were dealt, for the operator: which nodes erred may depend on their data."""
        by_node: dict[int, list[int]] = {}
        for host, node in sorted(self.nodes.items()):
            by_node.setdefault(node, []).append(host)
        return {
            "nodes": {str(node): hosts for node, hosts in sorted(by_node.items())},
            "contested": {str(host): list(map(str, nodes)) for host, nodes in self.contested.items()},
            "missing": self.missing,
            "errors": {str(node): said for node, said in self.errors.items()},
        }


def deal_hosts(grid: Grid, hosts: int, timeout: float = HOSTS_TIMEOUT) -> Dealing:
    """Asks every node which logical hosts it serves, and deals the hosts.

    Nodes may register after the ServerApp has started, so it waits until every host has a node; but no
    longer than `ERROR_GRACE` once a node has answered with an error, and not at all where all nodes are there
    from the beginning (`grid.all_here`). Hosts are then left without a node, whose clients fail.

    Args:
        grid: Flower's way to the nodes.
        hosts: How many logical hosts there are.
        timeout: Seconds to wait for nodes.

    Raises:
        RunError: no host has a node of its own, or hosts have none and no node answered with an error.
    """
    deadline = time.monotonic() + timeout
    claims: dict[int, frozenset[int]] = {}
    errors: dict[int, str] = {}
    while True:
        online = sorted(grid.get_node_ids())
        # A node starts a process for each answer, so none is asked twice; one that has gone serves nothing.
        claims = {node: here for node, here in claims.items() if node in online}
        # A reply tells by its group which node was asked, whatever node it says that it comes from.
        asked = {f"hosts/{node}": node for node in online if node not in claims and node not in errors}
        questions = [
            Message(RecordDict({"ask": ConfigRecord()}), node, "query", group_id=group)
            for group, node in asked.items()
        ]
        left = max(1.0, deadline - time.monotonic())
        replies = grid.send_and_receive(questions, timeout=min(_ANSWER_TIMEOUT, left))
        _take(replies, asked, hosts, claims, errors)
        dealing = _dealt(hosts, claims, errors)
        if not dealing.missing:
            break
        if errors:
            grace = 0.0 if getattr(grid, "all_here", False) else ERROR_GRACE
            deadline = min(deadline, time.monotonic() + grace)
        if time.monotonic() >= deadline:
            break
        time.sleep(0.5)
    if not dealing.nodes or (dealing.missing and not errors):
        raise RunError(_nobody(dealing, timeout, len(online), len(claims)))
    for host in [*dealing.contested, *dealing.missing][:_SHOWN]:
        logger.warning("%s. Its clients count as failed.", (dealing.fault(host) or ("", ""))[1])
    return dealing


def _take(
    replies: Iterable[Message],
    asked: Mapping[str, int],
    hosts: int,
    claims: dict[int, frozenset[int]],
    errors: dict[int, str],
) -> None:
    """Adds what nodes answered to their claims, or to the errors; one that is away is asked again."""
    for reply in replies:
        node = asked.get(reply.metadata.group_id)
        if node is None:
            continue  # it answers no question
        if reply.has_error():
            if reply.error.code not in _ABSENT:
                errors[node] = printable((reply.error.reason or f"Flower error {reply.error.code}")[:REASON])
            continue
        claimed = _claimed(reply, hosts)
        if claimed is None:
            errors[node] = (
                f"it says that it serves other logical hosts than there are, of a scenario with {hosts}: it "
                "was started for another one, or runs another version"
            )
        else:
            claims[node] = claimed


def _claimed(reply: Message, hosts: int) -> frozenset[int] | None:
    """The hosts that a node claims; None if no node can claim these."""
    try:
        here = reply.content.config_records["hosts"]["hosts"]
    except KeyError:
        return None
    if not isinstance(here, list) or len(here) > hosts:  # its length before what is in it
        return None
    named = frozenset(host for host in here if type(host) is int and 0 <= host < hosts)
    return named if len(named) == len(here) else None


def _dealt(hosts: int, claims: Mapping[int, frozenset[int]], errors: Mapping[int, str]) -> Dealing:
    claimants: dict[int, list[int]] = {}
    for node in sorted(claims):
        for host in claims[node]:
            claimants.setdefault(host, []).append(node)
    alone = {host: nodes[0] for host, nodes in sorted(claimants.items()) if len(nodes) == 1}
    several = {host: tuple(nodes) for host, nodes in sorted(claimants.items()) if len(nodes) > 1}
    return Dealing(hosts, alone, several, dict(errors))


def _nobody(dealing: Dealing, timeout: float, online: int, answered: int) -> str:
    """Why no round can be played."""
    if dealing.contested and not dealing.missing:
        return (
            f"{_reasons(dealing)}. Every logical host is claimed by several nodes: stop those that were "
            "started twice, or that serve none of them."
        )
    return (
        f"no node serves the logical hosts {_listed(dealing.missing)} after {timeout:.0f} s; {online} "
        f"node{' is' if online == 1 else 's are'} online, {answered} answered.{_said(dealing)}"
    )


def _reasons(dealing: Dealing) -> str:
    faults = (dealing.fault(host) for host in dealing.contested)
    return next(fault[1] for fault in faults if fault is not None)


def _said(dealing: Dealing) -> str:
    told = [f" Node {node} answered: {said}." for node, said in list(dealing.errors.items())[:_SHOWN]]
    return "".join(told)


def _listed(numbers: Iterable[int]) -> str:
    """`[1, 2]`; of many the first, and how many more."""
    known = list(numbers)
    more = f" and {len(known) - _SHOWN} more" if len(known) > _SHOWN else ""
    return f"{known[:_SHOWN]}{more}"
