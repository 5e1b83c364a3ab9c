"""Gradient perturbation: noisy projected gradient descent, whose average iterate is published."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from dp_accounting import dp_event as dp
from numpy.typing import ArrayLike, NDArray

from fedprivacy.accounting.epsilon import noise_multiplier as least_noise
from fedprivacy.accounting.events import MAX_NOISE
from fedprivacy.erm.approach import Approach, Estimate, check_radius, project
from fedprivacy.errors import InputError, RunError
from fedprivacy.mechanisms.gaussian import Gaussian
from fedprivacy.mechanisms.ranges import check_size
from fedprivacy.sampling.cohorts import PoissonSampling

Vector = NDArray[np.float64]
Message = Callable[[Vector, int], Vector]
Descent = Generator[Vector, Vector, None]
ROUNDED = 1 + 1e-9  # by which rounding may carry a projected point beyond its radius, and more


@dataclass(frozen=True)
class GradientPerturbation(Approach):
    """T steps theta <- project(theta - eta (noisy gradient of J)) within ||theta|| <= R, from 0.

    The sum of the gradients has sensitivity L (2 L under replace-one), since ||x|| <= 1 and |phi'| <= L:
    nothing needs clipping. Gaussian noise of standard deviation z L is added to it; T such releases are what
    the accountant reads, so that every iterate could be published. The lectures' noise sqrt(T) sigma C/n on
    the mean is the add-remove case; replace-one needs twice that. (Bassily, Smith and Thakurta 2014 take one
    record a step.)

    Args:
        radius: R, from 1e-12 to 1e12.
        steps: T.
        rate: The probability of each record to be in a step's batch (Poisson sampling); 1 takes all records.
        step_size: eta, from 1e-12 to 1e12; None for R/(G sqrt(T)), G^2 a bound on the expected
            squared norm of a noisy gradient.

    Raises:
        InputError: delta is 0, or another value out of range.
    """

    radius: float = 1.0
    steps: int = 100
    rate: float = 1.0
    step_size: float | None = None
    name: ClassVar[str] = "gradient-perturbation"
    title: ClassVar[str] = "gradient perturbation"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_radius(self.radius)
        check_size("steps", self.steps)
        if not 0 < self.rate <= 1:
            raise InputError(f"rate = {self.rate}: must be above 0 and at most 1.")
        if self.delta == 0:
            raise InputError("delta = 0: gradients get Gaussian noise, which has no epsilon without a delta.")
        if self.step_size is not None and not 1e-12 <= self.step_size <= 1e12:
            raise InputError(f"step_size = {self.step_size}: must be from 1e-12 to 1e12; 1 is usual.")

    def _event_of(self, noise_multiplier: float) -> dp.DpEvent:
        step: dp.DpEvent = dp.GaussianDpEvent(noise_multiplier)
        if self.rate < 1:
            step = PoissonSampling(self.rate).event(step, self.objective.records)
        return dp.SelfComposedDpEvent(step, self.steps)

    @cached_property
    def mechanism(self) -> Gaussian:
        """The mechanism that draws the noise of one step, on the sum of the gradients."""
        noise = least_noise(self._event_of, self.epsilon, self.delta, self.adjacency)
        return Gaussian(self.objective.loss.lipschitz, noise)

    @property
    def batch(self) -> float:
        """The expected number of records in a step: the fixed denominator of noisy sums."""
        return self.rate * self.objective.records

    @property
    def noise(self) -> float:
        """The standard deviation of the noise in each coordinate of the mean gradient."""
        return self.mechanism.standard_deviation / self.batch

    def event(self) -> dp.DpEvent:
        """As `Approach` has it."""
        return self.event_of(1)

    def event_of(self, shares: int) -> dp.DpEvent:
        """The event of the steps for an observer of sums to which `shares` silos each added such noise."""
        return self._event_of(min(self.mechanism.noise_multiplier * math.sqrt(shares), MAX_NOISE))

    @property
    def sampling(self) -> str:
        """The records of a step, in words."""
        return "all records" if self.rate == 1 else f"Poisson sampling of records at rate {self.rate:g}"

    @property
    def rounds(self) -> int:
        """As `Approach` has it: the steps."""
        return self.steps

    def gradient_norm(self, noise: float | None = None) -> float:
        """G: the root of a bound on E||noisy gradient||^2 within the ball, with m records.

        (L + lambda R)^2 + L^2 (1 - q)/(q m) for the draw of the batch + d noise^2.
        """
        objective = self.objective
        mean = objective.loss.lipschitz + objective.regularisation * self.radius
        drawn = objective.loss.lipschitz**2 * (1 - self.rate) / self.batch
        noise = self.noise if noise is None else noise
        return math.sqrt(mean**2 + drawn + objective.dimension * noise**2)

    def fit(self, x: ArrayLike, y: ArrayLike, stream: np.random.Generator) -> Estimate:
        """As `Approach` has it."""
        # The accountant charges every iterate, so their average is post-processing.
        return self._estimate(self.path(x, y, stream).mean(axis=0))

    def path(self, x: ArrayLike, y: ArrayLike, stream: np.random.Generator) -> Vector:
        """All iterates whose average `fit` publishes, shape (steps, d), at the same cost.

        Args:
            x: As of `fit`.
            y: As of `fit`.
            stream: As of `fit`; the same stream gives the same iterates, and is one release with it.
        """
        features, targets = self.objective.data(x, y, self.adjacency, self.clip)
        visited: list[Vector] = []

        def message(theta: Vector, step: int) -> Vector:
            visited.append(theta)
            return self.noiseless(theta, features, targets, stream) + self.mechanism.draw(len(theta), stream)

        self.descend(message)
        return np.array(visited)

    def check_iterate(self, theta: Vector) -> None:
        """Checks that theta is a possible iterate, finite and within the radius; reads no record.

        Raises:
            InputError: It is not.
        """
        with np.errstate(over="ignore"):
            norm = float(np.linalg.norm(theta))
        if not norm <= self.radius * ROUNDED:  # NaN too
            raise InputError(
                f"request for a point of norm {norm:.4g}: gradients are released only within the radius of "
                f"{self.radius:g}."
            )

    def noiseless(self, theta: Vector, x: Vector, y: Vector, stream: np.random.Generator) -> Vector:
        """The sum of the gradients of a step's batch, without noise: not to be released.

        Args:
            theta: A point that `check_iterate` allows.
            x: Features, checked, shape (n, d).
            y: Targets, shape (n,).
            stream: Draws the batch.

        Raises:
            RunError: The sum is not finite.
        """
        if self.rate < 1:
            drawn = PoissonSampling(self.rate).draw(len(y), stream)
            x, y = x[drawn], y[drawn]
        total = self.objective.gradient_sum(theta, x, y)
        # Noise does not hide NaN, and a refusal that depends on the records would reveal data too. The
        # guarantee holds because neither can occur: with ||x|| <= 1 and theta within the radius, x.theta is
        # at most the radius, and every slope is finite. Far outside, x.theta may be infinity less infinity
        # for some records and not for others.
        if not np.isfinite(total).all():
            raise RunError("a sum of gradients is not finite: nothing is released.")
        return total

    def descend(self, message: Message) -> Vector:
        """The average of the iterates theta_0 ... theta_(T-1) at which gradients were taken, shape (d,).

        Args:
            message: The noisy sum of gradients at (theta, step).
        """
        descent = self.descent()
        theta = next(descent)
        for step in range(self.steps):
            theta = descent.send(message(theta, step))
        return theta

    def descent(self, noise: float | None = None) -> Descent:
        """The steps: yields each iterate, is sent the noisy sum of gradients there; the average is the last.

        Args:
            noise: The standard deviation of a sum's noise over the batch, for the step size; None for
                `noise`.
        """
        theta = np.zeros(self.objective.dimension)
        total = np.zeros_like(theta)
        size = self._size(noise)
        for _ in range(self.steps):
            total += theta
            gradient = (yield theta) / self.batch + self.objective.regularisation * theta
            theta = project(theta - size * gradient, self.radius)
        yield total / self.steps

    @property
    def words(self) -> str:
        """As `Approach` has it."""
        where = f"each coordinate of {self.steps:,} mean gradients"
        return f"noise of standard deviation {self.noise:.4g} in {where}"

    def excess_bound(self, noise: float | None = None) -> float:
        """E J(estimate) - min over ||theta|| <= R of J is at most R^2/(2 eta T) + eta G^2/2.

        R G/sqrt(T) with the step size of None: at lambda = 0 and all records at most the lectures'
        R C/sqrt(T) + R C sigma sqrt(d + 1)/n with sigma = z/sqrt(T), C = L. Replace-one has twice the z, and
        so twice that share.
        """
        size = self._size(noise)
        return self.radius**2 / (2 * size * self.steps) + size * self.gradient_norm(noise) ** 2 / 2

    def _size(self, noise: float | None) -> float:
        return self.step_size or self.radius / (self.gradient_norm(noise) * math.sqrt(self.steps))

    def lectures_bound(self) -> float:
        """R C/sqrt(T) + R C sigma sqrt(d + 1)/n, sigma = z/sqrt(T): for lambda = 0 and all records."""
        scale = self.radius * self.objective.loss.lipschitz
        share = self.mechanism.noise_multiplier * math.sqrt((self.objective.dimension + 1) / self.steps)
        return scale / math.sqrt(self.steps) + scale * share / self.objective.records
