"""Empirical risk minimisation across silos, each with records of its own: who adds the noise.

The unit is one record, and each record is in one silo alone: what all silos release together costs what one
releases (parallel composition). Under local trust each silo adds its noise before anything leaves it, under
central trust the server adds it once to the sum.
"""

from __future__ import annotations

import math
from collections.abc import MutableSequence, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import dp_accounting
import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedprivacy.accounting.epsilon import epsilon
from fedprivacy.accounting.statement import Guarantee
from fedprivacy.erm.approach import Approach, Estimate
from fedprivacy.erm.conditions import check_records, checked_rows
from fedprivacy.erm.gradient import GradientPerturbation
from fedprivacy.errors import InputError
from fedprivacy.seeds import Streams

Vector = NDArray[np.float64]
Silo = tuple[ArrayLike, ArrayLike]  # features (n, d) and targets (n,)
Trust = Literal["local", "central"]
ONE_SILO = "each record is in one silo alone"
HONEST = "every silo adds its noise, and tells nobody which"
TRUSTED = "the server is trusted: it sees each silo's exact sums of gradients, and adds the noise"


@dataclass(frozen=True)
class FederatedEstimate:
    """What the silos found together, and what is promised against whom.

    Args:
        theta: The estimate, float64, shape (d,).
        approach: The name of the approach.
        trust: "local" or "central".
        guarantees: Against the server, another participant and an outsider; there is no bare epsilon.
        noise: The standard deviation of the noise in each coordinate, as `Estimate` has it, of what the
            silos' messages average to.
    """

    theta: Vector
    approach: str
    trust: Trust
    guarantees: tuple[Guarantee, ...]
    noise: float


@dataclass(frozen=True)
class OneShotAverage:
    """Each silo sends one private estimate, and the server averages them, weighted by their public sizes.

    For epsilon equal to that of one curator the noise on the average of K equal silos is sqrt(K) times as
    large, and the average of minima is not the minimum of all: its distance falls with the records of a silo,
    not of all.

    Args:
        approach: What each silo does, of whose objective `records` is replaced.
        sizes: The public number of records of each silo.

    Raises:
        InputError: A value is out of range for the approach; with small silos a condition may not hold.
    """

    approach: Approach
    sizes: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.sizes:
            raise InputError("sizes: there must be at least one silo.")
        _ = self.approaches

    @property
    def approaches(self) -> tuple[Approach, ...]:
        """The approach of each silo."""
        objective = self.approach.objective
        return tuple(
            replace(self.approach, objective=replace(objective, records=size)) for size in self.sizes
        )

    def fit(self, silos: Sequence[Silo], streams: Streams) -> FederatedEstimate:
        """The average of the silos' estimates.

        Args:
            silos: The records of each silo.
            streams: Of the run; each silo has its own.

        Raises:
            InputError: There are not as many silos as sizes, or the records of one break a condition.
        """
        _same_number(len(silos), len(self.sizes))
        found = [
            approach.fit(x, y, streams.noise("erm", member=silo))
            for silo, (approach, (x, y)) in enumerate(zip(self.approaches, silos, strict=True))
        ]
        weights = np.asarray(self.sizes) / sum(self.sizes)
        theta = weights @ np.array([estimate.theta for estimate in found])
        noise = math.sqrt(sum((w * e.noise) ** 2 for w, e in zip(weights, found, strict=True)))
        return FederatedEstimate(theta, self.approach.name, "local", self._guarantees(found), noise)

    def _guarantees(self, found: Sequence[Estimate]) -> tuple[Guarantee, ...]:
        worst = max((estimate.guarantee for estimate in found), key=lambda g: g.epsilon or 0.0)
        sizes = f"the numbers of records of the {len(self.sizes)} silos are public"
        if self.approach.adjacency == "add-remove":
            sizes = f"the sizes of the {len(self.sizes)} silos that are reckoned with are public guesses"
        assumptions = (sizes, ONE_SILO, *worst.assumptions[1:])
        return tuple(
            replace(worst, observer=observer, trust="local", assumptions=assumptions)
            for observer in ("server", "participant", "outsider")
        )


@dataclass(frozen=True)
class SiloGradients:
    """Noisy projected gradient descent whose sums of gradients come from silos, all of them at every step.

    At the same epsilon against whoever is promised one, the noise on the sum of K silos is sqrt(K) times as
    large under local trust as under central trust, behind which the server sees everything.

    Args:
        gradient: The descent, of whose objective `records` is the public number of all silos' records.
        trust: "local": each silo adds Gaussian noise to its own sums; "central": the server does.

    Raises:
        InputError: The trust is neither.
    """

    gradient: GradientPerturbation
    trust: Trust = "local"

    def __post_init__(self) -> None:
        if self.trust not in ("local", "central"):
            raise InputError(f'trust = {self.trust!r}: must be "local" or "central".')

    def noise(self, silos: int) -> float:
        """The standard deviation of the noise in each coordinate of a mean gradient of so many silos."""
        return self.gradient.noise * (math.sqrt(silos) if self.trust == "local" else 1.0)

    def fit(
        self, silos: Sequence[Silo], streams: Streams, transcript: MutableSequence[Vector] | None = None
    ) -> FederatedEstimate:
        """The average iterate.

        Args:
            silos: The records of each silo.
            streams: Of the run; each silo and the server have their own.
            transcript: Takes what the server receives at each step, shape (silos, d): for an audit or an
                attack; under central trust it is not private.

        Raises:
            InputError: The records of a silo break a condition, or are not as many in all as the objective
            says.
        """
        gradient, objective = self.gradient, self.gradient.objective
        held = [
            checked_rows(x, y, objective.dimension, signs=objective.loss.signs, clip=gradient.clip)
            for x, y in silos
        ]
        check_records(sum(len(y) for _, y in held), objective.records, gradient.adjacency)

        def summed(theta: Vector, step: int) -> Vector:
            received = np.zeros((len(held), len(theta)))
            for silo, (x, y) in enumerate(held):
                stream = streams.noise("erm", round=step, member=silo)
                received[silo] = gradient.noiseless(theta, x, y, stream)
                if self.trust == "local":
                    received[silo] += gradient.mechanism.draw(len(theta), stream)
            if transcript is not None:
                transcript.append(received)
            total = received.sum(axis=0)
            if self.trust == "central":
                total += gradient.mechanism.draw(len(theta), streams.noise("erm/server", round=step))
            return np.asarray(total)

        noise = self.noise(len(held))
        theta = gradient.descend(summed, noise)
        return FederatedEstimate(theta, gradient.name, self.trust, self.guarantees(len(held)), noise)

    def excess_bound(self, silos: int) -> float:
        """`GradientPerturbation.excess_bound`, with the noise of so many silos."""
        return self.gradient.excess_bound(self.noise(silos))

    def guarantees(self, silos: int) -> tuple[Guarantee, ...]:
        """What is promised against the server, another participant and an outsider.

        Under local trust the two latter see sums alone, with the noise of all silos (but the participant's
        own).
        """
        base = self.gradient.guarantee
        shared = (*base.assumptions, ONE_SILO)
        if self.trust == "central":
            nobody = replace(
                base, observer="server", epsilon=None, delta=None, accountant=None, assumptions=(TRUSTED,)
            )
            told = (
                replace(base, observer=who, assumptions=(*shared, TRUSTED))
                for who in ("participant", "outsider")
            )
            return (nobody, *told)
        local = replace(base, trust="local", observer="server", assumptions=shared)
        return (local, *(self._summed(local, who, silos) for who in ("participant", "outsider")))

    def event_against(self, observer: str, silos: int) -> dp_accounting.DpEvent:
        """What an observer is shown under local trust: the server a silo's sums, others those of all.

        A participant knows the noise of its own silo, which therefore does not count.
        """
        hidden = {"server": 1, "participant": max(silos - 1, 1), "outsider": silos}
        return self.gradient.event_of(hidden[observer])

    def _summed(self, local: Guarantee, observer: str, silos: int) -> Guarantee:
        """The guarantee against who sees sums of all silos."""
        event = self.event_against(observer, silos)
        spent = epsilon(event, self.gradient.delta, self.gradient.adjacency)
        return replace(
            local,
            observer=observer,
            epsilon=spent.epsilon,
            accountant=spent.accountant,
            assumptions=(*local.assumptions, HONEST),
        )


def _same_number(found: int, expected: int) -> None:
    if found != expected:
        raise InputError(f"{found} silos, and there are sizes of {expected}: give each silo's own.")
