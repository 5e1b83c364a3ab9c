"""What canaries tell of one observer: a lower bound of epsilon, an estimate of it, and a verdict on the claim.

The bound holds whatever the scores are. The estimate is none: it takes the scores for normal.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedprivacy.accounting.gaussian import gaussian_epsilon
from fedprivacy.accounting.statement import printed
from fedprivacy.attacks.empirical import Guesses, guess, lower_bound
from fedprivacy.attacks.targets import Flags, Scores

ERROR = 0.05  # the probability of a false alarm, of all bounds of an audit together
# Of the canaries, guessed in and as many guessed out: fixed before any run, and corrected for their number.
SHARES = (0.05, 0.15, 0.3, 0.45)
LARGEST = 1e4  # above it an estimate says only that there is next to no noise
_NINETY_FIVE = 1.96  # standard deviations


@dataclass(frozen=True)
class OneRun:
    """What guesses prove (`empirical.lower_bound`).

    Args:
        guesses: For each of `SHARES`, over all runs.
        delta: Of the claim.
        bounds: How many bounds are told together: each of the shares, for each observer.
    """

    guesses: tuple[Guesses, ...]
    delta: float
    bounds: int

    def to_json(self) -> dict[str, Any]:
        """The largest bound of all shares, as a JSON object."""
        found = [lower_bound(one, self.delta, 1 - ERROR / self.bounds) for one in self.guesses]
        best = max(range(len(found)), key=lambda at: found[at].epsilon)
        return {
            "epsilon": found[best].epsilon,
            "ceiling": max(one.ceiling for one in found),
            "delta": self.delta,
            "confidence": 1 - ERROR,
            "bounds": self.bounds,
            "canaries": self.guesses[0].trials,
            "guesses": [{"made": one.made, "right": one.right} for one in self.guesses],
            "told": best,
        }

    @classmethod
    def of_json(cls, data: Mapping[str, Any]) -> OneRun:
        """What was stored, to be computed again."""
        guesses = (Guesses(data["canaries"], one["made"], one["right"]) for one in data["guesses"])
        return cls(tuple(guesses), data["delta"], data["bounds"])


def guessed(scores: Scores, present: Flags, stream: np.random.Generator) -> tuple[Guesses, ...]:
    """The guesses of one run, for each of `SHARES`.

    Args:
        scores: Larger means rather present, shape (canaries,).
        present: The coins, shape (canaries,).
        stream: Orders canaries of equal score; it knows no coins.
    """
    ranks = np.empty(len(scores))
    ranks[np.lexsort((stream.random(len(scores)), scores))] = np.arange(len(scores))
    return tuple(guess(ranks, present, max(1, round(share * len(scores)))) for share in SHARES)


def together(runs: Sequence[tuple[Guesses, ...]], delta: float, observers: int) -> OneRun:
    """What the guesses of independent runs prove together, each with coins of its own."""
    added = [sum(share[1:], start=share[0]) for share in zip(*runs, strict=True)]
    return OneRun(tuple(added), delta, observers * len(SHARES))


def estimate(present: Scores, absent: Scores, delta: float) -> dict[str, Any]:
    """Epsilon as Andrew et al. 2024 estimate it, as a JSON object: two normal distributions at a distance.

    Args:
        present: The scores of canaries whose coin fell so, shape (some,).
        absent: Of the others, shape (others,).
        delta: Of the claim, above 0.

    Returns:
        epsilon with a 95 % interval; null where it is beyond `LARGEST`, or there is nothing to compare.
    """
    n, m = len(present), len(absent)
    if min(n, m) < 2:
        return {"epsilon": None, "low": 0.0, "high": None, "delta": delta, "distance": None}
    variance = (present.var(ddof=1) * (n - 1) + absent.var(ddof=1) * (m - 1)) / (n + m - 2)
    apart = max(0.0, float(present.mean() - absent.mean()))
    distance = apart / math.sqrt(variance) if variance > 0 else math.inf if apart else 0.0
    if not distance < LARGEST:
        return {"epsilon": None, "low": LARGEST, "high": None, "delta": delta, "distance": None}
    spread = _NINETY_FIVE * math.sqrt(1 / n + 1 / m + distance**2 / (2 * (n + m - 2)))
    ends = (distance, max(0.0, distance - spread), distance + spread)
    found = [gaussian_epsilon(delta, mu) for mu in ends]
    epsilon, low, high = (value if value <= LARGEST else None for value in found)
    return {
        "epsilon": epsilon,
        "low": LARGEST if low is None else low,
        "high": high,
        "delta": delta,
        "distance": distance,
    }


def verdict(guarantee: Mapping[str, Any], one_run: Mapping[str, Any] | None) -> dict[str, Any]:
    """Whether a claim stands, as a JSON object: `holds` is false where it is refuted, null where nothing is known.

    Args:
        guarantee: The claim (`statement.Guarantee.to_json`).
        one_run: What was proved (`OneRun.to_json`); None: nobody guessed.
    """
    claimed = guarantee["epsilon"]
    if one_run is None:
        return _said(None, "proves nothing: an estimate is no bound; --method one-run gives one")
    low, most = one_run["epsilon"], one_run["ceiling"]
    many = f"{one_run['canaries']:,} canaries"
    at = f"epsilon = {down(low)} at delta = {one_run['delta']:g}"
    if claimed is None:
        found = f"it is at least {at}" if low > 0 else "nothing was found"
        return _said(None, f"nothing is claimed, so there is nothing to refute; {found}")
    claim = printed(claimed)
    if low > claimed:
        return _said(
            False, f"REFUTED: the claim is false. Epsilon = {claim} is claimed, and it is at least {at}"
        )
    if most <= claimed:
        return _said(
            None,
            f"proves nothing: even if every guess were right, {many} would prove no more than "
            f"{down(most)}, and epsilon = {claim} is claimed. More canaries or runs prove more",
        )
    if low <= 0:
        return _said(
            None, f"proves nothing: the guesses of {many} are no better than a claim of epsilon = 0 allows"
        )
    return _said(
        True,
        f"consistent: it is at least {at}, and epsilon = {claim} is claimed. That refutes nothing, and "
        "proves no guarantee",
    )


def down(epsilon: float) -> str:
    """A lower bound as text, rounded down.

    >>> down(1.99978), down(0.0)
    ('1.999', '0')
    """
    return f"{math.floor(epsilon * 1000) / 1000:g}"


def _said(holds: bool | None, words: str) -> dict[str, Any]:
    return {"holds": holds, "words": f"{words}."}
