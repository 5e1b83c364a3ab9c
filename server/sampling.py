"""Draws the cohort of a round and cuts it into chunks: by clients, never by nodes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from fedprivacy.guarantees.ledger import Ledger
from fedprivacy.plan.privacy_plan import Plan
from fedprivacy.randomness.streams import Streams

Ids = NDArray[np.int64]


@dataclass(frozen=True)
class Chunk:
    """A part of the cohort that one node trains at once.

    Args:
        host: The logical host of all its clients.
        number: Its place within the host's part of the cohort.
        clients: Ids, sorted, shape (clients,).
    """

    host: int
    number: int
    clients: Ids


class Cut(Protocol):
    """A way to cut a cohort into chunks, as `chunks` does."""

    def __call__(self, cohort: Ids, *, hosts: int, size: int) -> Iterable[Chunk]: ...


def draw_cohort(plan: Plan, ledger: Ledger, streams: Streams, round: int) -> Ids:
    """The ids of a round's cohort, sorted; clients without participations left are not drawn."""
    # The draw is over clients. Over nodes, which hold different numbers of clients, the inclusion rate of a
    # client would not be the one that amplification by sampling assumes.
    stream = streams.cohort(round)
    eligible = ledger.eligible()
    if eligible is None:
        return plan.draw_cohort(stream, round)
    # A draw among some clients only has other rates than the plan's. No claim uses amplification then: under
    # local trust each answer is charged in full, and separated cohorts may be known to all.
    return eligible[plan.sampler.draw(len(eligible), stream, round)]


def chunks(cohort: Ids, *, hosts: int, size: int) -> Iterator[Chunk]:
    """Cuts a cohort by logical host (client id mod hosts), then into chunks of a fixed size.

    Neither depends on how many nodes or workers there are.

    Args:
        cohort: Ids, sorted, shape (cohort,).
        hosts: The number of logical hosts.
        size: The most clients of a chunk.
    """
    for host in range(hosts):
        here = cohort[cohort % hosts == host] if hosts > 1 else cohort
        for number, start in enumerate(range(0, len(here), size)):
            yield Chunk(host, number, here[start : start + size])


def one_per_node(requested: Sequence[Chunk], nodes: Mapping[int, int]) -> list[list[tuple[int, Chunk]]]:
    """Groups numbered chunks into waves of at most one per node; drops chunks without a node.

    Args:
        requested: A round's chunks, in order.
        nodes: For each logical host that is served its node.
    """
    waves: list[list[tuple[int, Chunk]]] = []
    depth: dict[int, int] = {}
    for number, chunk in enumerate(requested):
        if (node := nodes.get(chunk.host)) is None:
            continue
        wave = depth.get(node, 0)
        depth[node] = wave + 1
        if wave == len(waves):
            waves.append([])
        waves[wave].append((number, chunk))
    return waves
