"""The regularised empirical risk: its derivatives, and how far one record moves its minimum."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedprivacy.erm.conditions import check_records, checked_rows
from fedprivacy.erm.losses import Loss
from fedprivacy.errors import InputError
from fedprivacy.mechanisms.ranges import check_adjacency, check_size

Vector = NDArray[np.float64]
MOST_RECORDS = 10**9
LEAST_REGULARISATION, MOST_REGULARISATION = 1e-12, 1e6  # or 0


@dataclass(frozen=True)
class Objective:
    """J(theta) = (1/m) sum_i phi(x_i.theta, y_i) + (lambda/2) ||theta||^2, without an intercept.

    (One lecture writes the regulariser without its 1/2: its lambda is half of this one.) m is a *public*
    number: that of the records under replace-one and zero-out, a public guess under add-remove, where the
    number of records is private. For an intercept give x a constant column, within ||x|| <= 1.

    Args:
        loss: phi.
        regularisation: lambda, 0 or from 1e-12 to 1e6; approaches that need strong convexity require more
            than 0.
        records: m, from 1 to 1e9.
        dimension: d, the number of features.

    Raises:
        InputError: A value is out of range.
    """

    loss: Loss
    regularisation: float
    records: int
    dimension: int

    def __post_init__(self) -> None:
        strength = self.regularisation
        if strength != 0 and not LEAST_REGULARISATION <= strength <= MOST_REGULARISATION:
            raise InputError(
                f"regularisation = {strength}: must be 0, or from {LEAST_REGULARISATION:g} to "
                f"{MOST_REGULARISATION:g}; 1e-3 is usual."
            )
        check_size("records", self.records)
        check_size("dimension", self.dimension)
        if self.records > MOST_RECORDS:
            raise InputError(f"records = {self.records}: must be at most {MOST_RECORDS:g}.")

    def data(self, x: ArrayLike, y: ArrayLike, adjacency: str, clip: bool = False) -> tuple[Vector, Vector]:
        """The records, checked; see `conditions.checked_rows`.

        Raises:
            InputError: A condition does not hold.
        """
        features, targets = checked_rows(x, y, self.dimension, signs=self.loss.signs, clip=clip)
        check_records(len(targets), self.records, adjacency)
        return features, targets

    def value(self, theta: Vector, x: Vector, y: Vector) -> float:
        """J(theta)."""
        return self.risk(theta, x, y) + self.regularisation / 2 * float(theta @ theta)

    def risk(self, theta: Vector, x: Vector, y: Vector) -> float:
        """J(theta) without its regulariser."""
        return float(self.loss.value(x @ theta, y).sum()) / self.records

    def gradient(self, theta: Vector, x: Vector, y: Vector) -> Vector:
        """The gradient of J, shape (d,)."""
        return self.gradient_sum(theta, x, y) / self.records + self.regularisation * theta

    def gradient_sum(self, theta: Vector, x: Vector, y: Vector) -> Vector:
        """The sum over records of the gradient of phi, shape (d,); one record moves it by at most L."""
        return np.asarray(self.loss.slope(x @ theta, y) @ x)

    def gradient_sensitivity(self, adjacency: str) -> float:
        """The L2 sensitivity of the sum of gradients: L, or 2 L under replace-one."""
        check_adjacency(adjacency)
        return (2.0 if adjacency == "replace-one" else 1.0) * self.loss.lipschitz

    def solution_sensitivity(self, adjacency: str) -> float:
        """The L2 sensitivity of the exact minimiser: 2 L/(m lambda), or half of it.

        Chaudhuri, Monteleoni and Sarwate 2011, Corollary 8, is the replace-one case. Under add-remove and
        zero-out one gradient of norm at most L is added or removed, and m is fixed: L/(m lambda). The
        Huberised SVM attains both.

        Raises:
            InputError: The objective is not strongly convex.
        """
        return self.gradient_sensitivity(adjacency) / (self.records * self.strong_convexity())

    def strong_convexity(self) -> float:
        """lambda.

        Raises:
            InputError: It is 0.
        """
        if not self.regularisation > 0:
            raise InputError(
                "regularisation = 0: the condition of strong convexity does not hold, and one record could "
                "move the "
                "minimum by any distance. Choose a regularisation above 0, or gradient perturbation."
            )
        return self.regularisation

    def best_regularisation(self, distance_times_lambda: float, radius: float) -> float:
        """sqrt(2 L k)/R, the lambda at which L E||noise|| + lambda R^2/2 is least, E||noise|| = k/lambda.

        It looks at no record.

        Args:
            distance_times_lambda: k, above 0.
            radius: R, the norm of the best theta, or a guess.
        """
        return math.sqrt(2 * self.loss.lipschitz * distance_times_lambda) / radius
