"""Minimises a regularised empirical risk, and certifies the distance to the exact minimum.

J is lambda-strongly convex, so that ||theta - theta*|| <= ||gradient J(theta)||/lambda, whatever found theta.
A solver that stops at a gradient of norm tau lambda is within tau of the minimum on *every* data set, which
is what a sensitivity needs. The gradient of the certificate is summed exactly, and what rounding leaves of it
(`rounding`) is added. That it is found must not depend on the records: where Newton's method does not come
so far, accelerated gradient descent (Nesterov 2004, 2.2.11) does, in a number of steps that smoothness and
strong convexity bound, if the tolerance is above what rounding allows (`check_reachable`, by public numbers
alone) and there are at most `assumptions.CROWD` times the public number of records. How long it takes does
depend on them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy
from numpy.typing import NDArray

from fedprivacy.erm.objective import MOST_REGULARISATION, Objective
from fedprivacy.errors import InputError, RunError

Vector = NDArray[np.float64]
_STEPS = 200
_HALVINGS = 100
_EVERY = 20  # steps of the descent between two looks at its certificate
_UNIT = 2.0**-53  # of rounding
_FLAT = 1e-6  # regularisation below which minima to compare with are those of a little more
# How far above the rounding with `records` records a tolerance has to be: CROWD times as many make rounding,
# which has the norm of the minimum as a factor, 16 times as large, and 4 is left for the search.
_ROOM = 64.0


def minimise(
    objective: Objective, x: Vector, y: Vector, tolerance: float, linear: Vector | None = None
) -> Vector:
    """A theta within `tolerance` of the minimum of J(theta) + linear.theta.

    Args:
        objective: J, with a regularisation above 0.
        x: Features, checked, shape (n, d).
        y: Targets, shape (n,).
        tolerance: In L2, above 0.
        linear: A vector added to the gradient, shape (d,), or None.

    Raises:
        InputError: The objective is not strongly convex.
        RunError: Rounding leaves no theta so near; the tolerance must be larger. Whether it does may depend
            on the records: who publishes the result checks before (`check_reachable`) that it cannot.
    """
    enough = tolerance * objective.strong_convexity()
    risk = _Tilted(objective, x, y, np.zeros(objective.dimension) if linear is None else linear)
    theta = np.zeros(objective.dimension)
    for _ in range(_STEPS):
        gradient = risk.gradient(theta)
        if risk.certified(theta, gradient, enough):
            return theta
        there = _forward(risk, theta, gradient)
        if there is None:
            break
        theta = there
    return _descended(risk, theta, enough, tolerance)


@dataclass(frozen=True)
class _Tilted:
    """J(theta) + tilt.theta on records, as the solver looks at it."""

    objective: Objective
    x: Vector
    y: Vector
    tilt: Vector

    @cached_property
    def columns(self) -> Vector:
        """x', of which each row lies in one piece: so numpy adds it up in pairs, with hardly any rounding.

        A product of matrices adds one to the next, and on a million records that are alike is off by more
        than a tolerance allows, always to one side.
        """
        return np.ascontiguousarray(self.x.T)

    def terms(self, theta: Vector) -> Vector:
        """The gradient of each record's loss, shape (d, n)."""
        return np.asarray(self.columns * self.objective.loss.slope(self.x @ theta, self.y))

    def gradient(self, theta: Vector) -> Vector:
        """Shape (d,)."""
        mean = self.terms(theta).sum(axis=1) / self.objective.records
        return np.asarray(mean + self.objective.regularisation * theta + self.tilt)

    def curvature(self, theta: Vector) -> Vector:
        """Of each record's loss, shape (n,)."""
        return self.objective.loss.curvature(self.x @ theta, self.y)

    def mean_curvature(self, theta: Vector, there: Vector) -> Vector:
        """The same in the mean over all between two thetas: how far the slope rises, by how far it goes."""
        loss, here, other = self.objective.loss, self.x @ theta, self.x @ there
        with np.errstate(all="ignore"):
            mean = (loss.slope(other, self.y) - loss.slope(here, self.y)) / (other - here)
        return np.where(np.isfinite(mean), np.clip(mean, 0.0, loss.smoothness), self.curvature(theta))

    def step(self, gradient: Vector, curvature: Vector) -> Vector:
        """The Newton step from a gradient and curvatures; the negative gradient where none exists."""
        strong = self.objective.regularisation * np.eye(self.objective.dimension)
        hessian = (self.columns * curvature) @ self.x / self.objective.records + strong
        try:
            return np.asarray(-np.linalg.solve(hessian, gradient), dtype=np.float64)
        except np.linalg.LinAlgError:
            return -gradient

    def along(self, theta: Vector, step: Vector) -> Callable[[float], float]:
        """The slope at theta + length * step along the step, by length."""
        loss, strong = self.objective.loss, self.objective.regularisation
        here, more = self.x @ theta, self.x @ step
        flat, bent = float((strong * theta + self.tilt) @ step), strong * float(step @ step)

        def slope(length: float) -> float:
            falls = loss.slope(here + length * more, self.y) * more
            return float(falls.sum()) / self.objective.records + flat + length * bent

        return slope

    def value(self, theta: Vector) -> float:
        return self.objective.value(theta, self.x, self.y) + float(self.tilt @ theta)

    def blur(self, theta: Vector) -> float:
        """An estimate of a value's rounding error: that of the predictions and of the sums."""
        share, norm = len(self.y) / self.objective.records, float(np.linalg.norm(theta))
        return 1e3 * _UNIT * (1 + abs(self.value(theta)) + share * self.objective.loss.lipschitz * norm)

    def certified(self, theta: Vector, gradient: Vector, enough: float) -> bool:
        """Whether the exact gradient at theta, nearly `gradient`, is no longer than `enough`."""
        left = rounding(
            self.objective, float(np.linalg.norm(theta)), float(np.linalg.norm(self.tilt)), len(self.y)
        )
        if not np.linalg.norm(gradient) + left <= 2 * enough:  # far off: no need to look closer
            return False
        exact = np.array([math.fsum(row) for row in self.terms(theta)]) / self.objective.records
        norm = float(np.linalg.norm(exact + self.objective.regularisation * theta + self.tilt))
        return norm + left <= enough


def _forward(risk: _Tilted, theta: Vector, gradient: Vector) -> Vector | None:
    """The next theta: by Newton's whole step where that halves the gradient, else by two searches.

    Near a kink whole steps lead to and fro: a search goes along the step to where its slope has nearly gone.
    It may have crossed kinks that the Hessian knows nothing of, so that a second one follows, along the step
    of the mean Hessian between its ends. None where there is nothing to be found.
    """
    step = risk.step(gradient, risk.curvature(theta))
    whole = theta + step
    level = risk.value(theta) + risk.blur(theta)
    if risk.value(whole) <= level and 2 * np.linalg.norm(risk.gradient(whole)) <= np.linalg.norm(gradient):
        return whole
    there = _searched(risk, theta, step)
    if there is None:
        return None
    step = risk.step(risk.gradient(there), risk.mean_curvature(theta, there))
    further = _searched(risk, there, step)
    return there if further is None else further


def _searched(risk: _Tilted, theta: Vector, step: Vector) -> Vector | None:
    """Where along a step its slope has nearly gone, found by halving as J is convex; None: nowhere."""
    slope_at = risk.along(theta, step)
    steep = slope_at(0.0)
    low, high, length = 0.0, math.inf, 1.0
    for _ in range(_HALVINGS if steep < 0 else 0):
        slope = slope_at(length)
        if abs(slope) <= -0.1 * steep:
            return theta + length * step
        low, high = (length, high) if slope < 0 else (low, length)
        length = 2 * length if high == math.inf else (low + high) / 2
    return theta + low * step if low > 0 else None


def _descended(risk: _Tilted, theta: Vector, enough: float, tolerance: float) -> Vector:
    """The same by accelerated gradient descent, with a step bound that holds on every data set."""
    objective, strong = risk.objective, risk.objective.strong_convexity()
    squares = float((risk.x**2).sum(axis=1).max(initial=0.0)) * len(risk.y) / objective.records
    smooth = objective.loss.smoothness * squares + strong
    root = math.sqrt(smooth / strong)
    first = float(np.linalg.norm(risk.gradient(theta)))
    # J - J* shrinks by 1 - 1/root a step from smooth (first/strong)^2 at most, and bounds the gradient.
    steps = math.ceil(root * math.log(16 * max(1.0, smooth * first / (strong * enough)) ** 2)) + _EVERY
    keep, ahead = (root - 1) / (root + 1), theta
    for number in range(steps):
        slope = risk.gradient(ahead)
        if number % _EVERY == 0 and risk.certified(ahead, slope, enough):
            return ahead
        before, theta = theta, ahead - slope / smooth
        ahead = theta + keep * (theta - before)
    if risk.certified(theta, risk.gradient(theta), enough):
        return theta
    raise RunError(
        f"the minimum was not found to within {tolerance:.3g}, which the noise is made for: nothing is "
        "released. Choose a larger tolerance, or more regularisation."
    )


def rounding(objective: Objective, norm: float, tilt: float, records: int | None = None) -> float:
    """Bounds the L2 distance of a certificate's gradient from the exact one.

    Its sum over records is exact; each term has rounding errors: the product and the loss's slope (a few
    units of L), and the prediction and its distance from a kink, d units of ||theta|| + 1 times the
    smoothness.

    Args:
        objective: J.
        norm: ||theta||, or a bound on it.
        tilt: The norm of the linear term.
        records: Their number; None: the objective's.
    """
    share = 1.0 if records is None else max(1.0, records / objective.records)
    d, loss = objective.dimension, objective.loss
    each = 8 * math.sqrt(d) * loss.lipschitz + (d + 2) * loss.smoothness * (norm + 1)
    return _UNIT * (share * each + 4 * objective.regularisation * norm + 4 * tilt)


def check_reachable(objective: Objective, tolerance: float, linear: float = 0.0) -> None:
    """Checks that a tolerance can be certified for any records: else a refusal would reveal data.

    Args:
        objective: J, with a regularisation above 0.
        tolerance: As `minimise` has it.
        linear: A bound on the norm of the term added to the gradient.

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
    """Minimises J over ||theta|| <= radius, for comparison: not private, without a sensitivity.

    By its Lagrangian: J plus just as much more regularisation as brings the norm down to the radius. With a
    regularisation below 1e-6 J is found to within 1e-6 R^2.

    Raises:
        InputError: It cannot be found so closely, whatever the records: the loss bends too sharply, or the
            radius is too small.
        RunError: It was not found.
    """
    tolerance = 1e-6 * max(1.0, radius)
    strong = max(objective.regularisation, _FLAT)
    if rounding(objective, radius, 0.0) > tolerance * strong:
        raise InputError(
            f"the minimum to compare with cannot be found to within {tolerance:.3g} with smoothness "
            f"{objective.loss.smoothness:g} and regularisation {objective.regularisation:g}. Choose a wider "
            "kink, or more regularisation."
        )

    def solved(more: float) -> Vector:
        regularised = Objective(
            objective.loss, objective.regularisation + more, objective.records, objective.dimension
        )
        return minimise(regularised, x, y, tolerance)

    least = strong - objective.regularisation
    free = solved(least)
    if np.linalg.norm(free) <= radius:
        return free
    most = objective.loss.lipschitz * max(1.0, len(y) / objective.records) / radius
    if 2 * most + _FLAT + objective.regularisation > MOST_REGULARISATION:
        raise InputError(
            f"radius = {radius:g}: the minimum so near to 0 cannot be found; at least "
            f"{4e-6 * most * radius:.2g} is needed."
        )
    low = np.log(_FLAT)
    if np.linalg.norm(nearly := solved(float(np.exp(low)))) <= radius:
        return nearly
    shift = scipy.optimize.brentq(
        lambda log: float(np.linalg.norm(solved(float(np.exp(log))))) - radius, low, np.log(2 * most + _FLAT)
    )
    return solved(float(np.exp(shift)))
