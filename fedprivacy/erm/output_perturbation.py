"""Output perturbation: the minimum of the regularised risk, plus noise (Chaudhuri et al. 2011)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from dp_accounting import dp_event as dp
from numpy.typing import ArrayLike, NDArray

from fedprivacy.erm.approach import Approach, Estimate, check_radius, gaussian_for, project
from fedprivacy.erm.assumptions import ErmAssumption
from fedprivacy.erm.conditions import check_crowd
from fedprivacy.erm.solver import check_reachable, minimise
from fedprivacy.errors import InputError
from fedprivacy.mechanisms.gaussian import Gaussian
from fedprivacy.mechanisms.norm import NormMechanism

Vector = NDArray[np.float64]
LEAST_TOLERANCE, MOST_TOLERANCE = 1e-9, 1.0


def check_tolerance(tolerance: float) -> None:
    """Raises InputError: The tolerance is not from 1e-9 to 1."""
    if not LEAST_TOLERANCE <= tolerance <= MOST_TOLERANCE:
        raise InputError(
            f"tolerance = {tolerance}: must be from {LEAST_TOLERANCE:g} to {MOST_TOLERANCE:g}; it is a part "
            f"of the "
            "distance that one record can move the minimum."
        )


@dataclass(frozen=True)
class OutputPerturbation(Approach):
    """The minimum plus noise: of the norm mechanism at delta = 0, Gaussian at a delta above.

    One record moves the exact minimum by `Objective.solution_sensitivity`, the one that a solver finds by
    twice its tolerance more.

    Args:
        tolerance: How far from the exact minimum the solver may stop, as a part of L/(m lambda).
        radius: Projects the noisy estimate onto the ball of this radius, which costs nothing; None does not.
    """

    tolerance: float = 1e-6
    radius: float | None = None
    name: ClassVar[str] = "output-perturbation"
    title: ClassVar[str] = "output perturbation"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.objective.strong_convexity()
        check_tolerance(self.tolerance)
        check_reachable(self.objective, self.distance)
        check_radius(self.radius)

    @property
    def distance(self) -> float:
        """The largest L2 distance from the exact minimum at which the solver may stop."""
        return self.tolerance * self.objective.solution_sensitivity("zero-out")

    @property
    def sensitivity(self) -> float:
        """The L2 sensitivity of the solver's result."""
        # The solutions of two neighbours may both be off by `distance`, in opposite directions.
        return self.objective.solution_sensitivity(self.adjacency) + 2 * self.distance

    @cached_property
    def mechanism(self) -> NormMechanism | Gaussian:
        """The mechanism that draws the noise."""
        if self.delta == 0:
            return NormMechanism(self.epsilon, self.sensitivity, self.objective.dimension)
        return gaussian_for(self.sensitivity, self.epsilon, self.delta, self.adjacency)

    @property
    def noise(self) -> float:
        """The standard deviation of the noise in each coordinate."""
        mechanism = self.mechanism
        return (
            mechanism.standard_deviation if isinstance(mechanism, Gaussian) else math.sqrt(mechanism.variance)
        )

    def event(self) -> dp.DpEvent:
        """As `Approach` has it."""
        return (
            self.mechanism.event()
            if isinstance(self.mechanism, Gaussian)
            else self.mechanism.event(self.adjacency)
        )

    def assumptions(self) -> tuple[str, ...]:
        """As `Approach` has it."""
        crowded = (ErmAssumption.CROWDED,) if self.adjacency == "add-remove" else ()
        return (*super().assumptions(), *crowded)

    def fit(self, x: ArrayLike, y: ArrayLike, stream: np.random.Generator) -> Estimate:
        """As `Approach` has it."""
        features, targets = self.objective.data(x, y, self.adjacency, self.clip)
        check_crowd(len(targets), self.objective.records)
        theta = minimise(self.objective, features, targets, self.distance)
        if isinstance(self.mechanism, Gaussian):
            noisy = theta + self.mechanism.draw(len(theta), stream)
        else:
            noisy = self.mechanism.draw(theta, stream)
        return self._estimate(project(noisy, self.radius))

    @property
    def words(self) -> str:
        """As `Approach` has it."""
        return f"noise of standard deviation {self.noise:.4g} in each coordinate of the solution"

    @property
    def expected_norm(self) -> float:
        """A bound on E||noise||: exact for the norm mechanism, sqrt(d) sigma for Gaussian noise."""
        if isinstance(self.mechanism, Gaussian):
            return math.sqrt(self.objective.dimension) * self.noise
        return self.mechanism.expected_norm

    def excess_bound(self) -> float:
        """E J(estimate) - min J is at most (beta + lambda)/2 E||noise||^2, by smoothness.

        With a radius only where the minimum lies within it.
        """
        smooth = self.objective.loss.smoothness + self.objective.regularisation
        reach = self.noise * math.sqrt(self.objective.dimension) + self.distance
        return smooth / 2 * reach**2

    def excess_risk_bound(self, radius: float) -> float:
        """The lectures' bound on E risk(estimate) - min over ||theta|| <= R of it, without the regulariser.

        L E||noise|| + lambda R^2/2. With the norm mechanism E||noise|| = 2 L d/(m lambda epsilon) under
        replace-one, and half of it under add-remove.

        Args:
            radius: R.
        """
        return (
            self.objective.loss.lipschitz * (self.expected_norm + self.distance)
            + self.objective.regularisation / 2 * radius**2
        )
