"""Gaussian noise that is correlated over rounds: banded matrix factorisation.

Each round's noise takes back a part of that of the last rounds, so that in the model, where rounds add up,
less is left of it than of independent noise. An answer costs what it costs with independent noise where a
client answers at most once in as many rounds as there are bands.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from fedprivacy.errors import InputError
from fedprivacy.mechanisms.central import Settings
from fedprivacy.mechanisms.gaussian import Gaussian
from fedprivacy.mechanisms.options import BandedOptions
from fedprivacy.mechanisms.strategy_matrix import Strategy, best_strategy
from fedprivacy.randomness.streams import Streams

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class BandedGaussian(Gaussian):
    """Adds clipping_norm * noise_multiplier * C^-1 Z to the sums of all rounds, Z standard normal.

    C is a strategy matrix of `bands` bands. The release reveals as much as C x + Z. A client whose
    answers lie `bands` rounds or more apart moves C x by columns that share no row, each of norm 1. So an
    answer costs one Gaussian release of multiplier z, over all rounds that its column reaches into. Answers
    compose, also where they depend on what was released before (Denisov et al. 2022).

    Args:
        clipping_norm: C of the Gaussian mechanism, the L2 bound of one client's update.
        noise_multiplier: z, of one answer.
        bands: How many rounds share noise; 1 is independent noise.
        rounds: Of the whole run. Breaking off after fewer costs the answers that were given until then.
        momentum: Of the server's optimizer, which the strategy is made for; it has no part in privacy.

    Source: Choquette-Choo et al. 2023, "(Amplified) banded matrix factorization". Their amplification is in
    the sampler: `CyclicPoissonSampling`.
    """

    bands: int
    rounds: int
    momentum: float = 0.0
    name: ClassVar[str] = "banded-gaussian"
    title: ClassVar[str] = "Gaussian, correlated over rounds"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.bands < 1 or self.rounds < 1 or not 0 <= self.momentum < 1:
            raise InputError(
                f"banded noise: {self.bands} bands, {self.rounds} rounds and momentum {self.momentum}: the "
                "first two must be at least 1, the last from 0 to below 1."
            )

    @classmethod
    def of_scenario(cls, settings: Settings) -> Self:
        """As `CentralMechanism` has it."""
        bands = settings.options(BandedOptions).bands
        assert isinstance(bands, int), "a number of bands is chosen before (`plan.band_search`)"
        norm, noise = settings.clipping_norm, settings.noise_multiplier
        return cls(norm, noise, bands, settings.rounds, settings.momentum)

    @property
    def strategy(self) -> Strategy:
        """C, which is found once for equal bands, rounds and momentum."""
        return best_strategy(self.rounds, self.bands, self.momentum)

    @property
    def words(self) -> str:
        """The amount of noise, in words."""
        bands = f"{self.bands} band{'' if self.bands == 1 else 's'}"
        return f"{super().words}, correlated over rounds (banded matrix factorisation, {bands})"

    def draw(self, dimension: int, stream: np.random.Generator, *, shares: int = 1) -> Vector:
        """There is no noise of one round alone.

        Raises:
            InputError: always; see `CorrelatedNoise`.
        """
        raise InputError("noise that is correlated over rounds is not drawn for a round by itself.")

    def error(self, dimension: int) -> float:
        """Mean squared error of the noise in the model, at learning rate 1, per coordinate, in units of C^2.

        The mean over rounds; with one band it is that of independent noise.
        """
        return self.noise_multiplier**2 * self.strategy.squared_error(self.momentum) / self.rounds


class CorrelatedNoise:
    """The noise of one run, round by round; it holds that of the last bands - 1 rounds, which is secret.

    Past noise together with the releases reveals the exact sums. So it is kept in memory alone: a resumed run
    draws the past again from its streams, with the same bits.

    Args:
        mechanism: The noise to draw.
        dimension: The numbers of a release.
    """

    def __init__(self, mechanism: BandedGaussian, dimension: int) -> None:
        self._mechanism, self._strategy = mechanism, mechanism.strategy
        self._past = np.zeros((self._strategy.bands - 1, dimension))
        self._dimension, self._next = dimension, 0

    def draw(self, round: int, streams: Streams) -> Vector:
        """The noise of a round, shape (dimension,).

        Args:
            round: From 0, below the mechanism's rounds.
            streams: The run's.

        Raises:
            InputError: the run has no such round, or past noise is needed and cannot be drawn again.
        """
        if not 0 <= round < self._strategy.rounds:
            raise InputError(f"round {round}: this noise is for rounds 0 to {self._strategy.rounds - 1}.")
        # Fresh noise in place of the past would not cancel, and is not the mechanism that the event states.
        if round != self._next and not streams.repeats:
            raise InputError(
                f"round {round}: its noise depends on that of earlier rounds, which came from the operating "
                "system's entropy and cannot be drawn again. Start a new run."
            )
        if round < self._next:
            self._next = 0
        while True:
            unscaled = self._step(streams.noise("central", round=self._next))
            if self._next > round:
                break
        return unscaled * (self._strategy.scale(round) * self._mechanism.standard_deviation)

    def _step(self, stream: np.random.Generator) -> Vector:
        """The next row of the inverse of the Toeplitz matrix of c, times Z: banded forward substitution."""
        row = stream.standard_normal(self._dimension)
        coefficients, past = self._strategy.coefficients, len(self._past)
        # One after another, each number by itself: no library that may add in another order on more threads.
        for back in range(1, min(past, self._next) + 1):
            row -= coefficients[back] * self._past[(self._next - back) % past]
        row /= coefficients[0]
        if past:
            self._past[self._next % past] = row
        self._next += 1
        return row
