"""What canaries tell of one observer: a lower bound of epsilon, a test of the claim, an estimate, a verdict.

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
from fedprivacy.accounting.statement import printed
from fedprivacy.attacks.curve_bound import Inverse, curve_p_value
from fedprivacy.attacks.empirical import Guesses, guess, lower_bound
from fedprivacy.attacks.targets import Flags, Scores
from fedprivacy.attacks.tradeoff import TradeOff, from_event

WITHOUT_CLAIM = 1e-5  # the delta of a bound where nothing is claimed
ERROR = 0.05  # the probability of a false alarm, of all bounds and tests of an audit together
# Of the canaries, guessed in and as many guessed out: fixed before any run, and corrected for their number.
SHARES = (0.05, 0.15, 0.45)
LARGEST = 1e4  # above it an estimate says only that there is next to no noise
_NINETY_FIVE = 1.96  # standard deviations


@dataclass(frozen=True)
class OneRun:
    """What guesses prove: of epsilon (`empirical`), and against all that is claimed (`curve_bound`).

    Args:
        guesses: For each of `SHARES`, over all runs.
        delta: Of the claim.
        checks: How many bounds and tests are told together: one of each for each share and observer.
        curve: The trade-off curve of the claim; None: nothing is claimed.
    """

    guesses: tuple[Guesses, ...]
    delta: float
    checks: int
    curve: TradeOff | None

    def to_json(self) -> dict[str, Any]:
        """The largest bound of all shares, and the p-value of each, as a JSON object."""
        found = [lower_bound(one, self.delta, 1 - ERROR / self.checks) for one in self.guesses]
        best = max(range(len(found)), key=lambda at: found[at].epsilon)
        p_values, least = None, None
        if self.curve is not None:
            inverse = Inverse(self.curve)
            perfect = [Guesses(one.trials, one.made, one.made) for one in self.guesses]
            p_values = [curve_p_value(one, inverse) for one in self.guesses]
            least = min(curve_p_value(one, inverse) for one in perfect)
        return {
            "epsilon": found[best].epsilon,
            "ceiling": max(one.ceiling for one in found),
            "delta": self.delta,
            "confidence": 1 - ERROR,
            "checks": self.checks,
            "canaries": self.guesses[0].trials,
            "guesses": [{"made": one.made, "right": one.right} for one in self.guesses],
            "p_values": p_values,
            "least_p_value": least,
        }

    @classmethod
    def of_json(cls, data: Mapping[str, Any], delta: float, observers: int, curve: TradeOff | None) -> OneRun:
        """What was stored, to be computed again.

        Raises:
            ValueError: there are more or fewer guesses than an audit makes.
        """
        if len(data["guesses"]) != len(SHARES):
            raise ValueError(f"guesses: an audit makes {len(SHARES)} sets of them")
        guesses = tuple(Guesses(data["canaries"], one["made"], one["right"]) for one in data["guesses"])
        return together([guesses], delta, observers, curve)


def claimed_curve(ledger: Mapping[str, Any], observer: str) -> TradeOff | None:
    """The trade-off curve of what a ledger claims for one observer, the tightest of its claims, or None.

    Args:
        ledger: The JSON object that `Ledger.to_json` wrote.
        observer: "server", "participant" or "outsider".
    """
    events = [claim["event"] for claim in ledger["claims"] if claim["observer"] == observer]
    found = [
        _curve(json.dumps(event, sort_keys=True), ledger["adjacency"])
        for event in events
        if event is not None
    ]
    return min((one for one in found if one is not None), key=lambda one: one.auc, default=None)


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
    return tuple(guess(ranks, present, max(1, round(share * len(scores)))) for share in SHARES)


def together(
    runs: Sequence[tuple[Guesses, ...]], delta: float, observers: int, curve: TradeOff | None
) -> OneRun:
    """What the guesses of independent runs prove together, each with coins of its own."""
    added = [sum(share[1:], start=share[0]) for share in zip(*runs, strict=True)]
    return OneRun(tuple(added), delta, 2 * observers * len(SHARES), curve)


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


def verdict(
    guarantee: Mapping[str, Any],
    one_run: Mapping[str, Any] | None,
    estimated: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Whether a claim stands, as a JSON object: `holds` is false if it is refuted, null if nothing is known.

    Args:
        guarantee: The claim (`statement.Guarantee.to_json`).
        one_run: What was proved (`OneRun.to_json`); None: nobody guessed.
        estimated: What `estimate` gave; it decides nothing.
    """
    claimed = guarantee["epsilon"]
    above = ""
    if claimed is not None and estimated is not None and estimated["low"] > claimed:
        above = (
            ". The estimate is above the claim, which says something only where scores are normal (Gaussian "
            "noise, no sampling): ask for more canaries or runs"
        )
    if one_run is None:
        return _said(None, f"proves nothing: an estimate is no bound; --method one-run has one{above}")
    low, most, many = one_run["epsilon"], one_run["ceiling"], f"{one_run['canaries']:,} canaries"
    at = f"epsilon = {down(low)} at delta = {one_run['delta']:g}"
    found = f"it is at least {at}" if low > 0 else "no epsilon above 0 was proved"
    if claimed is None:
        return _said(None, f"nothing is claimed, so there is nothing to refute; {found}")
    claim, p_values, error = printed(claimed), one_run["p_values"], ERROR / one_run["checks"]
    if low > claimed:
        return _said(
            False, f"REFUTED: the claim is false. Epsilon = {claim} is claimed, and it is at least {at}"
        )
    if p_values is not None and min(p_values) <= error:
        told = p_values.index(min(p_values))
        right, made = one_run["guesses"][told]["right"], one_run["guesses"][told]["made"]
        corrected = min(p_values) * one_run["checks"]
        return _said(
            False,
            f"REFUTED: the claim is false. With all that epsilon = {claim} stands for, {right:,} right "
            f"guesses of {made:,} have probability {corrected:.1g} at most, corrected for "
            f"{one_run['checks']} checks ({found})",
        )
    if most <= claimed and (p_values is None or one_run["least_p_value"] > error):
        return _said(
            None,
            f"proves nothing: even if every guess were right, {many} would prove no more than "
            f"{down(most)}, and epsilon = {claim} is claimed{above or '. More canaries or runs prove more'}",
        )
    if low <= 0:
        return _said(
            None, f"proves nothing: of {many} hardly more are guessed than chance allows, if any{above}"
        )
    return _said(
        True,
        f"consistent: {found}, and epsilon = {claim} is claimed. That refutes nothing, and proves no "
        f"guarantee{above}",
    )


def down(epsilon: float) -> str:
    """A lower bound as text, rounded down.

    >>> down(1.99978), down(0.0)
    ('1.999', '0')
    """
    return f"{math.floor(epsilon * 1000) / 1000:g}"


def _said(holds: bool | None, words: str) -> dict[str, Any]:
    return {"holds": holds, "words": f"{words}."}
