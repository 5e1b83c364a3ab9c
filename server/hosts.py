"""Assigns the logical hosts of a scenario to nodes by their claims, without trusting any single node.

A node that answers with an error, or with an impossible claim, costs itself alone. If several nodes claim
a host, the server cannot know on which of them its clients live. A single node that claims hosts of several
others is detectable: if there is exactly one node without which no host is contested, that node is left
out. Otherwise a contested host goes to none of its claimants, and its clients count as failed. Two nodes that
collude can still take an honest node's place, and a node that claims hosts before their own node has
registered gets them. The record therefore states the assignment.
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
from fedprivacy.io.escape import first_line
from fedprivacy.messages.faults import REASON

logger = logging.getLogger(__name__)

HOSTS_TIMEOUT = 120.0
_ANSWER_TIMEOUT = 60.0  # a node starts a process, which imports torch, before it can answer
_SHOWN = 10  # hosts, or nodes, that a message names
# Flower's codes where a node is gone or too late, which may pass; they have no public names.
_ABSENT = (3, 4, 5)


@dataclass(frozen=True)
class Dealing:
    """The assignment of logical hosts to nodes.

    Args:
        hosts: The number of logical hosts.
        nodes: For each host that is served its node.
        contested: For each host that several nodes claim these nodes; it is dealt to none of them.
        left_out: The node without which no host is contested, and the hosts that it claims.
        errors: For each node that could not state what it serves, the reason, which may depend on its data.
    """

    hosts: int
    nodes: Mapping[int, int]
    contested: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    left_out: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    errors: Mapping[int, str] = field(default_factory=dict)

    @property
    def missing(self) -> list[int]:
        """The hosts that no node claims, but for one that was left out."""
        return [host for host in range(self.hosts) if host not in self.nodes and host not in self.contested]

    @property
    def complete(self) -> bool:
        """Whether each host has a node."""
        return len(self.nodes) == self.hosts

    def fault(self, host: int) -> tuple[str, str] | None:
        """The kind of fault (`fedprivacy.messages.faults`) and reason of a host without a node, else None."""
        if host in self.nodes:
            return None
        if host in self.contested:
            return "contested", f"{self.claim(host)}, so that none of them serves it"
        reasons = [*self.exclusions(), *self.answers()]
        return "no_node", ". ".join([f"no node serves logical host {host}", *reasons[:1]])

    def claim(self, host: int) -> str:
        """The claimants of a contested host, in words."""
        return f"logical host {host} is claimed by the nodes {_listed(self.contested[host])}"

    def exclusions(self) -> list[str]:
        """The node that was left out and the reason, in words."""
        return [
            f"Node {node} was left out: it claims the logical hosts {_listed(hosts)}, other nodes claim some "
            "of them, and without it no host is claimed twice"
            for node, hosts in self.left_out.items()
        ]

    def answers(self) -> list[str]:
        """The answers of nodes with errors, in words."""
        return [f"Node {node} answered: {reason}" for node, reason in self.errors.items()]

    def to_json(self) -> dict[str, Any]:
        """The dealing of hosts, for the operator: which nodes erred may depend on their data."""
        by_node: dict[int, list[int]] = {}
        for host, node in sorted(self.nodes.items()):
            by_node.setdefault(node, []).append(host)
        return {
            "nodes": {str(node): hosts for node, hosts in sorted(by_node.items())},
            "contested": {str(host): list(map(str, nodes)) for host, nodes in self.contested.items()},
            "left_out": {str(node): list(hosts) for node, hosts in self.left_out.items()},
            "missing": self.missing,
            "errors": {str(node): reason for node, reason in self.errors.items()},
        }


def deal_hosts(grid: Grid, hosts: int, timeout: float = HOSTS_TIMEOUT) -> Dealing:
    """Requests every node's logical hosts, and assigns the hosts.

    Nodes may register after the ServerApp has started. It waits until every host has a node, or until
    the timeout; one node's answer never shortens the wait for another. Where no node can register later
    (`grid.all_here`), it ends as soon as all have answered. Hosts may then be without a node: their clients
    fail.

    Args:
        grid: Flower's way to the nodes.
        hosts: The number of logical hosts.
        timeout: Seconds to wait for nodes.

    Raises:
        RunError: no host has a node of its own, or nobody claims some hosts, no node answered with an error,
            and none was left out.
    """
    start = time.monotonic()
    deadline = start + timeout
    claims: dict[int, frozenset[int]] = {}
    errors: dict[int, str] = {}
    while True:
        online = sorted(grid.get_node_ids())
        # A node starts a process for each reply, so no node gets a second request; a lost one serves nothing.
        claims = {node: here for node, here in claims.items() if node in online}
        waiting = [node for node in online if node not in claims and node not in errors]
        # The group of a reply identifies the node that was queried, whichever node the reply names.
        groups = {f"hosts/{node}": node for node in waiting}
        questions = [
            Message(RecordDict({"ask": ConfigRecord()}), node, "query", group_id=group)
            for group, node in groups.items()
        ]
        left = max(1.0, deadline - time.monotonic())
        replies = grid.send_and_receive(questions, timeout=min(_ANSWER_TIMEOUT, left))
        _take(replies, groups, hosts, claims, errors)
        dealing = _dealt(hosts, claims, errors)
        settled = getattr(grid, "all_here", False) and len(claims) + len(errors) >= len(online)
        if dealing.complete or settled or time.monotonic() >= deadline:
            break
        time.sleep(0.5)
    if not dealing.nodes or (dealing.missing and not errors and not dealing.left_out):
        raise RunError(_refusal(dealing, time.monotonic() - start, len(online), len(claims)))
    for reason in dealing.exclusions():
        logger.warning("%s.", reason)
    for host in [*dealing.contested, *dealing.missing][:_SHOWN]:
        logger.warning("%s. Its clients count as failed.", (dealing.fault(host) or ("", ""))[1])
    return dealing


def _take(
    replies: Iterable[Message],
    groups: Mapping[str, int],
    hosts: int,
    claims: dict[int, frozenset[int]],
    errors: dict[int, str],
) -> None:
    """Adds nodes' answers to their claims, or to the errors; an absent node gets another request."""
    for reply in replies:
        node = groups.get(reply.metadata.group_id)
        if node is None:
            continue  # it answers no question
        if reply.has_error():
            if reply.error.code not in _ABSENT:
                errors[node] = first_line((reply.error.reason or f"Flower error {reply.error.code}")[:REASON])
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
    if not isinstance(here, list) or len(here) > hosts:  # check the length before the contents
        return None
    named = frozenset(host for host in here if type(host) is int and 0 <= host < hosts)
    return named if len(named) == len(here) else None


def _dealt(hosts: int, claims: Mapping[int, frozenset[int]], errors: Mapping[int, str]) -> Dealing:
    claimants = _claimants(claims)
    culprit = _culprit(claimants)
    left_out = {} if culprit is None else {culprit: tuple(sorted(claims[culprit]))}
    claimants = _claimants({node: here for node, here in claims.items() if node not in left_out})
    alone = {host: nodes[0] for host, nodes in claimants.items() if len(nodes) == 1}
    several = {host: tuple(nodes) for host, nodes in claimants.items() if len(nodes) > 1}
    return Dealing(hosts, alone, several, left_out, dict(errors))


def _claimants(claims: Mapping[int, frozenset[int]]) -> dict[int, list[int]]:
    """The claimants of each host, hosts and nodes ascending."""
    claimants: dict[int, list[int]] = {}
    for node in sorted(claims):
        for host in claims[node]:
            claimants.setdefault(host, []).append(node)
    return dict(sorted(claimants.items()))


def _culprit(claimants: Mapping[int, list[int]]) -> int | None:
    """The only node without which no host is contested; None for no such node, or several."""
    contested = [set(nodes) for nodes in claimants.values() if len(nodes) > 1]
    if not contested or any(len(nodes) > 2 for nodes in contested):
        return None
    suspects = set.intersection(*contested)
    return suspects.pop() if len(suspects) == 1 else None


def _refusal(dealing: Dealing, waited: float, online: int, answered: int) -> str:
    """Explains why no round can start, with a remedy."""
    are = "node is" if online == 1 else "nodes are"
    problems = [dealing.claim(host) for host in [*dealing.contested][:_SHOWN]]
    if len(dealing.contested) > _SHOWN:
        problems.append(f"{len(dealing.contested) - _SHOWN} more logical hosts are claimed by several nodes")
    remedies = []
    if dealing.contested:
        remedies.append("Stop the nodes that were started twice, or that do not serve these hosts.")
    if dealing.missing:
        problems.append(f"no node serves the logical hosts {_listed(dealing.missing)}")
        remedies.append(
            "Start their nodes, each with its partition-id, or set federation.hosts to how many there are."
        )
    reasons = [f"{reason}." for reason in [*dealing.exclusions(), *dealing.answers()[:_SHOWN]]]
    problem = f"{'; '.join(problems)} after {waited:.0f} s; {online} {are} online, {answered} answered."
    return " ".join([problem, *reasons, *remedies])


def _listed(numbers: Iterable[int]) -> str:
    """`[1, 2]`; of many the first, and how many more."""
    known = list(numbers)
    more = f" and {len(known) - _SHOWN} more" if len(known) > _SHOWN else ""
    return f"{known[:_SHOWN]}{more}"
