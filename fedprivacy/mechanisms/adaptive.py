"""The Gaussian mechanism with a clipping norm that follows a quantile of the update norms."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from fedprivacy.errors import InputError
from fedprivacy.mechanisms.central import Settings
from fedprivacy.mechanisms.gaussian import Gaussian
from fedprivacy.mechanisms.options import AdaptiveOptions

LEAST, MOST = 1e-9, 1e9  # the norms that scenarios have


@dataclass(frozen=True)
class AdaptiveGaussian(Gaussian):
    """One release of a sum of updates together with the count of updates within the norm.

    A client adds (update clipped to C, b), with b = 1/2 if its update is no longer than C, else -1/2. The bit
    moves the sum by 1/2 if a client's part is zeroed, and by at most 1 if it is replaced; the update moves it
    by C and 2C. Both together are one Gaussian release of multiplier z if the update's noise has the
    multiplier z_delta = (z^-2 - (2 sigma_b)^-2)^(-1/2).

    Args:
        clipping_norm: C, of the first round in a plan, of this round in `Plan.for_round`.
        noise_multiplier: z, of update and bit together: what the accountant reads.
        quantile: The target share of updates no longer than C.
        learning_rate: How fast C follows.
        count_noise: sigma_b, the standard deviation of the noise on the sum of the bits.

    Source: Andrew, Thakkar, McMahan and Ramaswamy 2021, Algorithm 1 and Theorem 1.
    """

    quantile: float
    learning_rate: float
    count_noise: float
    name: ClassVar[str] = "adaptive-gaussian"
    title: ClassVar[str] = "Gaussian with adaptive clipping"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (0 < self.quantile < 1 and self.learning_rate > 0 and self.count_noise > 0):
            raise InputError(
                f"adaptive clipping: quantile {self.quantile}, learning rate {self.learning_rate} and count "
                f"noise {self.count_noise}: the first must lie between 0 and 1, the others be above 0."
            )

    @classmethod
    def of_scenario(cls, settings: Settings) -> Self:
        """As `CentralMechanism` has it; calibration may raise a default noise of the count (`plan_of`)."""
        options = settings.options(AdaptiveOptions)
        assert options.clipping_quantile is not None
        return cls(
            settings.clipping_norm,
            settings.noise_multiplier,
            options.clipping_quantile,
            0.2 if options.clipping_learning_rate is None else options.clipping_learning_rate,
            options.clipping_count_noise or settings.expected_cohort / 20,
        )

    def scaled(self, share: float) -> Self:
        """As `CentralMechanism` has it."""
        return replace(super().scaled(share), count_noise=self.count_noise * share)

    @property
    def update_noise(self) -> float:
        """z_delta, the multiplier of the update's own noise.

        Raises:
            InputError: The bits alone cost more than the whole release may.
        """
        if self.noise_multiplier == 0:
            return 0.0
        # Theorem 1 of Andrew et al.: inverse squares of multipliers add up over the parts of one Gaussian
        # release. The 2 is that of the centred bit, which moves the sum by 1/2 and not by 1.
        left = self.noise_multiplier**-2 - (2 * self.count_noise) ** -2
        # If the bits took nearly all of the budget, the update's noise would be unbounded.
        if not left * self.noise_multiplier**2 > 1e-6:
            raise InputError(
                f"privacy.clipping_count_noise = {self.count_noise:g}: the counts alone would cost more than "
                f"the whole run may, whose noise multiplier is {self.noise_multiplier:.4g}. It must be above "
                f"half of that; {math.ceil(2 * self.noise_multiplier)} leaves the updates nearly all."
            )
        return float(left**-0.5)

    @property
    def standard_deviation(self) -> float:
        """Of the noise in each coordinate of the update, in its units."""
        return self.update_noise * self.clipping_norm

    def error(self, dimension: int) -> float:
        """Mean squared error of a release per coordinate of the update, in units of C^2."""
        return self.update_noise**2

    @property
    def words(self) -> str:
        """The amount of noise, in words."""
        return f"noise multiplier {self.noise_multiplier:.4g}, {self.update_noise:.4g} of it on updates"

    def draw(self, dimension: int, stream: np.random.Generator, *, shares: int = 1) -> NDArray[np.float64]:
        """Noise for one release, shape (dimension,): of the update, and last that of the bits."""
        noise = super().draw(dimension, stream, shares=shares)
        noise[-1] *= self.count_noise / self.standard_deviation
        return noise

    @staticmethod
    def bits(norms: NDArray[np.float64], clipping_norm: float) -> NDArray[np.float64]:
        """The centred bit of each update, 1/2 or -1/2; an update that counts as zero has norm 0.

        Args:
            norms: Before clipping, shape (clients,).
            clipping_norm: C of this round.
        """
        return np.where(norms <= clipping_norm, 0.5, -0.5)

    def after(self, bits: float, expected: float) -> AdaptiveGaussian:
        """The mechanism of the next round.

        Args:
            bits: The noisy sum of the bits.
            expected: The mean number of answers, which depends on no record: a fixed denominator.
        """
        # Too many updates within C means that C is too large: it falls. (Flower's feedback has the opposite
        # sign, so that its norm runs away from the quantile.)
        within = bits / expected + 0.5
        step = -self.learning_rate * (within - self.quantile)
        norm = self.clipping_norm * math.exp(min(50.0, max(-50.0, step)))
        return replace(self, clipping_norm=min(MOST, max(LEAST, norm)))
