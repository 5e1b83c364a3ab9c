"""The interface and the result that all approaches to private ERM share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from dp_accounting import dp_event as dp
from numpy.typing import ArrayLike, NDArray

from fedprivacy.accounting.epsilon import Accounted, epsilon
from fedprivacy.erm.assumptions import ErmAssumption
from fedprivacy.erm.conditions import size_is_public
from fedprivacy.erm.objective import Objective
from fedprivacy.errors import InputError
from fedprivacy.guarantees.statement import Guarantee
from fedprivacy.mechanisms.combinations import publishes_one
from fedprivacy.mechanisms.gaussian import Gaussian
from fedprivacy.mechanisms.ranges import check_adjacency, check_epsilon

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Estimate:
    """A private estimate and its guarantee.

    Args:
        theta: The estimate, float64, shape (d,).
        approach: Which approach made it: a name of `fedprivacy.erm.APPROACHES`.
        guarantee: Epsilon, delta, unit, adjacency, observer and assumptions.
        noise: The standard deviation of the noise in each coordinate of its target: the solution, the
            objective's linear term, a mean gradient, or a sum of products; 0 without noise.
        words: The amount of noise, in words.
        event: The release, as the ledger stores it; None if no accountant composes it, so that the guarantee
            composes by `accounting.composition` alone.
    """

    theta: Vector
    approach: str
    guarantee: Guarantee
    noise: float
    words: str
    event: dp.DpEvent | None


@dataclass(frozen=True)
class Approach(ABC):
    """A private approach to an objective, by a curator with all records.

    Args:
        objective: The function to minimise; see `Objective`.
        epsilon: The budget of the estimate, from 1e-6 to 1e4.
        delta: In [0, 1); 0 for pure epsilon-DP.
        adjacency: "replace-one", "add-remove" or "zero-out", of one record.
        clip: Scales rows longer than 1 to norm 1 instead of refusing them; the guarantee states it.

    Raises:
        InputError: A value is out of range, or a condition of the theorem does not hold.
    """

    objective: Objective
    epsilon: float
    delta: float = 0.0
    adjacency: str = "replace-one"
    clip: bool = False
    name: ClassVar[str]
    title: ClassVar[str]

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        check_adjacency(self.adjacency)
        if not 0 <= self.delta < 1:
            raise InputError(f"delta = {self.delta}: must be at least 0 and below 1.")
        if publishes_one(self.delta, self.objective.records):
            raise InputError(
                f"delta = {self.delta:g}: must be below 1/(number of records) = "
                f"{1 / self.objective.records:.2g}: "
                "else a mechanism that publishes one whole record would pass."
            )

    @abstractmethod
    def fit(self, x: ArrayLike, y: ArrayLike, stream: np.random.Generator) -> Estimate:
        """A private estimate.

        Args:
            x: Features, shape (n, d), of norm at most 1 each.
            y: Targets, shape (n,): -1 or 1, or numbers in [-1, 1], as the loss requires.
            stream: The random stream of this release, and of no other.

        Raises:
            InputError: A condition does not hold. The message reveals data: for their owner only.
            RunError: The minimum was not found to within the tolerance that the noise is made for.
        """

    @property
    @abstractmethod
    def words(self) -> str:
        """The amount of noise, in words."""

    @abstractmethod
    def event(self) -> dp.DpEvent | None:
        """The event of one estimate; None where no accountant has one."""

    def spent(self) -> Accounted:
        """The epsilon of one estimate at `delta`, and the accountant that computed it."""
        event = self.event()
        assert event is not None  # else overridden
        return epsilon(event, self.delta, self.adjacency)

    def assumptions(self) -> tuple[str, ...]:
        """The assumptions of the guarantee, apart from those about the noise."""
        assumptions = [
            size_is_public(self.adjacency, self.objective.records),
            f"every record has ||x|| <= 1 and a loss of slope at most {self.objective.loss.lipschitz:g}",
        ]
        if self.clip:
            assumptions.append(ErmAssumption.CLIPPED)
        return (*assumptions, ErmAssumption.SETTINGS_PUBLIC)

    @property
    def sampling(self) -> str:
        """Which records a release looks at, in words."""
        return "all records"

    @property
    def rounds(self) -> int:
        """The number of noisy releases."""
        return 1

    @cached_property
    def guarantee(self) -> Guarantee:
        """The guarantee against an observer of the estimate, if the noise is `ErmAssumption.DRAWN`."""
        spent = self.spent()
        return Guarantee.stated(
            observer="outsider",
            trust="central",
            epsilon=spent.epsilon,
            delta=self.delta,
            unit="example",
            adjacency=self.adjacency,
            sampling=self.sampling,
            rounds=self.rounds,
            accountant=spent.accountant,
            assumptions=self.assumptions(),
            of="estimate",
        )

    @property
    @abstractmethod
    def noise(self) -> float:
        """The standard deviation of the noise; see `Estimate`."""

    def _estimate(self, theta: Vector) -> Estimate:
        promised = self.guarantee.but(assumptions=(*self.guarantee.assumptions, ErmAssumption.DRAWN))
        return Estimate(theta, self.name, promised, self.noise, self.words, self.event())


def gaussian_for(sensitivity: float, epsilon: float, delta: float, adjacency: str) -> Gaussian:
    """Gaussian noise for a vector of an L2 sensitivity under an adjacency, calibrated exactly.

    `Gaussian` counts its noise in clipping norms, of which replace-one moves two.
    """
    bound = sensitivity / 2 if adjacency == "replace-one" else sensitivity
    return Gaussian.calibrated(epsilon, delta, adjacency, bound)


def project(theta: Vector, radius: float | None) -> Vector:
    """The nearest point of the ball of a radius, which is post-processing; None leaves theta as it is."""
    norm = float(np.linalg.norm(theta))
    return theta if radius is None or norm <= radius else theta * (radius / norm)


def check_radius(radius: float | None) -> None:
    """Raises InputError: The radius is not from 1e-12 to 1e12."""
    if radius is not None and not 1e-12 <= radius <= 1e12:
        raise InputError(f"radius = {radius}: must be from 1e-12 to 1e12; 1 to 10 is usual.")
