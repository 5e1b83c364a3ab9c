"""The claim of adaptive clipping: one release of an update together with the bit that its norm gives."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from scipy import stats

from claims import checks
from claims.claim import Claim
from fedprivacy.accounting.epsilon import epsilon
from fedprivacy.attacks.repeated_run_epsilon import gaussian_bound
from fedprivacy.mechanisms.adaptive import AdaptiveGaussian


class AdaptiveClaim(Claim):
    """Of two numbers of an update and the bit; small norms and large ones, counts that cost little and much."""

    instances = (
        AdaptiveGaussian(2.0, 1.2, 0.5, 0.2, 0.8),
        AdaptiveGaussian(0.1, 4.0, 0.3, 0.2, 36.0),
        AdaptiveGaussian(50.0, 3.0, 0.8, 0.2, 1.6),
    )
    delta = 1e-2
    draws = 6000
    teeth = 0.7

    def halved(self, mechanism: AdaptiveGaussian) -> AdaptiveGaussian:
        z, count = mechanism.noise_multiplier, mechanism.count_noise
        return replace(mechanism, noise_multiplier=z / 2, count_noise=count / 2)

    def noise(self, mechanism: AdaptiveGaussian, count: int, purpose: str, shares: int = 1) -> np.ndarray:
        """Draws of the noise of two coordinates and a bit, shape (count, 3)."""
        stream = checks.stream(f"adaptive {purpose}")
        return np.array([mechanism.draw(3, stream, shares=shares) for _ in range(count)])

    def deviations(self, claimed: AdaptiveGaussian) -> np.ndarray:
        """Of each column, as Theorem 1 of Andrew et al. 2021 has it for the z that the event states."""
        z = claimed.event().noise_multiplier
        update = (z**-2 - (2 * claimed.count_noise) ** -2) ** -0.5 * claimed.clipping_norm
        return np.array([update, update, claimed.count_noise])

    def distribution(self, claimed: AdaptiveGaussian, drawn: AdaptiveGaussian) -> None:
        for column, deviation in zip(self.noise(drawn, 6000, "law").T, self.deviations(claimed), strict=True):
            checks.follows(column, stats.norm(scale=deviation).cdf)

    def moments(self, claimed: AdaptiveGaussian, drawn: AdaptiveGaussian) -> None:
        wanted = (self.deviations(claimed)[0] / claimed.clipping_norm) ** 2
        assert math.isclose(claimed.error(3), wanted, rel_tol=1e-12)
        for shares in (1, 7):
            told = self.noise(drawn, 6000, f"moments {shares}", shares)
            for column, deviation in zip(told.T, self.deviations(claimed), strict=True):
                checks.moments(column, 0.0, shares * deviation**2)

    def part(self, mechanism: AdaptiveGaussian, update: tuple[float, float]) -> np.ndarray:
        """What a client adds: its clipped update and its bit."""
        norm, most = math.hypot(*update), mechanism.clipping_norm
        bit = mechanism.bits(np.array([norm]), most)[0]
        return np.array([*(np.array(update) * min(1.0, most / norm)), bit])

    def worst(self, mechanism: AdaptiveGaussian) -> tuple[np.ndarray, np.ndarray]:
        """An update that is just as long as the norm, and one beyond it the other way."""
        most = mechanism.clipping_norm
        return self.part(mechanism, (most, 0.0)), self.part(mechanism, (-1.01 * most, 0.0))

    def privacy(self, claimed: AdaptiveGaussian, drawn: AdaptiveGaussian) -> None:
        """Along the line between two clients' parts, or from one to nothing, in units of the noise."""
        spreads = np.array([drawn.standard_deviation, drawn.standard_deviation, drawn.count_noise])
        one, other = self.worst(claimed)
        for adjacency, moved in (("replace-one", one - other), ("zero-out", one), ("zero-out", other)):
            shift = float(np.linalg.norm(moved / spreads))
            here, there = stats.norm(0.0, 1.0), stats.norm(shift, 1.0)
            limit = epsilon(claimed.event(), self.delta, adjacency).epsilon
            checks.hockey_stick(here.pdf, there.pdf, limit, self.delta, (-30.0, 30.0), (0.0, shift))

    def audit(self, claimed: AdaptiveGaussian, drawn: AdaptiveGaussian) -> None:
        """By the means of normal scores; false-alarm rate 1e-3."""
        present, absent = self.scores(drawn, self.draws)
        proved, limit = gaussian_bound(present, absent, self.delta, 0.999).epsilon, self.epsilon(claimed)
        assert proved <= limit, f"an epsilon of {proved:.3g} is proved, {limit:.3g} claimed"
        assert proved >= self.teeth * limit, f"the audit is blunt: {proved:.3g} of {limit:.3g}"

    def scores(self, drawn: AdaptiveGaussian, count: int) -> tuple[checks.Numbers, checks.Numbers]:
        """The likelihood ratio of update and bit together."""
        spreads = np.array([drawn.standard_deviation, drawn.standard_deviation, drawn.count_noise])
        one, other = self.worst(drawn)
        along = (one - other) / spreads**2
        present = one + self.noise(drawn, count, "present")
        absent = other + self.noise(drawn, count, "absent")
        return present @ along, absent @ along

    def oracle(self, claimed: AdaptiveGaussian) -> None:
        """Flower's own noise for the update of such a release."""
        from flwr.supercore.differential_privacy import compute_adaptive_noise_params

        theirs = compute_adaptive_noise_params(claimed.noise_multiplier, 1, claimed.count_noise)
        assert math.isclose(claimed.update_noise, theirs[1], rel_tol=1e-12)


CLAIMS = {AdaptiveGaussian.name: AdaptiveClaim()}
