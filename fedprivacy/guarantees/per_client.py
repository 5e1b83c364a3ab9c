"""Costs of single clients, which differ in steps and so in epsilon with unit "example"."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from dp_accounting import dp_event as dp
from numpy.typing import NDArray

from fedprivacy.accounting.epsilon import epsilon
from fedprivacy.accounting.events import from_json, to_json
from fedprivacy.sampling.batches import Batches

MOST_BINS = 6  # of sizes, and of participation counts


def client_events(
    batches: Batches, step: dp.DpEvent, sizes: NDArray[np.int64], answers: NDArray[np.int32]
) -> list[dict[str, Any]]:
    """The clients in groups of the same cost, each with the event of one of their records.

    If there are many sizes or participation counts, neighbouring ones share a group at the cost of its most
    expensive member: the smallest size where that matters, and the most participations.

    Args:
        batches: Draws the batches of each client.
        step: The event of a step for a batch.
        sizes: The records of each client, shape (population,).
        answers: The participations of each client, in rounds, shape (population,).

    Returns:
        `clients` (a count), `answers`, `records` (null if all sizes cost the same) and `event`.
    """
    counted = _binned(answers.astype(np.int64), upward=True)
    accounted = _binned(sizes, upward=False) if batches.by_size else np.zeros_like(sizes)
    groups, clients = np.unique(np.stack([counted, accounted]), axis=1, return_counts=True)
    return [
        group_of(batches, step, clients=number, answers=often, records=records or None)
        for (often, records), number in zip(groups.T.tolist(), clients.tolist(), strict=True)
    ]


def group_of(
    batches: Batches, step: dp.DpEvent, *, clients: int, answers: int, records: int | None
) -> dict[str, Any]:
    """One group of `client_events`.

    Args:
        batches: Draws the batches of each client.
        step: The event of a step for a batch.
        clients: The number of clients in the group.
        answers: The most participations of one of them, in rounds.
        records: The records of each, at least; None where all sizes cost the same.
    """
    # For the fewest records: at a batch size, a smaller client's record is drawn more often.
    event = dp.SelfComposedDpEvent(batches.event(step, max(records or 1, 1)), answers)
    return {"clients": clients, "answers": answers, "records": records, "event": to_json(event)}


def binned(counts: Mapping[int, int]) -> dict[int, int]:
    """The number of clients in each group of participations, as `client_events` groups them.

    Args:
        counts: The number of clients by participations.

    >>> binned({1: 7, 2: 5})
    {1: 7, 2: 5}
    """
    known = sorted(counts)
    by_participations = Counter[int]()
    for answers, end in zip(known, _binned(np.array(known), upward=True).tolist(), strict=True):
        by_participations[end] += counts[answers]
    return dict(by_participations)


def _binned(values: NDArray[np.int64], *, upward: bool) -> NDArray[np.int64]:
    """Replaces each value by the largest (`upward`) or smallest of its bin if there are many values."""
    known = np.unique(values)
    if len(known) <= MOST_BINS:
        return values
    bins = np.array_split(known, MOST_BINS)
    # The end that costs most: a group never states less than what any of its clients spent.
    ends = np.array([part[-1 if upward else 0] for part in bins])
    place = np.searchsorted(np.array([part[0] for part in bins]), values, side="right") - 1
    return ends[place]


def per_client(ledger: Mapping[str, Any]) -> dict[str, Any] | None:
    """Returns the largest, median and group epsilons of a ledger's clients, or None without groups.

    Args:
        ledger: The JSON object that `Ledger.to_json` wrote.

    Returns:
        `largest`, `median` (over clients, the upper one of two) and `groups`, sorted by `epsilon`.
    """
    if not ledger.get("clients"):
        return None
    groups = [
        {
            "epsilon": epsilon(from_json(group["event"]), ledger["delta"], ledger["adjacency"]).epsilon,
            **{key: group[key] for key in ("clients", "answers", "records")},
        }
        for group in ledger["clients"]
    ]
    groups.sort(key=lambda group: group["epsilon"])
    return {"largest": groups[-1]["epsilon"], "median": _median(groups), "groups": groups}


def _median(groups: Sequence[Mapping[str, Any]]) -> float:
    clients = np.cumsum([group["clients"] for group in groups])
    at = int(np.searchsorted(clients, clients[-1] // 2, side="right"))
    return float(groups[at]["epsilon"])


def spread(sizes: NDArray[np.int64] | None) -> dict[str, int] | None:
    """Returns clients' record counts, public where a record is the unit; None if unknown.

    Returns:
        `smallest`, `median` (the upper one of two) and `largest`.
    """
    if sizes is None or not len(sizes):
        return None
    ordered = np.sort(sizes)
    ends = {"smallest": 0, "median": len(ordered) // 2, "largest": -1}
    return {name: int(ordered[at]) for name, at in ends.items()}
