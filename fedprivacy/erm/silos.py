"""Empirical risk minimisation across silos, each with records of its own: who adds the noise.

Under local trust each silo adds its noise before anything leaves it, under central trust the server adds it
once to the sum. For the requests, and for silos that do not answer, see `federated`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np
from dp_accounting import dp_event as dp
from numpy.typing import NDArray

from fedprivacy.accounting.epsilon import epsilon
from fedprivacy.erm.approach import Approach
from fedprivacy.erm.assumptions import ErmAssumption
from fedprivacy.erm.conditions import check_records, checked_rows
from fedprivacy.erm.federated import (
    Federated,
    Held,
    Leading,
    Records,
    Trust,
    purpose_of,
)
from fedprivacy.erm.gradient_perturbation import GradientPerturbation
from fedprivacy.errors import InputError
from fedprivacy.guarantees.statement import Guarantee
from fedprivacy.mechanisms.combinations import publishes_one
from fedprivacy.randomness.streams import Streams

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class OneShotAverage(Federated):
    """Each silo sends one private estimate, and the server averages them, weighted by their public sizes.

    For epsilon equal to that of one curator the noise on the average of K equal silos is sqrt(K) times as
    large, and the average of minima is not the minimum of all: its distance falls with the records of a silo,
    not of all. The estimate of a silo that does not answer counts as 0, with its weight.

    Args:
        approach: That of each silo, in whose objective `records` is replaced.
        sizes: The public number of records of each silo.

    Raises:
        InputError: A value is out of range for the approach; with small silos a condition may not hold. delta
            is not below 1/(the number of all silos' records): each of them could be the one that is given
            away, however few its own silo has.
    """

    approach: Approach
    sizes: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.sizes:
            raise InputError("sizes: there must be at least one silo.")
        _ = self.approaches
        if publishes_one(self.approach.delta, self.records):
            raise InputError(
                f"delta = {self.approach.delta:g}: must be below 1/(number of all {len(self.sizes)} silos' "
                f"records) = {1 / self.records:.2g}: else a mechanism that publishes one whole record would "
                "pass."
            )

    @property
    def trust(self) -> Trust:
        """ "local": a silo's estimate is private when it leaves."""
        return "local"

    @property
    def name(self) -> str:
        """As `Federated` has it."""
        return self.approach.name

    @property
    def steps(self) -> int:
        """One."""
        return 1

    @property
    def records(self) -> int:
        """The public number of all silos' records."""
        return sum(self.sizes)

    @cached_property
    def approaches(self) -> tuple[Approach, ...]:
        """The approach of each silo; those of one size share theirs, whose noise is then made once."""
        objective = self.approach.objective
        of_size = {
            size: replace(self.approach, objective=replace(objective, records=size))
            for size in dict.fromkeys(self.sizes)
        }
        return tuple(of_size[size] for size in self.sizes)

    @cached_property
    def purpose(self) -> str:
        """Keeps its random streams apart from those of other releases."""
        return purpose_of(self)

    def held(self, records: Sequence[Records]) -> list[Held]:
        """As `Federated` has it."""
        if len(records) != len(self.sizes):
            raise InputError(
                f"{len(records)} silos, and there are sizes of {len(self.sizes)}: give each silo's own."
            )
        # Each silo's own approach checks the conditions.
        return [(np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)) for x, y in records]

    def check_point(self, theta: Vector) -> None:
        """As for `Federated`: accepts every point, since none is used."""

    def tell(
        self, silo: int, silos: int, records: Held, theta: Vector, step: int, streams: Streams
    ) -> Vector:
        """As for `Federated`: the silo's own private estimate, independent of the point."""
        # A stream for each silo: equal noise of two silos would cancel in the difference of their messages.
        return self.approaches[silo].fit(*records, streams.noise(self.purpose, member=silo)).theta

    def lead(self, silos: int, streams: Streams) -> Leading:
        """As `Federated` has it."""
        estimates = yield np.zeros(self.approach.objective.dimension)
        yield (np.asarray(self.sizes) / self.records) @ estimates

    def noise(self, silos: int) -> float:
        """As `Federated` has it."""
        return math.sqrt(
            sum(
                (size / self.records * approach.noise) ** 2
                for size, approach in zip(self.sizes, self.approaches, strict=True)
            )
        )

    def guarantees(self, silos: int) -> tuple[Guarantee, ...]:
        """As `Federated` has it: each silo's estimate has the same guarantee, whichever others answer."""
        worst = max((approach.guarantee for approach in self.approaches), key=lambda g: g.epsilon or 0.0)
        sizes = f"the numbers of records of the {len(self.sizes)} silos are public, {self.records:,} in all"
        if self.approach.adjacency == "add-remove":
            sizes = f"the sizes of the {len(self.sizes)} silos are public guesses"
        assumptions = (sizes, ErmAssumption.ONE_SILO, *self._assumptions())
        return tuple(
            worst.but(observer=observer, trust="local", assumptions=assumptions)
            for observer in ("server", "participant", "outsider")
        )

    def _assumptions(self) -> list[str]:
        """The other assumptions of the silos' guarantees: shared ones, and those of single silos."""
        by_size = {
            approach.objective.records: approach.guarantee.assumptions[1:] for approach in self.approaches
        }
        assumptions: dict[str, None] = {}
        for size, stated in by_size.items():
            for assumption in stated:
                shared = all(assumption in other for other in by_size.values())
                where = (
                    "in each silo "
                    if ErmAssumption.of(assumption) is ErmAssumption.CROWDED
                    else ""
                    if shared
                    else f"in silos of {size:,} records "
                )
                assumptions[where + assumption] = None
        return [*assumptions]

    def event_against(self, observer: str, silos: int) -> dp.DpEvent | None:
        """As `Federated` has it: every observer is assumed to see each silo's estimate."""
        return self.approach.event()

    def words(self, silos: int) -> str:
        """As `Federated` has it."""
        of_size = dict(sorted(zip(self.sizes, self.approaches, strict=True), key=lambda pair: pair[0]))
        if len(of_size) == 1:
            return f"in each of {silos} silos {self.approaches[0].words}"
        ends = [(size, of_size[size].words) for size in (min(of_size), max(of_size))]
        return f"in each of {silos} silos its own: " + "; ".join(f"of {n:,} records {w}" for n, w in ends)


@dataclass(frozen=True)
class SiloGradients(Federated):
    """Noisy projected gradient descent whose sums of gradients come from silos, all of them at every step.

    At the same epsilon, the noise on the sum of K silos is sqrt(K) times as large under local trust as under
    central trust, which protects nobody from the server. The sum of a silo that does not answer counts as 0,
    and the denominator stays.

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

    @property
    def name(self) -> str:
        """As `Federated` has it."""
        return self.gradient.name

    @property
    def steps(self) -> int:
        """As `Federated` has it."""
        return self.gradient.steps

    def noise(self, silos: int) -> float:
        """The standard deviation of the noise in each coordinate of the silos' mean gradient."""
        return self.gradient.noise * (math.sqrt(silos) if self.trust == "local" else 1.0)

    def held(self, records: Sequence[Records]) -> list[Held]:
        """As `Federated` has it."""
        gradient, objective = self.gradient, self.gradient.objective
        silos_with_records = [
            checked_rows(x, y, objective.dimension, signs=objective.loss.signs, clip=gradient.clip)
            for x, y in records
        ]
        check_records(sum(len(y) for _, y in silos_with_records), objective.records, gradient.adjacency)
        return silos_with_records

    def check_point(self, theta: Vector) -> None:
        """As `Federated` has it: only within the radius, where all iterates are."""
        self.gradient.check_iterate(theta)

    def tell(
        self, silo: int, silos: int, records: Held, theta: Vector, step: int, streams: Streams
    ) -> Vector:
        """As `Federated` has it: the sum of the gradients of the silo's batch."""
        self.check_point(theta)
        stream = streams.noise(f"{self._purpose(silos)}/silo", round=step, member=silo)
        release = self.gradient.noiseless(theta, *records, stream)
        if self.trust == "local":
            release = release + self.gradient.mechanism.draw(len(theta), stream)
        return release

    def lead(self, silos: int, streams: Streams) -> Leading:
        """As `Federated` has it: under central trust the noise is drawn here, once a step."""
        descent = self.gradient.descent(self.noise(silos))
        theta = next(descent)
        for step in range(self.steps):
            total = (yield theta).sum(axis=0)
            if self.trust == "central":
                # On the sum, also if silos are missing: the noise must not depend on the silos that answer.
                stream = streams.noise(f"{self._purpose(silos)}/server", round=step)
                total += self.gradient.mechanism.draw(len(theta), stream)
            theta = descent.send(total)
        yield theta

    def excess_bound(self, silos: int) -> float:
        """`GradientPerturbation.excess_bound`, with the noise of several silos."""
        return self.gradient.excess_bound(self.noise(silos))

    def guarantees(self, silos: int) -> tuple[Guarantee, ...]:
        """As `Federated` has it.

        Under local trust the two latter see sums alone, with the noise of all silos (but the participant's
        own).
        """
        base = self.gradient.guarantee
        shared = (*base.assumptions, ErmAssumption.ONE_SILO)
        if self.trust == "central":
            nobody = base.but(
                observer="server",
                epsilon=None,
                delta=None,
                accountant=None,
                assumptions=(ErmAssumption.SERVER_TRUSTED,),
            )
            observers = (
                base.but(observer=who, assumptions=(*shared, ErmAssumption.SERVER_TRUSTED))
                for who in ("participant", "outsider")
            )
            return (nobody, *observers)
        local = base.but(trust="local", observer="server", assumptions=shared)
        return (local, *(self._summed(local, who, silos) for who in ("participant", "outsider")))

    def event_against(self, observer: str, silos: int) -> dp.DpEvent:
        """As `Federated` has it: under local trust the server is shown a silo's sums, others those of all.

        A participant knows the noise of its own silo, which therefore does not count. Under central trust
        this is what others than the server see.
        """
        if self.trust == "central":
            return self.gradient.event()
        hidden = {"server": 1, "participant": max(silos - 1, 1), "outsider": silos}
        return self.gradient.event_of(hidden[observer])

    def words(self, silos: int) -> str:
        """As `Federated` has it."""
        return f"noise of standard deviation {self.noise(silos):.4g} on the mean gradient of {silos} silos"

    @cached_property
    def _purpose(self) -> Callable[[int], str]:
        """Distinguishes the random streams of the silos from those of other releases."""
        return lru_cache(lambda silos: purpose_of((self, silos)))

    def _summed(self, local: Guarantee, observer: str, silos: int) -> Guarantee:
        """The guarantee against who sees sums of all silos."""
        event = self.event_against(observer, silos)
        spent = epsilon(event, self.gradient.delta, self.gradient.adjacency)
        return local.but(
            observer=observer,
            epsilon=spent.epsilon,
            accountant=spent.accountant,
            assumptions=(*local.assumptions, ErmAssumption.NOISE_SECRET),
        )
