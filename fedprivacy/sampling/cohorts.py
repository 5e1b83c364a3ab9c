"""Samplers of the server's cohorts, each with the DpEvent of its draw."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from dp_accounting import dp_event as dp
from numpy.typing import NDArray

Ids = NDArray[np.int64]

_BLOCK = 65_536  # coins in memory at once; the same coins as all at once


@dataclass(frozen=True)
class PoissonSampling:
    """Each client participates by its own coin, independently of all others.

    Args:
        rate: The probability q that a client participates in a round, in (0, 1].
    """

    rate: float
    name: ClassVar[str] = "poisson"

    def draw(
        self, population: int, stream: np.random.Generator, rates: NDArray[np.float64] | None = None
    ) -> Ids:
        """The ids of a round's cohort, sorted, shape (cohort,); it may be empty.

        Args:
            population: The number of clients.
            stream: The random stream of this round's draw.
            rates: The rate of each client, shape (population,), where groups have their own; they change no
                client's coin.
        """
        each = np.full(1, self.rate) if rates is None else rates
        # Empty cohorts too: drawing again until somebody is in would be another distribution.
        blocks = [
            start
            + np.flatnonzero(
                stream.random(min(_BLOCK, population - start))
                < (each if rates is None else each[start : start + _BLOCK])
            )
            for start in range(0, population, _BLOCK)
        ]
        return np.concatenate(blocks) if blocks else np.arange(0)

    def event(self, release: dp.DpEvent, population: int) -> dp.DpEvent:
        """The event of a release about a cohort drawn so."""
        # For independent coins alone: a shuffled pass that is cut into cohorts of the same size is another
        # mechanism, for which this event may state too small an epsilon.
        return dp.PoissonSampledDpEvent(self.rate, release)

    def expected_cohort(self, population: int) -> float:
        """The mean cohort size: the fixed denominator of the average."""
        return self.rate * population

    @property
    def words(self) -> str:
        """In plain words."""
        return f"Poisson sampling at rate {self.rate:g}"


@dataclass(frozen=True)
class FixedSampling:
    """A uniform subset of fixed size, without replacement.

    Args:
        cohort: The number of clients in each round.
    """

    cohort: int
    name: ClassVar[str] = "fixed"

    def draw(self, population: int, stream: np.random.Generator) -> Ids:
        """The ids of a round's cohort, sorted, shape (min(cohort, population),)."""
        size = min(self.cohort, population)
        return np.sort(stream.choice(population, size=size, replace=False, shuffle=False))

    def event(self, release: dp.DpEvent, population: int) -> dp.DpEvent:
        """The event of a release about a cohort drawn so; a cohort of everybody is no sampling."""
        if self.cohort >= population:
            return release
        # Without replacement in fact, as the event states: a sampler that repeats a client within a cohort
        # moves the sum by a multiple of C, which this event does not cover.
        return dp.SampledWithoutReplacementDpEvent(population, self.cohort, release)

    def expected_cohort(self, population: int) -> float:
        """The cohort size: the fixed denominator of the average."""
        return float(self.cohort)

    @property
    def words(self) -> str:
        """In plain words."""
        return f"fixed-size sampling of {self.cohort} clients"


@dataclass(frozen=True)
class AllSampling:
    """Every client in every round."""

    name: ClassVar[str] = "all"

    def draw(self, population: int, stream: np.random.Generator) -> Ids:
        """All ids, shape (population,)."""
        return np.arange(population)

    def event(self, release: dp.DpEvent, population: int) -> dp.DpEvent:
        """No sampling: the release itself."""
        return release

    def expected_cohort(self, population: int) -> float:
        """The population: the fixed denominator of the average."""
        return float(population)

    @property
    def words(self) -> str:
        """In plain words."""
        return "all clients in every round"


@dataclass(frozen=True)
class SeparatedSampling:
    """Each client participates at most once in `separation` consecutive rounds; cohorts may be public.

    The draw among the eligible clients does not matter for privacy: the guarantee relies on the separation
    alone, which the ledger enforces (`Ledger.eligible`, `Ledger.request`).

    Args:
        cohort: The number of clients in each round.
        separation: b, the least number of rounds from one answer of a client to its next; 1: any round.

    Source: Choquette-Choo et al. 2023, "(Amplified) banded matrix factorization", b-min-sep participation.
    """

    cohort: int
    separation: int
    name: ClassVar[str] = "separated"

    def draw(self, population: int, stream: np.random.Generator) -> Ids:
        """A round's cohort as indices of the eligible clients, sorted, shape (min(cohort, population),)."""
        return FixedSampling(self.cohort).draw(population, stream)

    def event(self, release: dp.DpEvent, population: int) -> dp.DpEvent:
        """The release itself, without amplification: the cohort is public."""
        # Amplification by sampling needs a secret cohort, and this one may be public.
        return release

    def expected_cohort(self, population: int) -> float:
        """The cohort size: the fixed denominator of the average."""
        return float(self.cohort)

    @property
    def words(self) -> str:
        """In plain words."""
        return f"cohorts of {self.cohort} clients, each asked at most once in {self.separation} rounds"


Sampler = PoissonSampling | FixedSampling | AllSampling | SeparatedSampling
SAMPLERS: dict[str, type[Sampler]] = {
    kind.name: kind for kind in (PoissonSampling, FixedSampling, AllSampling, SeparatedSampling)
}
