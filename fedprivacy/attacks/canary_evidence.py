"""Evidence from canaries against one observer: a lower bound of epsilon, a test, an estimate.

Bound and test hold whatever the scores are. The estimate is neither: it takes the scores for normal.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from fedprivacy.accounting.events import from_json
from fedprivacy.accounting.gaussian import gaussian_epsilon
from fedprivacy.attacks.curve_bound import Inverse, curve_p_value
from fedprivacy.attacks.gaussian_score_bound import ScoreMoments
from fedprivacy.attacks.one_run_epsilon import Guesses, guess, lower_bound
from fedprivacy.attacks.targets import Flags, Scores
from fedprivacy.attacks.tradeoff import TradeOff, from_event

WITHOUT_CLAIM = 1e-5  # the delta of a bound where nothing is claimed
ERROR = 0.05  # the probability of a false alarm, of all bounds and tests of an audit together
# Of the canaries, guessed in and as many guessed out: fixed before any run, and corrected for their number.
SHARES = (0.05, 0.15, 0.45)
# Of one observer: a bound and a test for each share, and the test by scores.
CHECKS = 2 * len(SHARES) + 1
LARGEST = 1e4  # above it an estimate only shows that there is next to no noise
_NINETY_FIVE = 1.96  # standard deviations


@dataclass(frozen=True)
class OneRun:
    """The bounds that guesses prove: on epsilon (`empirical`), and on the whole claim (`curve_bound`).

    Args:
        guesses: For each of `SHARES`, over all runs.
        delta: Of the claim.
        checks: How many bounds and tests there are of all observers together.
        curve: The trade-off curve of the claim; None: nothing is claimed.
    """

    guesses: tuple[Guesses, ...]
    delta: float
    checks: int
    curve: TradeOff | None

    def to_json(self) -> dict[str, Any]:
        """The largest bound of all shares, and the p-value of each, as a JSON object."""
        bounds = [lower_bound(guesses, self.delta, 1 - ERROR / self.checks) for guesses in self.guesses]
        best = max(range(len(bounds)), key=lambda at: bounds[at].epsilon)
        p_values, least = None, None
        if self.curve is not None:
            inverse = Inverse(self.curve)
            perfect = [Guesses(guesses.trials, guesses.made, guesses.made) for guesses in self.guesses]
            p_values = [curve_p_value(guesses, inverse) for guesses in self.guesses]
            least = min(curve_p_value(guesses, inverse) for guesses in perfect)
        return {
            "epsilon": bounds[best].epsilon,
            "ceiling": max(guesses.ceiling for guesses in bounds),
            "delta": self.delta,
            "confidence": 1 - ERROR,
            "checks": self.checks,
            "canaries": self.guesses[0].trials,
            "guesses": [{"made": guesses.made, "right": guesses.right} for guesses in self.guesses],
            "p_values": p_values,
            "least_p_value": least,
        }


def claimed_curve(ledger: Mapping[str, Any], observer: str) -> TradeOff | None:
    """The trade-off curve of a ledger's tightest claim for one observer, or None.

    Args:
        ledger: The JSON object that `Ledger.to_json` wrote.
        observer: "server", "participant" or "outsider".
    """
    events = [claim["event"] for claim in ledger["claims"] if claim["observer"] == observer]
    curves = [
        _curve(json.dumps(event, sort_keys=True), ledger["adjacency"])
        for event in events
        if event is not None
    ]
    return min((curve for curve in curves if curve is not None), key=lambda curve: curve.auc, default=None)


@lru_cache(maxsize=16)
def _curve(event: str, adjacency: str) -> TradeOff | None:
    """The same for two observers of the same releases; of sampled ones it takes seconds."""
    return from_event(from_json(json.loads(event)), adjacency)


def guessed(scores: Scores, present: Flags, stream: np.random.Generator) -> tuple[Guesses, ...]:
    """The guesses of one run, for each of `SHARES`.

    Args:
        scores: Larger means rather present, shape (canaries,).
        present: The coins, shape (canaries,).
        stream: Orders canaries of equal score; it knows no coins.
    """
    ranks = np.empty(len(scores))
    ranks[np.lexsort((stream.random(len(scores)), scores))] = np.arange(len(scores))
    return tuple(guess(ranks, present, each) for each in guesses_each(len(scores)))


def guesses_each(canaries: int) -> tuple[int, ...]:
    """The numbers of canaries guessed in for each of `SHARES`; as many are guessed out."""
    return tuple(max(1, round(share * canaries)) for share in SHARES)


def added(runs: Sequence[tuple[Guesses, ...]]) -> tuple[Guesses, ...]:
    """The guesses of independent runs together, each with coins of its own."""
    return tuple(sum(share[1:], start=share[0]) for share in zip(*runs, strict=True))


def estimate(moments: ScoreMoments, delta: float) -> dict[str, Any]:
    """Epsilon as Andrew et al. 2024 estimate it, as a JSON object: two normal distributions at a distance.

    Args:
        moments: Of the scores of both coins.
        delta: Of the claim, above 0.

    Returns:
        epsilon with a 95 % interval; null where it is beyond `LARGEST`, or there is nothing to compare.
    """
    n, m = moments.sizes
    if min(n, m) < 2:
        return {"epsilon": None, "low": 0.0, "high": None, "delta": delta, "distance": None}
    distance = max(0.0, moments.distance)
    if not distance < LARGEST:
        return {"epsilon": None, "low": LARGEST, "high": None, "delta": delta, "distance": None}
    spread = _NINETY_FIVE * math.sqrt(1 / n + 1 / m + distance**2 / (2 * (n + m - 2)))
    ends = (distance, max(0.0, distance - spread), distance + spread)
    epsilons = [gaussian_epsilon(delta, mu) for mu in ends]
    epsilon, low, high = (value if value <= LARGEST else None for value in epsilons)
    return {
        "epsilon": epsilon,
        "low": LARGEST if low is None else low,
        "high": high,
        "delta": delta,
        "distance": distance,
    }
