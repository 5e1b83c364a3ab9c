"""The claims of noise that is added to numbers and vectors: Laplace, discrete Laplace, the norm mechanism.

opendp draws exactly, from the operating system's entropy: comparisons with its draws have no fixed seed, and
raise a false alarm in one of 10^6 runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import stats

from claims import checks
from claims.claim import Claim
from fedprivacy.accounting.epsilon import epsilon
from fedprivacy.mechanisms.laplace import DiscreteLaplace, Laplace
from fedprivacy.mechanisms.norm import NormMechanism

ADJACENCIES = ("replace-one", "add-remove", "zero-out")


class NoiseClaim(Claim):
    """Events that know their adjacency; half the noise is that of twice the epsilon."""

    draws = 60_000

    def epsilon(self, claimed: Any) -> float:
        """By the accountant; the same under every adjacency."""
        spent = [epsilon(claimed.event(adjacency), 0.0, adjacency).epsilon for adjacency in ADJACENCIES]
        assert max(spent) - min(spent) <= 1e-12 * claimed.epsilon
        assert math.isclose(spent[0], claimed.epsilon, rel_tol=1e-12)
        return spent[0]

    def halved(self, mechanism: Any) -> Any:
        return replace(mechanism, epsilon=2 * mechanism.epsilon)


class LaplaceClaim(NoiseClaim):
    instances = (Laplace(0.1, 1.0), Laplace.histogram(1.0, "replace-one"), Laplace(4.0, 0.5))

    def distribution(self, claimed: Laplace, drawn: Laplace) -> None:
        values = np.array([[3.0], [-1e3]])
        told = drawn.draw(np.repeat(values, 50_000, axis=1), checks.stream("laplace"))
        for row in told - values:
            checks.follows(row, stats.laplace(scale=claimed.scale).cdf)

    def moments(self, claimed: Laplace, drawn: Laplace) -> None:
        for shares in (1, 7):
            told = drawn.draw(np.full(60_000, 2.5), checks.stream(f"moments {shares}"), shares=shares)
            checks.moments(told, 2.5, shares * claimed.variance)

    def privacy(self, claimed: Laplace, drawn: Laplace) -> None:
        one, other = stats.laplace(0.0, drawn.scale), stats.laplace(claimed.sensitivity, drawn.scale)
        wide = 40 * claimed.scale
        checks.hockey_stick(
            one.pdf, other.pdf, self.epsilon(claimed), 0.0, (-wide, wide), (0.0, claimed.sensitivity)
        )

    def scores(self, drawn: Laplace, count: int) -> tuple[checks.Numbers, checks.Numbers]:
        # From the larger answer on, the likelihood ratio is the largest that there is.
        present = drawn.draw(np.full(count, drawn.sensitivity), checks.stream("present"))
        absent = drawn.draw(np.zeros(count), checks.stream("absent"))
        return (present >= drawn.sensitivity).astype(float), (absent >= drawn.sensitivity).astype(float)

    def oracle(self, claimed: Laplace) -> None:
        import opendp.prelude as dp

        dp.enable_features("contrib")
        vectors = dp.vector_domain(dp.atom_domain(T=float, nan=False))
        theirs = dp.m.make_laplace(vectors, dp.l1_distance(T=float), claimed.scale)
        assert math.isclose(theirs.map(claimed.sensitivity), claimed.epsilon, rel_tol=1e-9)
        ours = claimed.draw(np.zeros(20_000), checks.stream("opendp"))
        assert stats.ks_2samp(ours, theirs([0.0] * 20_000)).pvalue > checks.FALSE_ALARM


def masses(mechanism: DiscreteLaplace, value: int, reach: int) -> np.ndarray:
    """The probability of each answer from -reach to reach, by scipy; the last on either side take the tails."""
    law = stats.dlaplace(mechanism.epsilon / mechanism.sensitivity, loc=value)
    answers = np.arange(-reach, reach + 1)
    chances = law.pmf(answers)
    chances[0], chances[-1] = law.cdf(-reach), law.sf(reach - 1)
    return chances


class DiscreteLaplaceClaim(NoiseClaim):
    instances = (
        DiscreteLaplace.count(0.1, "add-remove"),
        DiscreteLaplace.histogram(1.0, "replace-one"),
        DiscreteLaplace(4.0, 3),
    )

    def distribution(self, claimed: DiscreteLaplace, drawn: DiscreteLaplace) -> None:
        reach = math.ceil(10 * claimed.scale) + 5
        told = drawn.draw(np.full(200_000, 2), checks.stream("discrete"))
        assert told.dtype == np.int64
        counts = np.bincount(np.clip(told, -reach, reach) + reach, minlength=2 * reach + 1)
        checks.fits(counts, masses(claimed, 2, reach))

    def moments(self, claimed: DiscreteLaplace, drawn: DiscreteLaplace) -> None:
        for shares in (1, 7):
            told = drawn.draw(np.full(60_000, 5), checks.stream(f"integers {shares}"), shares=shares)
            checks.moments(told.astype(float), 5.0, shares * claimed.variance)

    def privacy(self, claimed: DiscreteLaplace, drawn: DiscreteLaplace) -> None:
        reach = math.ceil(10 * claimed.scale) + 5
        one, other = masses(drawn, 0, reach), masses(drawn, claimed.sensitivity, reach)
        checks.loss(one, other, self.epsilon(claimed))

    def scores(self, drawn: DiscreteLaplace, count: int) -> tuple[checks.Numbers, checks.Numbers]:
        present = drawn.draw(np.full(count, drawn.sensitivity), checks.stream("present"))
        absent = drawn.draw(np.zeros(count, dtype=int), checks.stream("absent"))
        return (present >= drawn.sensitivity).astype(float), (absent >= drawn.sensitivity).astype(float)

    def oracle(self, claimed: DiscreteLaplace) -> None:
        import opendp.prelude as dp

        dp.enable_features("contrib")
        vectors = dp.vector_domain(dp.atom_domain(T=int))
        theirs = dp.m.make_laplace(vectors, dp.l1_distance(T=int), claimed.scale)
        assert math.isclose(theirs.map(claimed.sensitivity), claimed.epsilon, rel_tol=1e-9)
        reach = math.ceil(10 * claimed.scale) + 5
        told = np.clip(theirs([0] * 20_000), -reach, reach)
        checks.fits(np.bincount(told + reach, minlength=2 * reach + 1), masses(claimed, 0, reach))


def norm_of(mechanism: NormMechanism) -> Callable[[np.ndarray], np.ndarray]:
    """The mechanism's norm along the last axis."""
    return lambda vectors: np.linalg.norm(vectors, ord=mechanism.order, axis=-1)


class NormClaim(NoiseClaim):
    instances = (
        NormMechanism(1.0, 1.0, 3, 1),
        NormMechanism(0.5, 2.0, 2, 2),
        NormMechanism(4.0, 1.0, 8, 2),
        NormMechanism(1.0, 3.0, 1, 2),
        NormMechanism(0.5, 1.0, 2, math.inf),
        NormMechanism(2.0, 0.5, 5, math.inf),
    )
    no_oracle = (
        "In L1 and in one dimension it is the Laplace mechanism, which has one. opendp has no noise by the L2 or "
        "L-infinity norm."
    )
    draws = 100_000
    teeth = 0.2  # in many dimensions no single event shows all of epsilon

    def step(self, mechanism: NormMechanism) -> np.ndarray:
        """The worst change of a vector: one coordinate, or all together in L-infinity."""
        step = np.zeros(mechanism.dimension)
        step[: mechanism.dimension if mechanism.order == math.inf else 1] = mechanism.sensitivity
        return step

    def noise(self, mechanism: NormMechanism, count: int, purpose: str) -> np.ndarray:
        return mechanism.draw(np.zeros((count, mechanism.dimension)), checks.stream(purpose))

    def distribution(self, claimed: NormMechanism, drawn: NormMechanism) -> None:
        d = claimed.dimension
        drawings = self.noise(drawn, 60_000, "distribution")
        norms = norm_of(claimed)(drawings)
        checks.follows(norms, stats.gamma(d, scale=claimed.scale).cdf)
        assert abs(stats.spearmanr(norms, drawings[:, 0]).statistic) < 6 / math.sqrt(len(norms))
        if d == 1:
            return
        # Which coordinate is the largest, its sign, and where the first lies, given the norm.
        largest = np.abs(drawings).argmax(axis=1)
        checks.fits(np.bincount(largest, minlength=d), np.full(d, 1 / d))
        ups = drawings[np.arange(len(drawings)), largest] > 0
        checks.fits(np.bincount(ups, minlength=2), np.full(2, 0.5))
        shares = drawings[:, 0] / norms
        if claimed.order == 2:
            checks.follows((1 + shares) / 2, stats.beta((d - 1) / 2, (d - 1) / 2).cdf)
        elif claimed.order == 1:
            checks.follows(np.abs(shares), stats.beta(1, d - 1).cdf)
        else:
            checks.follows(shares[largest != 0], stats.uniform(-1, 2).cdf)

    def moments(self, claimed: NormMechanism, drawn: NormMechanism) -> None:
        value = np.arange(claimed.dimension) - 0.5
        told = drawn.draw(np.tile(value, (60_000, 1)), checks.stream("moments"))
        for column, mean in zip(told.T, value, strict=True):
            checks.moments(column, float(mean), claimed.variance)
        norms = norm_of(claimed)(told - value)
        checks.moments(norms, claimed.expected_norm, claimed.dimension * claimed.scale**2)

    def privacy(self, claimed: NormMechanism, drawn: NormMechanism) -> None:
        step, norm = self.step(claimed), norm_of(claimed)

        def section(at: float) -> Callable[[float], float]:
            # The density along the line from one neighbour to the other, but for a factor that both share.
            return lambda x: math.exp(-abs(x - at) * claimed.sensitivity / drawn.scale)

        wide = 40 * claimed.scale / claimed.sensitivity
        checks.hockey_stick(section(0.0), section(1.0), self.epsilon(claimed), 0.0, (-wide, wide), (0.0, 1.0))
        outputs = np.concatenate([self.noise(drawn, 20_000, "privacy"), [2 * step, -step]])
        losses = (norm(outputs - step) - norm(outputs)) / drawn.scale
        assert np.abs(losses).max() <= self.epsilon(claimed) + checks.ROUNDING

    def scores(self, drawn: NormMechanism, count: int) -> tuple[checks.Numbers, checks.Numbers]:
        step, norm = self.step(drawn), norm_of(drawn)

        def score(outputs: np.ndarray) -> checks.Numbers:
            losses = (norm(outputs) - norm(outputs - step)) / drawn.sensitivity
            return np.round(losses, 1)  # few thresholds to choose from

        present, absent = (self.noise(drawn, count, purpose) for purpose in ("present", "absent"))
        return score(present + step), score(absent)

    def audited(self, mechanism: NormMechanism) -> bool:
        return mechanism.dimension <= 3


CLAIMS = {
    Laplace.name: LaplaceClaim(),
    DiscreteLaplace.name: DiscreteLaplaceClaim(),
    NormMechanism.name: NormClaim(),
}
