"""Objective perturbation: a random linear term in the objective, whose minimum is published.

Chaudhuri, Monteleoni and Sarwate 2011, Algorithm 2 (epsilon-DP); Kifer, Smith and Thakurta 2012, Algorithm 1
((epsilon, delta)-DP); what it costs is computed more tightly here, see `tilted`. Their theorems are of the
exact minimum, which no solver finds: it stops within a certified distance, and noise for that distance is
added to the solution (approximate minima perturbation: Iyengar et al. 2019), from a share of the budget.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
from dp_accounting import dp_event as dp
from numpy.typing import ArrayLike, NDArray

from fedprivacy.accounting.epsilon import Accounted
from fedprivacy.accounting.optimal_composition import PureDpEvent
from fedprivacy.erm.approach import Approach, Estimate, check_radius, gaussian_for, project
from fedprivacy.erm.assumptions import ErmAssumption
from fedprivacy.erm.conditions import check_crowd
from fedprivacy.erm.objective import MOST_REGULARISATION, Objective
from fedprivacy.erm.objective_accounting import tilted_mu
from fedprivacy.erm.output_perturbation import check_tolerance
from fedprivacy.erm.solver import check_reachable, minimise
from fedprivacy.errors import InputError
from fedprivacy.mechanisms.gaussian import Gaussian
from fedprivacy.mechanisms.norm import NormMechanism

Vector = NDArray[np.float64]
LEAST = 1e-6  # of epsilon, that b needs


@dataclass(frozen=True)
class ObjectivePerturbation(Approach):
    """The minimum of m J + b.theta, with b of the norm mechanism at delta = 0, Gaussian at a delta above.

    Of epsilon the Hessian of a record costs ln(1 + beta/(m lambda)), the solver's tolerance `solver_share`,
    and b has the rest, which must be more than 0: a condition on lambda.

    Args:
        tolerance: The distance from the exact minimum at which the solver may stop, in units of L/(m lambda).
        solver_share: The share of epsilon and delta for the noise that hides the solver's stopping point.
        raise_regularisation: Where the Hessian costs more than half of epsilon, takes the lambda at which it
            costs half (as Chaudhuri et al. do); the estimate is then of that objective, as the result
            states.
        radius: Projects the estimate onto the ball of this radius, which costs nothing; None does not.

    Raises:
        InputError: The Hessian costs all of epsilon; the message names a sufficient lambda.
    """

    tolerance: float = 1e-6
    solver_share: float = 0.01
    raise_regularisation: bool = False
    radius: float | None = None
    name: ClassVar[str] = "objective-perturbation"
    title: ClassVar[str] = "objective perturbation"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.objective.strong_convexity()
        check_tolerance(self.tolerance)
        check_radius(self.radius)
        if not 0 < self.solver_share < 1:
            raise InputError(f"solver_share = {self.solver_share}: must lie between 0 and 1; 0.01 is usual.")
        if self.left < LEAST:
            least = self._regularisation_for(self.epsilon * (1 - self.solver_share) / 2)
            raise InputError(
                f"regularisation = {self.objective.regularisation:g}: the condition lambda > beta/(m "
                f"(e^epsilon - "
                f"1)) does not hold: the Hessian of one record costs {self.hessian_cost(self.solved):.3g}, "
                f"and "
                f"epsilon is {self.epsilon:g}. Choose at least {least:.3g}, or raise_regularisation=True "
                f"takes it."
            )
        # A linear term so long has a probability of e^-40 and less.
        longest = 40 * math.sqrt(self.objective.dimension) * self.noise / self.objective.records
        check_reachable(self.solved, self.distance, longest)

    def hessian_cost(self, objective: Objective) -> float:
        """ln(1 + beta/(m lambda)): the change of the density's determinant by one record."""
        strength = objective.records * objective.regularisation
        return math.log1p(objective.loss.smoothness / strength)

    def _regularisation_for(self, cost: float) -> float:
        return self.objective.loss.smoothness / (self.objective.records * math.expm1(min(cost, 700.0)))

    @cached_property
    def solved(self) -> Objective:
        """The minimised objective, with more regularisation if allowed and needed."""
        most = self.epsilon * (1 - self.solver_share) / 2
        if self.raise_regularisation and self.hessian_cost(self.objective) > most:
            needed = self._regularisation_for(most)
            if needed > MOST_REGULARISATION:
                raise InputError(
                    f"raise_regularisation = True: at epsilon = {self.epsilon:g} a record's Hessian asks for "
                    f"a regularisation of {needed:.3g}, and at most {MOST_REGULARISATION:g} is possible. "
                    "Choose a larger epsilon, or a loss of less smoothness."
                )
            return replace(self.objective, regularisation=needed)
        return self.objective

    @property
    def left(self) -> float:
        """The part of epsilon for b."""
        return self.epsilon * (1 - self.solver_share) - self.hessian_cost(self.solved)

    @property
    def distance(self) -> float:
        """The largest L2 distance from the exact minimum at which the solver may stop."""
        return self.tolerance * self.solved.solution_sensitivity("zero-out")

    @cached_property
    def linear(self) -> NormMechanism | Gaussian:
        """The mechanism that draws b, of the sum's gradient."""
        sensitivity = self.solved.gradient_sensitivity(self.adjacency)
        if self.delta == 0:
            return NormMechanism(self.left, sensitivity, self.objective.dimension)
        directions = min(2 if self.adjacency == "replace-one" else 1, self.objective.dimension)
        mu = tilted_mu(self.left, self.delta * (1 - self.solver_share), directions)
        return Gaussian(1.0, sensitivity / mu)

    @cached_property
    def output(self) -> NormMechanism | Gaussian:
        """The mechanism that hides the solver's stopping point: two solutions differ by at most twice it."""
        share = self.epsilon * self.solver_share
        if self.delta == 0:
            return NormMechanism(share, 2 * self.distance, self.objective.dimension)
        return gaussian_for(2 * self.distance, share, self.delta * self.solver_share, self.adjacency)

    @property
    def noise(self) -> float:
        """The standard deviation of each coordinate of b, in units of a gradient."""
        return deviation(self.linear)

    def event(self) -> dp.DpEvent | None:
        """Pure epsilon-DP at delta = 0; else None: no accountant has an event for it."""
        return PureDpEvent(self.epsilon) if self.delta == 0 else None

    def spent(self) -> Accounted:
        """As `Approach` has it: the parts add up to epsilon and delta."""
        return Accounted(self.epsilon, "density of a perturbed minimum")

    def assumptions(self) -> tuple[str, ...]:
        """As `Approach` has it."""
        raised = (
            (
                f"the regularisation was raised to {self.solved.regularisation:.4g}, which depends on no "
                f"record",
            )
            if self.solved is not self.objective
            else ()
        )
        crowded = (ErmAssumption.CROWDED,) if self.adjacency == "add-remove" else ()
        return (*super().assumptions(), ErmAssumption.RANK_ONE, *crowded, *raised)

    def fit(self, x: ArrayLike, y: ArrayLike, stream: np.random.Generator) -> Estimate:
        """As `Approach` has it."""
        features, targets = self.objective.data(x, y, self.adjacency, self.clip)
        check_crowd(len(targets), self.objective.records)
        zero = np.zeros(self.objective.dimension)
        tilt = added(self.linear, zero, stream) / self.objective.records
        # The guarantee is the density of the exact minimum. The noise of `output` hides that the solver stops
        # before it (Iyengar et al. 2019).
        theta = minimise(self.solved, features, targets, self.distance, tilt)
        noisy = added(self.output, theta, stream)
        return self._estimate(project(noisy, self.radius))

    @property
    def words(self) -> str:
        """As `Approach` has it."""
        return (
            f"a random linear term of standard deviation {self.noise:.4g} in each coordinate of the gradient"
        )

    def excess_bound(self) -> float:
        """E J(estimate) - min J is at most this, J with the regularisation that was taken.

        With a radius only where the minimum lies within it. E||b||^2/(2 lambda m^2) by strong convexity, and
        what the noise for the solver adds, which is little.
        """
        solved, d = self.solved, self.objective.dimension
        tilt = d * self.noise**2 / (2 * solved.regularisation * solved.records**2)
        end = math.sqrt(d) * deviation(self.output) + self.distance
        smooth = solved.loss.smoothness + solved.regularisation
        # (a + b)^2 of the distance from the perturbed minimum's own value, by smoothness and Cauchy's
        # inequality.
        apart = math.sqrt(d) * self.noise / (solved.regularisation * solved.records)
        return tilt + smooth * (apart * end + end**2 / 2)

    def excess_risk_bound(self, radius: float) -> float:
        """On E risk(estimate) - min over ||theta|| <= R of it, both without the regulariser.

        `excess_bound` + lambda R^2/2.

        Args:
            radius: R.
        """
        return self.excess_bound() + self.solved.regularisation / 2 * radius**2


def added(mechanism: NormMechanism | Gaussian, value: Vector, stream: np.random.Generator) -> Vector:
    """A vector with the mechanism's noise, shape (d,)."""
    if isinstance(mechanism, Gaussian):
        return value + mechanism.draw(len(value), stream)
    return mechanism.draw(value, stream)


def deviation(mechanism: NormMechanism | Gaussian) -> float:
    """The standard deviation of the noise in each coordinate."""
    return mechanism.standard_deviation if isinstance(mechanism, Gaussian) else math.sqrt(mechanism.variance)
