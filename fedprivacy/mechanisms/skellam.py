"""Skellam noise in shares: the difference of two Poisson variables, whose sums are Skellam again."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from dp_accounting import dp_event as dp

from fedprivacy.accounting.integer_sums import SkellamDpEvent
from fedprivacy.mechanisms.integer_noise import skellam
from fedprivacy.mechanisms.modular import Integers
from fedprivacy.mechanisms.noise_shares import NoiseShares


@dataclass(frozen=True)
class Skellam(NoiseShares):
    """Each client adds Skellam noise to its integers (Agarwal, Kairouz and Liu 2021).

    A sum of Skellam variables is Skellam, and its variance is the sum of theirs. So the noise of every
    number of survivors has an exact law, which makes it the default.

    >>> Skellam(1.0, 0.0, 256, 16, 100, 100).calibrated(4.0, 1e-5, "zero-out").words
    'noise multiplier 1.158 in 100 honest shares, 16 bits a coordinate'
    """

    name: ClassVar[str] = "skellam"
    title: ClassVar[str] = "Skellam"

    def draw(self, dimension: int, stream: np.random.Generator, *, shares: int = 1) -> Integers:
        """As `NoiseShares` has it."""
        return skellam(shares * self.share_variance, dimension, stream)

    def _event(self, shares: int) -> dp.DpEvent:
        return SkellamDpEvent(shares * self.share_variance, self.squared_norm, self.padded)

    def log_moment(self, t: float, shares: int) -> float:
        """As `NoiseShares` has it; exact."""
        return shares * self.share_variance * 2 * math.sinh(t / 2) ** 2
