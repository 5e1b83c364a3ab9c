"""The minimum of a regularised empirical risk, with a certificate of how far it can be from the exact one.

J is lambda-strongly convex, so that ||theta - theta*|| <= ||gradient J(theta)||/lambda, whatever found theta.
A solver that stops at a gradient of norm tau lambda is within tau of the minimum on *every* data set, which
is what a sensitivity needs; up to the rounding of the gradient itself, some 1e-15.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from fedprivacy.erm.objective import Objective
from fedprivacy.errors import RunError

Vector = NDArray[np.float64]
_STEPS = 500
_HALVINGS = 60


def minimise(
    objective: Objective, x: Vector, y: Vector, tolerance: float, linear: Vector | None = None
) -> Vector:
    """A theta within `tolerance` of the minimum of J(theta) + linear.theta, by Newton's method.

    Args:
        objective: J, with a regularisation above 0.
        x: Features, checked, shape (n, d).
        y: Targets, shape (n,).
        tolerance: In L2, above 0.
        linear: What is added to the gradient, shape (d,); None for nothing.

    Raises:
        InputError: The objective is not strongly convex.
        RunError: Rounding leaves no theta so near; the tolerance must be larger.
    """
    enough = tolerance * objective.strong_convexity()
    tilt = np.zeros(objective.dimension) if linear is None else linear
    theta = np.zeros(objective.dimension)
    gradient = objective.gradient(theta, x, y) + tilt
    for _ in range(_STEPS):
        if np.linalg.norm(gradient) <= enough:
            return theta
        step = np.asarray(-np.linalg.solve(objective.hessian(theta, x, y), gradient), dtype=np.float64)
        theta, gradient = _forward(objective, x, y, tilt, theta, gradient, step)
    raise RunError(
        f"the minimum was not found to within {tolerance:.3g}, which the noise is made for: nothing is "
        f"released. "
        "Choose a larger tolerance, or more regularisation."
    )


def _forward(
    objective: Objective, x: Vector, y: Vector, tilt: Vector, theta: Vector, gradient: Vector, step: Vector
) -> tuple[Vector, Vector]:
    """The next theta and its gradient: the whole step where that halves it, else one that Armijo accepts."""
    length = 1.0
    here = objective.value(theta, x, y) + float(tilt @ theta)
    descent, norm = float(gradient @ step), float(np.linalg.norm(gradient))
    for _ in range(_HALVINGS):
        there = theta + length * step
        slope = objective.gradient(there, x, y) + tilt
        if np.linalg.norm(slope) <= norm / 2:
            return there, slope
        if objective.value(there, x, y) + float(tilt @ there) <= here + 1e-4 * length * descent:
            return there, slope
        length /= 2
    return there, slope


def minimise_within(objective: Objective, x: Vector, y: Vector, radius: float) -> Vector:
    """The minimum of J over ||theta|| <= radius, to compare with: not private, and no sensitivity is claimed.

    By its Lagrangian: J plus just as much more regularisation as brings the norm down to the radius. Without
    any regularisation J is found to within 1e-6 R^2.
    """

    def solved(more: float) -> Vector:
        regularised = Objective(
            objective.loss, objective.regularisation + more, objective.records, objective.dimension
        )
        return minimise(regularised, x, y, 1e-9 * max(1.0, radius))

    least = 0.0 if objective.regularisation > 0 else 1e-6
    free = solved(least)
    if np.linalg.norm(free) <= radius:
        return free
    most = objective.loss.lipschitz * max(1.0, len(y) / objective.records) / radius
    low = np.log(max(least, 1e-6))
    if np.linalg.norm(nearly := solved(float(np.exp(low)))) <= radius:
        return nearly
    shift = brentq(
        lambda log: float(np.linalg.norm(solved(float(np.exp(log))))) - radius, low, np.log(2 * most + 1e-6)
    )
    return solved(float(np.exp(shift)))
