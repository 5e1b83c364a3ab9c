"""The claims of private selection: the exponential mechanism and report noisy max.

opendp's draws have no seed: comparisons with them raise a false alarm in one of 10^6 runs.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from claims import checks
from claims.claim import Claim
from fedprivacy.mechanisms.generalised_exponential import GeneralisedExponential
from fedprivacy.mechanisms.selection import ExponentialMechanism, NoisyMax

# Of candidates, in scales of the noise: a clear order, ties, a rare one; and two only.
SCORES = (np.array([0.0, -0.4, -1.0, -1.0, -9.0]), np.array([0.0, -1.5]))


def largest_by_opendp(scores: np.ndarray, scale: float, count: int) -> np.ndarray:
    """The index of the largest score after opendp's Laplace noise of a scale, shape (count,)."""
    import opendp.prelude as dp

    vectors = dp.vector_domain(dp.atom_domain(T=float, nan=False))
    theirs = dp.m.make_laplace(vectors, dp.l1_distance(T=float), scale)
    return np.array(theirs(np.tile(scores, count).tolist())).reshape(count, -1).argmax(axis=1)


class SelectionClaim(Claim):
    draws = 60_000

    def halved(self, mechanism: Any) -> Any:
        return replace(mechanism, epsilon=2 * mechanism.epsilon)

    def chosen(self, mechanism: Any, scores: np.ndarray, count: int, purpose: str) -> np.ndarray:
        return mechanism.draw(np.tile(scores, (count, 1)), checks.stream(purpose))

    def distribution(self, claimed: Any, drawn: Any) -> None:
        for below in SCORES:
            scores = 7.0 + claimed.scale * below
            counts = np.bincount(self.chosen(drawn, scores, 100_000, "chosen"), minlength=len(scores))
            checks.fits(counts, claimed.probabilities(scores))

    def moments(self, claimed: Any, drawn: Any) -> None:
        """The score that is chosen has the mean and the variance that the probabilities say."""
        for below in SCORES:
            scores = claimed.scale * below
            chances = claimed.probabilities(scores)
            mean = float(chances @ scores)
            told = scores[self.chosen(drawn, scores, 60_000, "moments")]
            checks.moments(told, mean, float(chances @ (scores - mean) ** 2))

    def neighbours(self, mechanism: Any, below: float) -> tuple[np.ndarray, np.ndarray]:
        """Scores of which the worse of two lies `below` scales below the better, and the worst that they become."""
        scores = np.array([0.0, -below * mechanism.scale])
        up = np.array([0.0 if mechanism.monotone else -1.0, 1.0])
        return scores + up * mechanism.sensitivity, scores

    def privacy(self, claimed: Any, drawn: Any) -> None:
        limit = self.epsilon(claimed)
        for below in (0.0, 1.0, 30.0):
            one, other = self.neighbours(claimed, below)
            checks.loss(drawn.probabilities(one), drawn.probabilities(other), limit)
        others = checks.stream("neighbours")
        for size in (3, 6):
            for _ in range(10):
                scores = others.normal(0, 3 * claimed.scale, size)
                moved = others.uniform(0 if claimed.monotone else -1, 1, size)
                moved[others.random(size) < 0.5] = 1.0
                moved *= claimed.sensitivity
                checks.loss(drawn.probabilities(scores), drawn.probabilities(scores + moved), limit)

    def scores(self, drawn: Any, count: int) -> tuple[checks.Numbers, checks.Numbers]:
        one, other = self.neighbours(drawn, 3.0)
        return (
            self.chosen(drawn, one, count, "present").astype(float),
            self.chosen(drawn, other, count, "absent").astype(float),
        )

    def oracle(self, claimed: Any) -> None:
        """opendp: exponential noise where privacy is pure, Gumbel noise where it is concentrated.

        It has no noisy max with Laplace noise: there its exact noise is added to the scores.
        """
        import opendp.prelude as dp

        dp.enable_features("contrib")
        noise = getattr(claimed, "noise", "gumbel")
        if noise == "laplace":
            for below in SCORES:
                scores = claimed.scale * below
                counts = np.bincount(largest_by_opendp(scores, claimed.scale, 4000), minlength=len(scores))
                checks.fits(counts, claimed.probabilities(scores))
            return
        measure = dp.max_divergence() if noise == "permute-and-flip" else dp.zero_concentrated_divergence()
        space = (
            dp.vector_domain(dp.atom_domain(T=float, nan=False)),
            dp.linf_distance(T=float, monotonic=claimed.monotone),
        )
        theirs = dp.m.make_noisy_max(*space, measure, claimed.scale)
        cost = claimed.epsilon if noise == "permute-and-flip" else claimed.epsilon**2 / 8
        assert math.isclose(theirs.map(claimed.sensitivity), cost, rel_tol=1e-9)
        scores = claimed.scale * SCORES[0]
        counts = np.bincount([theirs(scores.tolist()) for _ in range(2500)], minlength=len(scores))
        checks.fits(counts, claimed.probabilities(scores))


class ExponentialClaim(SelectionClaim):
    instances = (
        ExponentialMechanism(0.5, 1.0),
        ExponentialMechanism(2.0, 3.01),
        ExponentialMechanism(1.0, 2.0, monotone=True),
    )


class NoisyMaxClaim(SelectionClaim):
    instances = (
        NoisyMax.for_counts(0.5, "replace-one"),
        NoisyMax.for_counts(1.0, "add-remove"),
        NoisyMax(2.0, 3.0, noise="gumbel"),
        NoisyMax(1.0, 3.0, noise="permute-and-flip"),
        NoisyMax.for_counts(2.0, "add-remove", "permute-and-flip"),
    )


class GeneralisedClaim(SelectionClaim):
    """Sensitivities of all kinds; the last three instances have the worst case that the audit needs.

    There a candidate of hardly any sensitivity stays where it is, one goes up by its own and many go down.
    """

    instances = (
        GeneralisedExponential(2.0, (1e-6, 1.0, *[1.0] * 20)),
        GeneralisedExponential(0.5, (1e-6, 3.0, *[3.0] * 20), beta=0.5),
        GeneralisedExponential(1.0, (1e-6, 0.2, *[0.1] * 20), beta=0.01),
    )

    def sets(self, mechanism: Any) -> list[np.ndarray]:
        """Scores in a clear order, and scores that the penalty makes equal."""
        widths = np.asarray(mechanism.sensitivities)
        level = mechanism.penalty * widths
        return [level, level + np.linspace(0, 3, len(widths)) * widths / mechanism.epsilon]

    def distribution(self, claimed: Any, drawn: Any) -> None:
        for scores in self.sets(claimed):
            counts = np.bincount(self.chosen(drawn, scores, 20_000, "chosen"), minlength=len(scores))
            checks.fits(counts, claimed.probabilities(scores))

    def moments(self, claimed: Any, drawn: Any) -> None:
        for scores in self.sets(claimed)[1:]:
            chances = claimed.probabilities(scores)
            mean = float(chances @ scores)
            told = scores[self.chosen(drawn, scores, 20_000, "moments")]
            checks.moments(told, mean, float(chances @ (scores - mean) ** 2))

    def worst(self, mechanism: Any) -> tuple[np.ndarray, np.ndarray]:
        widths = np.asarray(mechanism.sensitivities)
        level = mechanism.penalty * widths
        low = np.zeros(len(widths))
        low[2:] = -1.0
        high = np.zeros(len(widths))
        high[1] = -1.0
        return level + low * widths, level + high * widths

    def privacy(self, claimed: Any, drawn: Any) -> None:
        limit = self.epsilon(claimed)
        one, other = self.worst(drawn)
        checks.loss(drawn.probabilities(one), drawn.probabilities(other), limit)
        others = checks.stream("neighbours")
        widths = np.asarray(claimed.sensitivities)
        for _ in range(20):
            scores = others.normal(0, 10 / claimed.epsilon, len(widths)) * widths
            moved = np.where(others.random(len(widths)) < 0.5, 1, others.uniform(-1, 1, len(widths))) * widths
            checks.loss(drawn.probabilities(scores), drawn.probabilities(scores + moved), limit)

    def scores(self, drawn: Any, count: int) -> tuple[checks.Numbers, checks.Numbers]:
        one, other = self.worst(drawn)
        return (
            (self.chosen(drawn, one, count, "present") == 1).astype(float),
            (self.chosen(drawn, other, count, "absent") == 1).astype(float),
        )

    def oracle(self, claimed: Any) -> None:
        """opendp's Gumbel noise on scores of one sensitivity, to which it reduces at twice the scale."""
        import opendp.prelude as dp

        dp.enable_features("contrib")
        width = claimed.sensitivities[1]
        ours = replace(claimed, sensitivities=(width,) * 5)
        scores = 4 * width / claimed.epsilon * SCORES[0]
        space = (
            dp.vector_domain(dp.atom_domain(T=float, nan=False)),
            dp.linf_distance(T=float, monotonic=False),
        )
        theirs = dp.m.make_noisy_max(*space, dp.zero_concentrated_divergence(), 4 * width / claimed.epsilon)
        counts = np.bincount([theirs(scores.tolist()) for _ in range(2500)], minlength=len(scores))
        checks.fits(counts, ours.probabilities(scores))


CLAIMS = {
    ExponentialMechanism.name: ExponentialClaim(),
    NoisyMax.name: NoisyMaxClaim(),
    GeneralisedExponential.name: GeneralisedClaim(),
}
