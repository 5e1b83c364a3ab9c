"""Measures how unevenly leakage falls on records: the share of the most exposed, and the spread.

Records that are often called members by chance would rank among the most exposed. So records are ranked by
one half of the models and counted on the other half, and vice versa: chance in one half does not carry over.
The ranking uses the models' own signals. Scores are unsuitable, because an attack scores the models of one
half with the help of the other. Where nothing leaks, the records ranked first may still have many of the true
positives, for example because of rare content, but then also as many of the false alarms: both are reported.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedprivacy.attacks.released.references import Flags
from fedprivacy.attacks.released.signals import Signals

PARTS = (0.01, 0.05, 0.1)  # of the records, the most exposed
FINEST = 0.03  # width of a bin of advantages, at least
Counts = NDArray[np.int64]


@dataclass(frozen=True)
class Carried:
    """The share of an attack's success that the most exposed records carry.

    Args:
        records: So many of them.
        hits: Their share of the true positives.
        alarms: Their share of the false alarms; None where there are none.
    """

    records: int
    hits: float
    alarms: float | None

    def to_json(self) -> dict[str, Any]:
        """As a JSON object."""
        return {"records": self.records, "hits": self.hits, "alarms": self.alarms}


def carried(signals: Signals, called: Flags, members: Flags) -> tuple[Carried, ...]:
    """The shares of the most exposed 1, 5 and 10 % of records; empty for one model or without a hit.

    Args:
        signals: What models make of each record, larger for rather a member, shape (models, records).
        called: On which models each is called a member, shape (models, records).
        members: Which records each model was trained on, shape (models, records).
    """
    halves = (slice(0, None, 2), slice(1, None, 2))
    if len(called) < len(halves):
        return ()
    hits, alarms = np.zeros((2, called.shape[1]), dtype=np.int64)  # of the records ranked first, second, ...
    for half, other in (halves, halves[::-1]):
        order = np.argsort(-_apart(signals[half], members[half]), kind="stable")
        hits += (called & members)[other].sum(axis=0)[order]
        alarms += (called & ~members)[other].sum(axis=0)[order]
    if not hits.any():
        return ()
    counts = dict.fromkeys(max(1, math.floor(part * len(hits))) for part in PARTS)
    return tuple(
        Carried(
            count,
            float(hits[:count].sum() / hits.sum()),
            float(alarms[:count].sum() / alarms.sum()) if alarms.any() else None,
        )
        for count in counts
    )


def spread(hits: Counts, models: Counts, alarms: Counts, others: Counts, proved: Counts) -> dict[str, Any]:
    """A histogram of records by advantage, with the number exposed for certain.

    Bins have the width of an odd number of steps that an advantage can take, and 0 in the middle of one: else
    some would hold more of the possible values than others, and the picture would look like a comb.

    Args:
        hits: In how many models each record is called a member, of those trained on it, shape (records,).
        models: Of how many.
        alarms: In how many models without it it is called a member.
        others: Of how many.
        proved: The places of records that are exposed for certain.

    Returns:
        `edges`, one more than bins; `certain` and `others`, the records in each bin. Records that are in all
        models, or in none, are left out.
    """
    known = (models > 0) & (others > 0)
    values = hits[known] / models[known] - alarms[known] / others[known]
    certain = np.isin(np.flatnonzero(known), proved)
    width = next(_widths(max(1, int(models[0] + others[0]) // 2)))
    side = math.ceil(1 / width - 0.5)
    edges = (np.arange(2 * side + 2) - side - 0.5) * width
    sums = {
        name: np.histogram(values[group], edges)[0].tolist()
        for name, group in (("certain", certain), ("others", ~certain))
    }
    return {"edges": edges.tolist(), **sums}


def _apart(signals: Signals, members: Flags) -> Signals:
    """The distance of models with a record from those without it, in deviations, shape (records,).

    With few models the deviation is uncertain, so its variance is averaged with that of all records. A record
    without models of either kind has no score and ranks last.
    """
    sides = [inside.sum(axis=0) for inside in (members, ~members)]
    means = [
        np.where(inside, signals, 0.0).sum(axis=0) / np.maximum(count, 1)
        for inside, count in zip((members, ~members), sides, strict=True)
    ]
    squares = (signals - np.where(members, *means)) ** 2
    variance = squares.sum(axis=0) / np.maximum(len(signals) - 2, 1)
    deviation = np.sqrt((variance + variance.mean()) / 2)
    gap = (means[0] - means[1]) / np.maximum(deviation, np.finfo(float).tiny)
    return np.where(np.minimum(*sides) > 0, gap, -np.inf)


def _widths(steps: int) -> Iterator[float]:
    """Yields odd multiples of a step of rates that are wide enough for a bin."""
    return (times / steps for times in range(1, steps + 2, 2) if times / steps >= FINEST)
