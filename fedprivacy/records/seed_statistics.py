"""The result of a comparison: means, intervals and differences over paired seeds."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from fedprivacy.documents.headline import headline
from fedprivacy.guarantees.ledger import BROKEN_OFF, broke_off
from fedprivacy.guarantees.statement import Guarantee
from fedprivacy.models.metrics.metric import Metric

_INTERVAL = (
    "95 % Student t over seeds, cut at {} (the test set is the same, its size is not in it; the finding's "
    "intervals are those of the differences, seed by seed)"
)

MOST_POINTS = 100.0  # two accuracies cannot differ by more
WIDE = 10.0  # points: an interval that reaches as far to either side may still tell a difference
MOST_SEEDS = 1000  # beyond these nobody would train


def interval_words(metric: type[Metric]) -> str:
    """What the intervals of a comparison's headline figure are, in words."""
    return _INTERVAL.format("0 and 100 %" if math.isfinite(metric.least) else "100 %")


def within_range(text: str) -> str:
    """A finding with its intervals cut at 100 points; those of earlier versions were not.

    >>> within_range("a cost of 48.7 points, 95 % interval -8.4 to 105.8 over 2 paired seeds")
    'a cost of 48.7 points, 95 % interval -8.4 to 100.0 over 2 paired seeds'
    """

    def cut(match: re.Match[str]) -> str:
        low, high = max(float(match[1]), -MOST_POINTS), min(float(match[2]), MOST_POINTS)
        return f"95 % interval {low:.1f} to {high:.1f}"

    return re.sub(r"95 % interval (-?\d+\.\d) to (-?\d+\.\d)", cut, text)


def interval(values: Sequence[float], most: float = 1.0, least: float = 0.0) -> dict[str, float | None]:
    """Mean and 95 % Student t interval over seeds, cut to [least, most]; one value has no interval.

    >>> interval([0.5, 0.5])
    {'mean': 0.5, 'low': 0.5, 'high': 0.5}
    """
    mean, half = _student(values)
    if half is None:
        return {"mean": mean, "low": None, "high": None}
    return {"mean": mean, "low": max(least, mean - half), "high": min(most, mean + half)}


def mean_curve(rounds: Sequence[Sequence[Mapping[str, Any]]]) -> list[dict[str, Any]]:
    """The learning curve of a cell: the mean headline figure over seeds, of the rounds that all have.

    Args:
        rounds: The rounds of each seed's run.

    Returns:
        `round` (the first is 1) and `accuracy`, or `score`, from the first to the last.

    >>> mean_curve([[{"round": 0, "accuracy": 0.25}], [{"round": 0, "accuracy": 0.75}]])
    [{'round': 1, 'accuracy': 0.5}]
    """
    runs = [
        {event["round"]: headline(event) for event in run if headline(event) is not None} for run in rounds
    ]
    key = "score" if any("score" in event for run in rounds for event in run) else "accuracy"
    shared = sorted(set.intersection(*map(set, runs)))
    return [{"round": at + 1, key: float(np.mean([run[at] for run in runs]))} for at in shared]


def mean_per_class(runs: Sequence[Sequence[Mapping[str, Any]] | None]) -> list[dict[str, Any]] | None:
    """The accuracy within each class, as the mean over seeds; None where a run was not evaluated.

    Args:
        runs: `final.per_class` of each seed's run; they have the same held-out records.
    """
    known = [run for run in runs if run is not None]
    if len(known) < len(runs):
        return None
    means = []
    for classes in zip(*known, strict=True):
        accuracies = [figure["accuracy"] for figure in classes]
        mean = None if None in accuracies else float(np.mean(accuracies))
        means.append({**classes[0], "accuracy": mean})
    return means


def weakest(runs: Sequence[Sequence[Mapping[str, Any]]]) -> list[Mapping[str, Any]]:
    """The guarantees of a cell: for each observer that of the seed where it is weakest.

    If a fault has ended the run of any seed, the assumption that the observer does not learn of it applies to
    all.

    Args:
        runs: The guarantees of each seed's run; an epsilon of None is no guarantee.
    """
    worst: dict[str, Mapping[str, Any]] = {}
    failed: set[str] = set()
    for guarantee in (stated for run in runs for stated in run):
        known = worst.get(guarantee["observer"])
        if known is None or _far(guarantee) > _far(known):
            worst[guarantee["observer"]] = guarantee
        if BROKEN_OFF.among(guarantee["assumptions"]):
            failed.add(guarantee["observer"])
    return [_of_failed(stated) if observer in failed else stated for observer, stated in worst.items()]


def _of_failed(guarantee: Mapping[str, Any]) -> Mapping[str, Any]:
    """The guarantee with the assumption of a run that has failed; no guarantee assumes anything."""
    if guarantee["epsilon"] is None:
        return guarantee
    stated = {name: guarantee[name] for name in Guarantee.model_fields if name != "words"}
    assumptions = tuple(broke_off(guarantee["assumptions"]))
    return Guarantee.stated(**{**stated, "assumptions": assumptions}).to_json()


def _far(guarantee: Mapping[str, Any]) -> float:
    return math.inf if guarantee["epsilon"] is None else float(guarantee["epsilon"])


@dataclass(frozen=True)
class Difference:
    """By how many percentage points one cell is better than another, over the seeds of both.

    Args:
        mean: The headline figure of the first cell over these seeds, as a share.
        minus: That of the second.
        points: Their difference, in percentage points with one decimal.
        low: The lower end of its 95 % Student t interval, likewise; None with one seed.
        high: The upper end.
        seeds: How many seeds both have.
        most: The points that a difference cannot exceed; infinite for a score, which may be an R2.
    """

    mean: float
    minus: float
    points: float
    low: float | None
    high: float | None
    seeds: int
    most: float = MOST_POINTS

    @property
    def undecided(self) -> bool:
        """Whether its interval, as it is printed, covers 0."""
        return self.low is not None and self.high is not None and self.low <= 0 <= self.high

    @property
    def vague(self) -> bool:
        """Whether its interval excludes 0 and still reaches so far that nobody can tell the size."""
        if self.low is None or self.high is None or self.undecided:
            return False
        return (self.high - self.low) / 2 > self._wide

    @property
    def seeds_needed(self) -> int | None:
        """The seeds that would tell it, scattered as these; None for one seed or no difference."""
        if self.low is None or self.high is None or not self.points:
            return None
        error = (self.high - self.low) / 2 / _quantile(self.seeds) * math.sqrt(self.seeds)
        gap, more = min(abs(self.points), self._wide), range(self.seeds, MOST_SEEDS)
        return next((n for n in more if _quantile(n) * error < gap * math.sqrt(n)), None)

    @property
    def _wide(self) -> float:
        """How far to either side an interval may reach to tell the size: half of it, or `WIDE`."""
        return max(WIDE, abs(self.points) / 2)

    @property
    def word(self) -> str:
        """Whether the second cell reaches less or more."""
        return "less" if self.points >= 0 else "more"

    def interval(self) -> str:
        """The interval in words, in the direction in which `points` is positive, cut at `most`."""
        if self.low is None or self.high is None:
            return "one seed, no interval"
        low, high = (self.low, self.high) if self.points >= 0 else (-self.high, -self.low)
        low, high = max(low, -self.most), min(high, self.most)
        return f"95 % interval {low:.1f} to {high:.1f} over {self.seeds} paired seeds"


def difference(first: Mapping[str, Any], second: Mapping[str, Any], level: float = 0.95) -> Difference | None:
    """The first cell's headline figure less the second's, paired by seed; None where they share no seed.

    Args:
        first: A cell, with `seeds` and `accuracies`, or `scores` of another task.
        second: Another.
        level: The coverage of the interval.
    """
    mine, other = (
        dict(zip(cell["seeds"], cell.get("scores") or cell["accuracies"], strict=True))
        for cell in (first, second)
    )
    shared = [seed for seed in mine if seed in other and None not in (mine[seed], other[seed])]
    if not shared:
        return None
    gap, half = _student([mine[seed] - other[seed] for seed in shared], level)
    mean, minus = (float(np.mean([run[seed] for seed in shared])) for run in (mine, other))
    low, high = (None, None) if half is None else (_points(gap - half), _points(gap + half))
    most = math.inf if first.get("scores") else MOST_POINTS
    return Difference(mean, minus, _points(gap), low, high, len(shared), most)


def _student(values: Sequence[float], level: float = 0.95) -> tuple[float, float | None]:
    """The mean, and half of its Student t interval for two or more values."""
    mean = float(np.mean(values))
    if len(values) < 2:
        return mean, None
    return mean, float(_quantile(len(values), level) * np.std(values, ddof=1) / math.sqrt(len(values)))


def _quantile(values: int, level: float = 0.95) -> float:
    """The quantile of Student's t for the mean of several values."""
    return float(scipy.stats.t.ppf((1 + level) / 2, values - 1))


def _points(share: float) -> float:
    return round(100 * share, 1) + 0.0  # no -0.0
