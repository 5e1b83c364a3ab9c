"""Linear regression by noisy sufficient statistics: X'X and X'y are released with noise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import scipy
from dp_accounting import dp_event as dp
from numpy.typing import ArrayLike, NDArray

from fedprivacy.erm.approach import Approach, Estimate, check_radius, gaussian_for
from fedprivacy.erm.losses import Squared
from fedprivacy.errors import InputError
from fedprivacy.mechanisms.gaussian import Gaussian
from fedprivacy.mechanisms.laplace import Laplace

Vector = NDArray[np.float64]


def l2_sensitivity(adjacency: str, dimension: int) -> float:
    """The Frobenius sensitivity of (X'X, X'y), with ||x|| <= 1 and |y| <= 1.

    sqrt(||x||^4 + ||x||^2 y^2) <= sqrt(2) for one record added or removed. Replaced, at cosine c of x and x'
    and y y' = -1, sqrt(4 - 2 c^2 + 2 c), which is largest at c = 1/2: sqrt(4.5), less than twice sqrt(2). In
    one dimension the cosine is 1 or -1: 2.
    """
    if adjacency != "replace-one":
        return math.sqrt(2)
    return 2.0 if dimension == 1 else math.sqrt(4.5)


def l1_sensitivity(adjacency: str, dimension: int) -> float:
    """The L1 sensitivity of the upper triangle of X'X and of X'y.

    sum_(i<=j) |x_i x_j| = (||x||_1^2 + ||x||_2^2)/2 <= (d + 1)/2, and |y| ||x||_1 <= sqrt(d).

    Replaced, X'X moves by a matrix A and X'y by a vector b. At cosine c of x and x' (of a sign that makes b
    the longer) ||A||_F^2 <= max(1, 2 - 2 c^2) and ||b||^2 <= 2 + 2 c, which are convex in the norms of x and
    x' and hold at 0 and 1. With ||.||_1 <= sqrt(k) ||.||_2 of k numbers, A's upper triangle is at most
    p ||A||_F with p = (d + sqrt(d))/2, or d/2 ||A||_F + 1 since its diagonal is at most 2, and b at most
    sqrt(d) ||b||. With c = 1 - 2 s^2 the sum is at most 2 sqrt(1 - s^2) (p sqrt(2) s + sqrt(d)), largest at
    the root of its derivative, or p + 2 sqrt(d) where ||A||_F <= 1. In one dimension |x^2 - x'^2| + |x| +
    |x'| is 2.25 at most.
    """
    root = math.sqrt(dimension)
    if adjacency != "replace-one":
        return (dimension + 1) / 2 + root
    if dimension == 1:
        return 2.25
    return min(_replaced((dimension + root) / 2, root), 1 + _replaced(dimension / 2, root))


def _replaced(p: float, q: float) -> float:
    """The largest p ||A||_F + q ||b|| of all cosines; see `l1_sensitivity`."""
    s = (math.sqrt(q**2 + 16 * p**2) - q) / (4 * math.sqrt(2) * p)
    return max(2 * math.sqrt(1 - s**2) * (p * math.sqrt(2) * s + q), p + 2 * q)


@dataclass(frozen=True)
class SufficientStatistics(Approach):
    """Noise on X'X and X'y, Laplace at delta = 0, Gaussian at a delta above; then least squares in a ball.

    theta minimises (1/2m) theta'A theta - c.theta/m + (lambda/2)||theta||^2 over ||theta|| <= R, where A and
    c are the noisy statistics: exactly, also where the noise has made A indefinite. All of that is
    post-processing, so the same statistics serve any lambda, R or choice of features, at no further cost.

    Args:
        radius: R, above 0; the objective's loss must be the square for all such theta (`Squared.within`).

    Raises:
        InputError: A value is out of range, or the loss is not the square within the ball.
    """

    radius: float = 1.0
    name: ClassVar[str] = "sufficient-statistics"
    title: ClassVar[str] = "noisy sufficient statistics"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_radius(self.radius)
        loss = self.objective.loss
        if not isinstance(loss, Squared):
            raise InputError(f"loss = {loss.name}: X'X and X'y are sufficient for the squared loss alone.")
        if loss.limit < self.radius + 1:
            raise InputError(
                f"limit = {loss.limit:g}: the loss is the square only for theta of norm {loss.limit - 1:g}, "
                f"and radius "
                f"is {self.radius:g}. Take Squared.within({self.radius:g})."
            )

    @cached_property
    def mechanism(self) -> Gaussian | Laplace:
        """The mechanism that draws the noise."""
        if self.delta == 0:
            return Laplace(self.epsilon, l1_sensitivity(self.adjacency, self.objective.dimension))
        return gaussian_for(
            l2_sensitivity(self.adjacency, self.objective.dimension), self.epsilon, self.delta, self.adjacency
        )

    @property
    def noise(self) -> float:
        """The standard deviation of the noise of each sum x_i y.

        With Gaussian noise also of each sum x_i^2, and sqrt(2) times that of a sum x_i x_j; with Laplace of
        all.
        """
        if isinstance(self.mechanism, Gaussian):
            return self.mechanism.standard_deviation
        return math.sqrt(self.mechanism.variance)

    def event(self) -> dp.DpEvent:
        """As `Approach` has it."""
        return (
            self.mechanism.event()
            if isinstance(self.mechanism, Gaussian)
            else self.mechanism.event(self.adjacency)
        )

    def statistics(self, x: ArrayLike, y: ArrayLike, stream: np.random.Generator) -> tuple[Vector, Vector]:
        """The release itself: noisy X'X, symmetric, shape (d, d), and noisy X'y, shape (d,).

        Args:
            x: Features, shape (n, d).
            y: Targets, shape (n,).
            stream: The random stream of this release, and of no other.

        Raises:
            InputError: A condition does not hold for the records.
        """
        features, targets = self.objective.data(x, y, self.adjacency, self.clip)
        d = self.objective.dimension
        upper = np.triu_indices(d)
        # The Frobenius norm counts off-diagonal entries twice: a weight of sqrt(2) makes it the L2 norm.
        gaussian = isinstance(self.mechanism, Gaussian)
        weights = np.where(upper[0] == upper[1], 1.0, math.sqrt(2) if gaussian else 1.0)
        released = np.concatenate([(features.T @ features)[upper] * weights, features.T @ targets])
        if isinstance(self.mechanism, Gaussian):
            released = released + self.mechanism.draw(len(released), stream)
        else:
            released = self.mechanism.draw(released, stream)
        products = np.zeros((d, d))
        products[upper] = released[: len(weights)] / weights
        products.T[upper] = products[upper]
        return products, released[len(weights) :]

    def fit(self, x: ArrayLike, y: ArrayLike, stream: np.random.Generator) -> Estimate:
        """As `Approach` has it."""
        products, sums = self.statistics(x, y, stream)
        theta = self.solve(products, sums)
        return self._estimate(theta)

    def solve(self, products: Vector, sums: Vector) -> Vector:
        """Solves least squares in the ball from statistics, noisy or not, shape (d,): post-processing."""
        m = self.objective.records
        curved = products / m + self.objective.regularisation * np.eye(len(sums))
        return least_in_ball(curved, sums / m, self.radius)

    @property
    def words(self) -> str:
        """As `Approach` has it."""
        kind = "Gaussian" if isinstance(self.mechanism, Gaussian) else "Laplace"
        return f"{kind} noise of standard deviation {self.noise:.4g} on X'X and X'y"

    def excess_bound(self) -> float:
        """E J(estimate) - min over ||theta|| <= R of J is at most this.

        (R^2/2m) E max(0, largest eigenvalue of the noise) + (R/m) E||noise of X'y||. Gaussian noise: the
        first is at most sqrt(2 d) sigma (Gordon and Slepian); Laplace: the Frobenius norm, d sigma.
        """
        d, m = self.objective.dimension, self.objective.records
        wide = math.sqrt(2 * d) if isinstance(self.mechanism, Gaussian) else d
        return self.noise * (self.radius**2 / 2 * wide + self.radius * math.sqrt(d)) / m


def least_in_ball(curved: Vector, sums: Vector, radius: float) -> Vector:
    """The theta of least theta'H theta/2 - c.theta in a ball, H symmetric, definite or not, shape (d,).

    Moré and Sorensen 1983: theta = (H + mu I)^-1 c with the mu >= 0 that makes H + mu I positive and the norm
    R, or 0.

    Args:
        curved: H, shape (d, d).
        sums: c, shape (d,).
        radius: R.
    """
    values, vectors = np.linalg.eigh(curved)
    along = vectors.T @ sums

    def norm(shift: float) -> float:
        return float(np.linalg.norm(along / (values + shift)))

    if values[0] > 0 and norm(0.0) <= radius:
        return np.asarray(vectors @ (along / values))
    size = float(np.linalg.norm(sums))
    most = max(0.0, -values[0]) + size / radius + 1e-300
    scale = max(float(np.abs(values).max()), size / radius, 1e-300)
    least = max(0.0, -values[0] + 1e-12 * scale)
    if norm(least) <= radius:  # c has nothing along the lowest direction: any way along it is as good
        inner = along / (values + least)
        inner[0] = math.copysign(math.sqrt(max(0.0, radius**2 - float(inner[1:] @ inner[1:]))), along[0])
        return np.asarray(vectors @ inner)
    shift = scipy.optimize.brentq(lambda at: norm(at) - radius, least, most, xtol=1e-15 * scale, rtol=1e-14)
    return np.asarray(vectors @ (along / (values + shift)))
