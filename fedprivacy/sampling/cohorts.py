"""Samplers of the server's cohorts, each with the DpEvent of its draw."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np
from dp_accounting import dp_event as dp
from numpy.typing import NDArray

from fedprivacy.errors import InputError
from fedprivacy.randomness.streams import Streams
from fedprivacy.sampling.group_limit import most_groups

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
        self,
        population: int,
        stream: np.random.Generator,
        round: int = 0,
        rates: NDArray[np.float64] | None = None,
    ) -> Ids:
        """The ids of a round's cohort, sorted, shape (cohort,); it may be empty.

        Args:
            population: The number of clients.
            stream: The random stream of this round's draw.
            round: The round, which is of no matter.
            rates: The rate of each client, shape (population,), where groups have their own; they change no
                client's coin.
        """
        return _coins(population, self.rate if rates is None else rates, stream)

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

    def draw(self, population: int, stream: np.random.Generator, round: int = 0) -> Ids:
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

    def draw(self, population: int, stream: np.random.Generator, round: int = 0) -> Ids:
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

    def draw(self, population: int, stream: np.random.Generator, round: int = 0) -> Ids:
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


@dataclass(frozen=True)
class CyclicPoissonSampling:
    """Clients are dealt to groups; in round t the group t mod `groups` alone is sampled, by Poisson coins.

    A client participates in every `groups`-th round at most, by a coin of chance rate x groups. The groups
    are public: the guarantee conditions on them, and rests on the coins within the group, which are secret.

    Args:
        rate: q, the share of all clients that a round has on average, in (0, 1].
        groups: b, from 1; rate x groups is at most 1. One group is Poisson sampling.

    Raises:
        InputError: A number is out of range.

    Source: Choquette-Choo et al. 2023, "(Amplified) banded matrix factorization", cyclic Poisson sampling.
    """

    rate: float
    groups: int
    name: ClassVar[str] = "cyclic-poisson"

    def __post_init__(self) -> None:
        if not 0 < self.rate <= 1 or not 1 <= self.groups <= most_groups(self.rate):
            raise InputError(
                f"cyclic Poisson sampling of {self.groups} groups at rate {self.rate:g}: groups must be at "
                "least 1, and rate x groups above 0 and at most 1."
            )

    @property
    def rate_in_group(self) -> float:
        """The chance of a client in a round of its group."""
        return min(1.0, self.rate * self.groups)

    def members(self, population: int, round: int) -> Ids:
        """The ids of the group of a round, sorted; no two groups differ by more than one client."""
        return _dealt(population, self.groups)[round % self.groups]

    def draw(self, population: int, stream: np.random.Generator, round: int) -> Ids:
        """The ids of a round's cohort, sorted, shape (cohort,); it may be empty."""
        members = self.members(population, round)
        return members[_coins(len(members), self.rate_in_group, stream)]

    def event(self, release: dp.DpEvent, population: int) -> dp.DpEvent:
        """The event of a release about a cohort drawn so, for a client of the group."""
        # A client is in every `groups`-th round at most: `Plan.charged` counts those.
        return dp.PoissonSampledDpEvent(self.rate_in_group, release)

    def expected_cohort(self, population: int) -> float:
        """The mean cohort size over rounds: the fixed denominator of the average."""
        return self.rate * population

    @property
    def words(self) -> str:
        """In plain words."""
        if self.groups == 1:
            return f"Poisson sampling at rate {self.rate:g}"
        return (
            f"cyclic Poisson sampling: {self.groups} groups in turn, at rate {self.rate_in_group:g} within "
            "the group"
        )


def _coins(clients: int, rate: float | NDArray[np.float64], stream: np.random.Generator) -> Ids:
    """The places of those whose coins, one for each, come up at a rate, or each at its own; sorted."""
    # Empty cohorts too: drawing again until somebody is in would be another distribution.
    blocks = [
        start
        + np.flatnonzero(
            stream.random(min(_BLOCK, clients - start))
            < (rate if isinstance(rate, float) else rate[start : start + _BLOCK])
        )
        for start in range(0, clients, _BLOCK)
    ]
    return np.concatenate(blocks) if blocks else np.arange(0)


@lru_cache(maxsize=2)
def _dealt(population: int, groups: int) -> tuple[Ids, ...]:
    """The members of each group, dealt like cards from a shuffled deck, each sorted.

    The shuffle is fixed and public: it depends on nothing but the number of clients, neither on data nor on
    the seed of a run.
    """
    if groups == 1:
        return (np.arange(population),)
    deck = Streams(0).stream("groups").permutation(population)
    return tuple(np.sort(deck[first::groups]) for first in range(groups))


Sampler = PoissonSampling | FixedSampling | AllSampling | SeparatedSampling | CyclicPoissonSampling
SAMPLERS: dict[str, type[Sampler]] = {
    kind.name: kind
    for kind in (PoissonSampling, FixedSampling, AllSampling, SeparatedSampling, CyclicPoissonSampling)
}
