"""A lower bound of epsilon from the scores of one run, if the mechanism adds Gaussian noise.

Guesses throw away how far a score lies from the middle, and a bound that assumes nothing must allow for
randomness that all canaries share: a mechanism that is mu-Gaussian-DP for each canary may draw the size of
its privacy loss once for all of them, and then the guesses of any number of canaries are worth one draw.
Stronger assumptions prove more. Here the score of a canary is its answer plus Gaussian noise that no coin
decides:

    score = +-mu/2 + noise,  noise ~ N(0, 1), in units of the noise's deviation.

The difference of the mean scores of both coins is a sum of aligned signals (as in "Let's Ask Gauss",
Agrawal et al. 2026, and in the estimate of Andrew et al. 2024). Its t statistic has a noncentral t
distribution, which gives mu an exact lower end: directions are orthogonal where the model has room, so that
noise of equal size in all directions is independent between canaries. Elsewhere the coins still are
independent. Given the noise, the difference of means is mu plus a sum of fair coins, whatever canaries
share, and the pooled variance of correlated noise is, in distribution, at least that of independent noise
as large as what remains to somebody who knows the noise of all other canaries (Okamoto 1960). So dependence
makes the bound smaller, not wrong; the tests simulate it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import scipy

from fedprivacy.accounting.gaussian import gaussian_epsilon
from fedprivacy.attacks.repeated_run_epsilon import least_distance
from fedprivacy.attacks.targets import Flags, Scores

CONFIDENCE = 0.95  # of each bound by itself


@dataclass(frozen=True)
class Moments:
    """The sufficient statistics of some scores.

    Args:
        count: How many there are.
        mean: Their mean; 0 of none.
        variance: Their unbiased variance; 0 of fewer than two.
    """

    count: int
    mean: float
    variance: float

    @classmethod
    def of(cls, scores: Scores) -> Moments:
        """The moments of scores, shape (some,)."""
        count = len(scores)
        return cls(
            count,
            float(scores.mean()) if count else 0.0,
            float(scores.var(ddof=1)) if count > 1 else 0.0,
        )


@dataclass(frozen=True)
class ScoreMoments:
    """The moments of the scores of both coins.

    Args:
        present: Of canaries whose coin fell so.
        absent: Of the others.
    """

    present: Moments
    absent: Moments

    @classmethod
    def of(cls, scores: Scores, present: Flags) -> ScoreMoments:
        """The moments of the canaries' scores.

        Args:
            scores: Larger means rather present, shape (canaries,).
            present: The coins, shape (canaries,).
        """
        return cls(Moments.of(scores[present]), Moments.of(scores[~present]))

    @classmethod
    def of_json(cls, data: Mapping[str, Any]) -> ScoreMoments:
        """Reads an object that `to_json` wrote."""
        sides = (data[side] for side in ("present", "absent"))
        return cls(*(Moments(side["count"], side["mean"], side["variance"]) for side in sides))

    def to_json(self) -> dict[str, Any]:
        """The moments as a JSON object."""
        return {side: vars(getattr(self, side)).copy() for side in ("present", "absent")}

    @property
    def sizes(self) -> tuple[int, int]:
        """The number of canaries of each coin."""
        return self.present.count, self.absent.count

    @property
    def freedom(self) -> int:
        """The degrees of freedom of the pooled variance."""
        return sum(self.sizes) - 2

    @property
    def scale(self) -> float:
        """The factor that turns a distance in standard deviations into a t statistic."""
        n, m = self.sizes
        return math.sqrt(n * m / (n + m))

    @property
    def distance(self) -> float:
        """The distance of the means in pooled standard deviations; infinite without any spread."""
        n, m = self.sizes
        pooled = (self.present.variance * (n - 1) + self.absent.variance * (m - 1)) / self.freedom
        apart = self.present.mean - self.absent.mean
        return apart / math.sqrt(pooled) if pooled > 0 else math.copysign(math.inf, apart) if apart else 0.0


def gaussian_lower_bound(moments: ScoreMoments, claimed: float, delta: float) -> dict[str, Any] | None:
    """The least epsilon of an additive Gaussian mechanism with such scores, as a JSON object.

    Args:
        moments: Of the canaries' scores.
        claimed: The mu of the claim (`GaussianCurve.mu`).
        delta: Of the claim, above 0.

    Returns:
        `epsilon` with `confidence`; `distance`, its mu; `expected`, the epsilon that half of all audits
        with this number of canaries prove if the claim is exactly true; and `p_value`, the probability of a
        distance as large as this one under the claim. None if a coin has too few canaries, or their scores
        do not scatter.
    """
    separation = moments.distance if min(moments.sizes) > 1 else math.inf
    if not math.isfinite(separation):
        return None
    scale, freedom = moments.scale, moments.freedom
    distance = least_distance(separation * scale, freedom, scale, CONFIDENCE)
    return {
        "epsilon": _epsilon(delta, distance),
        # The bound of an audit that observes exactly the claimed distance, which half of all audits exceed.
        "expected": _epsilon(delta, least_distance(claimed * scale, freedom, scale, CONFIDENCE)),
        "delta": delta,
        "confidence": CONFIDENCE,
        "distance": distance,
        "p_value": float(scipy.stats.nct.sf(separation * scale, freedom, claimed * scale)),
    }


def _epsilon(delta: float, mu: float) -> float:
    return gaussian_epsilon(delta, mu) if mu > 0 else 0.0
