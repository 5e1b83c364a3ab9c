"""Discrete Gaussian noise in shares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from dp_accounting import dp_event as dp

from fedprivacy.accounting.integer_sums import LEAST_SHARE, DiscreteGaussianSumDpEvent
from fedprivacy.mechanisms.integer_noise import discrete_gaussian
from fedprivacy.mechanisms.modular import Integers
from fedprivacy.mechanisms.noise_shares import NoiseShares


@dataclass(frozen=True)
class DiscreteGaussian(NoiseShares):
    """Each client adds discrete Gaussian noise to its integers (Kairouz, Liu and Steinke 2021).

    A sum of discrete Gaussians is not one, but for a term that falls with e^(-pi^2 sigma^2) in the share's
    parameter sigma^2, which the account includes. Shares below 1/4 have no account.
    """

    name: ClassVar[str] = "discrete-gaussian"
    title: ClassVar[str] = "discrete Gaussian"
    least_share: ClassVar[float] = LEAST_SHARE

    def draw(self, dimension: int, stream: np.random.Generator, *, shares: int = 1) -> Integers:
        """As `NoiseShares` has it."""
        total = np.zeros(dimension, dtype=np.int64)
        for _ in range(shares):
            total += discrete_gaussian(self.share_variance, dimension, stream)
        return total

    def _event(self, shares: int) -> dp.DpEvent:
        return DiscreteGaussianSumDpEvent(self.share_variance, shares, self.squared_norm, self.padded)

    def log_moment(self, t: float, shares: int) -> float:
        """As `NoiseShares` has it (Canonne, Kamath and Steinke 2020)."""
        return shares * self.share_variance * t**2 / 2
