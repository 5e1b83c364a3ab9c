"""Figures with their confidence intervals, which say what they cover; and the intervals of proportions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from scipy.stats import beta, norm

CONFIDENCE = 0.95  # of every interval here, two-sided
TARGETS = "targets"
SEEDS = "training seeds too"


@dataclass(frozen=True)
class Figure:
    """A measured figure and its 95 % confidence interval.

    Args:
        value: What was measured.
        low: The lower end of the interval.
        high: The upper end.
        covers: Which chance the interval covers: that of the "targets" drawn, for this run as it is, or that
            of the "training seeds too".
    """

    value: float
    low: float
    high: float
    covers: str = TARGETS

    def to_json(self) -> dict[str, Any]:
        """The figure as a JSON object."""
        return {"value": self.value, "low": self.low, "high": self.high, "covers": self.covers}


def proportion_low(hits: int, trials: int, error: float) -> float:
    """The lower end for a proportion, one-sided at `error`, exact (Clopper and Pearson 1934)."""
    return float(beta.ppf(error, hits, trials - hits + 1)) if hits else 0.0


def proportion_high(hits: int, trials: int, error: float) -> float:
    """The upper end for a proportion, one-sided at `error`, exact (Clopper and Pearson 1934)."""
    return float(beta.ppf(1 - error, hits + 1, trials - hits)) if hits < trials else 1.0


def score_interval(proportion: float, trials: float) -> tuple[float, float]:
    """Wilson's score interval (1927) of a proportion out of `trials`, which need not be whole, above 0."""
    z = float(norm.isf((1 - CONFIDENCE) / 2))
    shrunk = 1 + z * z / trials
    centre = (proportion + z * z / (2 * trials)) / shrunk
    half = z / shrunk * math.sqrt(proportion * (1 - proportion) / trials + (z / (2 * trials)) ** 2)
    return max(0.0, centre - half), min(1.0, centre + half)


def difference(hits: int, trials: int, other_hits: int, other_trials: int) -> Figure:
    """The difference of two independent proportions, by the score intervals of each.

    Newcombe 1998 ("Interval estimation for the difference between independent proportions"), method 10.

    Args:
        hits: Of the first, out of `trials` (above 0).
        other_hits: Of the second, out of `other_trials` (above 0).
    """
    first, second = hits / trials, other_hits / other_trials
    low, high = score_interval(first, trials)
    other_low, other_high = score_interval(second, other_trials)
    return Figure(
        first - second,
        first - second - math.hypot(first - low, other_high - second),
        first - second + math.hypot(high - first, second - other_low),
    )
