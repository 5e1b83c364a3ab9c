"""The claims of noise in shares: integers of clients, summed modulo 2^b.

What an observer sees of a victim is the sum with the noise of the honest clients alone.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from dp_accounting.pld import privacy_loss_distribution as pld
from scipy import stats

from claims import checks
from claims.claim import Claim
from fedprivacy.mechanisms.discrete_gaussian import DiscreteGaussian
from fedprivacy.mechanisms.noise_shares import NoiseShares
from fedprivacy.mechanisms.skellam import Skellam


class SharesClaim(Claim):
    """In one dimension, where the worst neighbours are the largest integer and its opposite."""

    delta = 1e-2
    draws = 60_000
    teeth = 0.55  # by Renyi divergences the claim is above the exact epsilon, and an audit is below

    def halved(self, mechanism: NoiseShares) -> NoiseShares:
        return replace(mechanism, noise_multiplier=mechanism.noise_multiplier / 2)

    def masses(self, mechanism: Any, shares: int) -> checks.Numbers:
        """The probabilities of the noise of so many clients, from -reach to reach; the ends take the tails."""
        raise NotImplementedError

    def reach(self, mechanism: Any, shares: int) -> int:
        return math.ceil(7 * math.sqrt(shares * mechanism.share_variance)) + 8

    def noise(self, drawn: NoiseShares, count: int, purpose: str) -> np.ndarray:
        """Of all honest clients."""
        return drawn.draw(count, checks.stream(purpose), shares=drawn.honest)

    def distribution(self, claimed: Any, drawn: Any) -> None:
        for shares in (1, claimed.honest):
            reach = self.reach(claimed, shares)
            noise = drawn.draw(50_000, checks.stream("shares", shares), shares=shares)
            counts = np.bincount(np.clip(noise, -reach, reach) + reach, minlength=2 * reach + 1)
            checks.fits(counts, self.masses(claimed, shares))

    def moments(self, claimed: Any, drawn: Any) -> None:
        """The decoded noise has the stated size in units of C: z."""
        noise = self.noise(drawn, 50_000, "moments") / (drawn.scale * drawn.clipping_norm)
        checks.moments(noise, 0.0, claimed.noise_multiplier**2, slack=1e-4)

    def move(self, mechanism: NoiseShares) -> int:
        """The most that replacing an update moves the sum."""
        return 2 * math.isqrt(mechanism.squared_norm)

    def privacy(self, claimed: Any, drawn: Any) -> None:
        stated, move = self.epsilon(claimed), self.move(drawn)
        masses = self.masses(drawn, drawn.honest)
        one, other = np.append(masses, np.zeros(move)), np.append(np.zeros(move), masses)
        for p, q in ((one, other), (other, one)):
            delta = np.maximum(0.0, p - math.exp(stated) * q).sum()
            assert delta <= self.delta + checks.ROUNDING, f"delta is {delta:.3g} at epsilon {stated:.3g}"

    def scores(self, drawn: Any, count: int) -> tuple[checks.Numbers, checks.Numbers]:
        present = self.noise(drawn, count, "present") + self.move(drawn)
        return present.astype(float), self.noise(drawn, count, "absent").astype(float)

    def oracle(self, claimed: Any) -> None:
        """The exact privacy loss of the integer sum, by dp_accounting, is within the claim and near it."""
        masses, move = np.log(self.masses(claimed, claimed.honest)), self.move(claimed)
        loss = pld.from_two_probability_mass_functions(
            *(dict(enumerate(masses, start)) for start in (0, move)), value_discretization_interval=1e-4
        )
        exact = loss.get_epsilon_for_delta(self.delta)
        assert exact <= self.epsilon(claimed) <= 1.6 * exact


class SkellamClaim(SharesClaim):
    instances = (Skellam(1.0, 2.5, 1, 8, 6, 4, 1), Skellam(2.0, 4.0, 1, 12, 10, 10))

    def masses(self, mechanism: Skellam, shares: int) -> checks.Numbers:
        reach, mean = self.reach(mechanism, shares), shares * mechanism.share_variance / 2
        law = stats.skellam(mean, mean)
        chances = law.pmf(np.arange(-reach, reach + 1))
        chances[0] = chances[-1] = law.cdf(-reach)
        return chances / chances.sum()


class DiscreteGaussianClaim(SharesClaim):
    instances = (DiscreteGaussian(1.0, 2.5, 1, 8, 6, 4, 1), DiscreteGaussian(2.0, 4.0, 1, 12, 10, 10))

    def masses(self, mechanism: DiscreteGaussian, shares: int) -> checks.Numbers:
        variance = mechanism.share_variance
        far = math.ceil(9 * math.sqrt(variance)) + 8
        weights = np.exp(-(np.arange(-far, far + 1.0) ** 2) / (2 * variance))
        each = total = weights / weights.sum()
        for _ in range(shares - 1):
            total = np.convolve(total, each)
        reach, middle = self.reach(mechanism, shares), len(total) // 2
        if middle < reach:
            total, middle = np.pad(total, reach - middle), reach
        chances = total[middle - reach : middle + reach + 1].copy()
        chances[0] = chances[-1] = total[: middle - reach + 1].sum()
        return np.maximum(chances, 1e-300)

    def oracle(self, claimed: DiscreteGaussian) -> None:
        """Besides, opendp draws one client's noise alike; from the system's entropy, so without a fixed seed."""
        import opendp.prelude as dp

        super().oracle(claimed)
        dp.enable_features("contrib")
        vectors = dp.vector_domain(dp.atom_domain(T=int))
        theirs = dp.m.make_gaussian(vectors, dp.l2_distance(T=float), math.sqrt(claimed.share_variance))
        reach = self.reach(claimed, 1)
        draws = np.clip(theirs([0] * 20_000), -reach, reach)
        checks.fits(np.bincount(draws + reach, minlength=2 * reach + 1), self.masses(claimed, 1))


CLAIMS = {Skellam.name: SkellamClaim(), DiscreteGaussian.name: DiscreteGaussianClaim()}
