"""The minimum of a regularised empirical risk, with a certificate of how far it can be from the exact one.

J is lambda-strongly convex, so that ||theta - theta*|| <= ||gradient J(theta)||/lambda, whatever found theta.
A solver that stops at a gradient of norm tau lambda is within tau of the minimum on *every* data set, which
is what a sensitivity needs. The gradient of the certificate is summed exactly, and what rounding leaves of it
(`rounding`) is added. That it is found must not depend on the records: where Newton's method does not come
so far, accelerated gradient descent (Nesterov 2004, 2.2.11) does, in a number of steps that smoothness and
strong convexity bound, if the tolerance is above what rounding allows (`check_reachable`, by public numbers
alone).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from fedprivacy.erm.objective import Objective
from fedprivacy.errors import InputError, RunError

Vector = NDArray[np.float64]
_STEPS = 200
_HALVINGS = 40
_EVERY = 20  # steps of the descent between two looks at its certificate
_UNIT = 2.0**-53  # of rounding
_ROOM = 64.0  # how far above the rounding a tolerance has to be


def minimise(
    objective: Objective, x: Vector, y: Vector, tolerance: float, linear: Vector | None = None
) -> Vector:
    """A theta within `tolerance` of the minimum of J(theta) + linear.theta.

    Args:
        objective: J, with a regularisation above 0.
        x: Features, checked, shape (n, d).
        y: Targets, shape (n,).
        tolerance: In L2, above 0.
        linear: What is added to the gradient, shape (d,); None for nothing.

    Raises:
        InputError: The objective is not strongly convex.
        RunError: Rounding leaves no theta so near; the tolerance must be larger. Whether it does may depend
            on the records: who publishes the result checks before (`check_reachable`) that it cannot.
    """
    enough = tolerance * objective.strong_convexity()
    tilt = np.zeros(objective.dimension) if linear is None else linear
    theta = np.zeros(objective.dimension)
    for _ in range(_STEPS):
        gradient = objective.gradient(theta, x, y) + tilt
        if np.linalg.norm(gradient) <= enough and _certified(objective, x, y, tilt, theta, enough):
            return theta
        step = np.asarray(-np.linalg.solve(objective.hessian(theta, x, y), gradient), dtype=np.float64)
        there = _forward(objective, x, y, tilt, theta, gradient, step)
        if there is None:
            break
        theta = there
    return _descended(objective, x, y, tilt, theta, enough, tolerance)


def _forward(
    objective: Objective, x: Vector, y: Vector, tilt: Vector, theta: Vector, gradient: Vector, step: Vector
) -> Vector | None:
    """The next theta: the longest step that Armijo accepts, or that halves the gradient and does not rise.

    The second is for the end, where rounding hides how much lower a value is. None where there is neither.
    """
    length, here = 1.0, objective.value(theta, x, y) + float(tilt @ theta)
    descent, norm = float(gradient @ step), float(np.linalg.norm(gradient))
    level = here + 1e3 * _UNIT * max(1.0, abs(here))
    for _ in range(_HALVINGS):
        there = theta + length * step
        value = objective.value(there, x, y) + float(tilt @ there)
        if value <= here + 1e-4 * length * descent:
            return there
        if value <= level and np.linalg.norm(objective.gradient(there, x, y) + tilt) <= norm / 2:
            return there
        length /= 2
    return None


def _descended(
    objective: Objective, x: Vector, y: Vector, tilt: Vector, theta: Vector, enough: float, tolerance: float
) -> Vector:
    """The same by accelerated gradient descent, which on every data set comes there in so many steps."""
    strong = objective.strong_convexity()
    squares = float((x**2).sum(axis=1).max(initial=0.0)) * len(y) / objective.records
    smooth = objective.loss.smoothness * squares + strong
    root = math.sqrt(smooth / strong)
    first = float(np.linalg.norm(objective.gradient(theta, x, y) + tilt))
    # J - J* shrinks by 1 - 1/root a step from smooth (first/strong)^2 at most, and bounds the gradient.
    steps = math.ceil(root * math.log(16 * max(1.0, smooth * first / (strong * enough)) ** 2)) + _EVERY
    keep, ahead = (root - 1) / (root + 1), theta
    for number in range(steps):
        slope = objective.gradient(ahead, x, y) + tilt
        if number % _EVERY == 0 and _certified(objective, x, y, tilt, ahead, enough):
            return ahead
        before, theta = theta, ahead - slope / smooth
        ahead = theta + keep * (theta - before)
    if _certified(objective, x, y, tilt, theta, enough):
        return theta
    raise RunError(
        f"the minimum was not found to within {tolerance:.3g}, which the noise is made for: nothing is "
        "released. Choose a larger tolerance, or more regularisation."
    )


def _certified(
    objective: Objective, x: Vector, y: Vector, tilt: Vector, theta: Vector, enough: float
) -> bool:
    """Whether the exact gradient at theta is no longer than `enough`."""
    slopes = objective.loss.slope(x @ theta, y)
    exact = np.array([math.fsum(slopes * column) for column in x.T]) / objective.records
    norm = float(np.linalg.norm(exact + objective.regularisation * theta + tilt))
    left = rounding(objective, float(np.linalg.norm(theta)), float(np.linalg.norm(tilt)), len(y))
    return norm + left <= enough


def rounding(objective: Objective, norm: float, tilt: float, records: int | None = None) -> float:
    """How far the gradient of a certificate can be from the exact one, in L2.

    Its sum over records is exact, up to what is in each term: the product and the loss's slope (a few
    units of L), and the prediction and its distance from a kink, d units of ||theta|| + 1 times the
    smoothness.

    Args:
        objective: J.
        norm: ||theta||, or a bound on it.
        tilt: The norm of the linear term.
        records: How many there are; None: as many as the objective's.
    """
    share = 1.0 if records is None else max(1.0, records / objective.records)
    d, loss = objective.dimension, objective.loss
    each = 8 * math.sqrt(d) * loss.lipschitz + (d + 2) * loss.smoothness * (norm + 1)
    return _UNIT * (share * each + 4 * objective.regularisation * norm + 4 * tilt)


def check_reachable(objective: Objective, tolerance: float, linear: float = 0.0) -> None:
    """That a tolerance can be certified whatever the records are: else a refusal would tell of them.

    Args:
        objective: J, with a regularisation above 0.
        tolerance: As `minimise` has it.
        linear: A bound on the norm of what is added to the gradient.

    Raises:
        InputError: It is too small for so little regularisation, or so many records.
    """
    strong = objective.strong_convexity()
    norm = (objective.loss.lipschitz + linear) / strong  # of any minimum, of up to `records` records
    least = _ROOM * rounding(objective, norm, linear) / strong
    if tolerance < least:
        raise InputError(
            f"tolerance: {tolerance:.3g} from the minimum cannot be certified with {objective.records:,} "
            f"records, regularisation {objective.regularisation:g} and smoothness "
            f"{objective.loss.smoothness:g}, where rounding allows {least:.3g}. Choose a tolerance "
            f"{1.01 * least / tolerance:.3g} times as large, or more regularisation."
        )


def minimise_within(objective: Objective, x: Vector, y: Vector, radius: float) -> Vector:
    """The minimum of J over ||theta|| <= radius, to compare with: not private, and no sensitivity is claimed.

    By its Lagrangian: J plus just as much more regularisation as brings the norm down to the radius. Without
    any regularisation J is found to within 1e-6 R^2.
    """

    def solved(more: float) -> Vector:
        regularised = Objective(
            objective.loss, objective.regularisation + more, objective.records, objective.dimension
        )
        return minimise(regularised, x, y, 1e-6 * max(1.0, radius))

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
