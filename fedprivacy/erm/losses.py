"""Losses of linear predictors: of the prediction p = x.theta and the record's target.

Each record's loss is phi(p, y), so that its gradient in theta is phi'(p, y) x and its Hessian phi''(p, y) x
x': of rank one. With ||x|| <= 1 (`conditions`) the loss is Lipschitz with the constant that bounds |phi'|,
and smooth with the one that bounds phi''. Both hold for every theta, not only within a ball.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from fedprivacy.errors import InputError

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Loss(ABC):
    """A convex loss phi of a prediction and a target; arrays of shape (n,) in and out.

    Attributes:
        signs: Whether targets are -1 and 1; else they are numbers in [-1, 1].
    """

    name: ClassVar[str]
    title: ClassVar[str]
    signs: ClassVar[bool] = True

    @property
    @abstractmethod
    def lipschitz(self) -> float:
        """L: |phi'| is at most this, at any prediction."""

    @property
    @abstractmethod
    def smoothness(self) -> float:
        """beta: phi'' is at most this, wherever it exists."""

    @abstractmethod
    def value(self, prediction: Vector, target: Vector) -> Vector:
        """phi of each record."""

    @abstractmethod
    def slope(self, prediction: Vector, target: Vector) -> Vector:
        """phi' in the prediction."""

    @abstractmethod
    def curvature(self, prediction: Vector, target: Vector) -> Vector:
        """phi'' in the prediction; at a kink of phi', from either side."""

    def span(self, reach: float) -> float:
        """The largest difference of one record's losses at two predictions in [-reach, reach].

        At a target of 1 (or -1): the loss falls with the margin, or with a residual in which it is convex,
        so that the furthest target has the widest range.
        """
        nearest = reach if self.signs else min(reach, 1.0)
        most, least = self.value(np.array([-reach, nearest]), np.ones(2))
        return float(most - least)


@dataclass(frozen=True)
class Logistic(Loss):
    """ln(1 + exp(-y p)) for y in {-1, 1}: L = 1, beta = 1/4."""

    name: ClassVar[str] = "logistic"
    title: ClassVar[str] = "logistic regression"

    @property
    def lipschitz(self) -> float:
        """1."""
        return 1.0

    @property
    def smoothness(self) -> float:
        """1/4."""
        return 0.25

    def value(self, prediction: Vector, target: Vector) -> Vector:
        """As `Loss` has it."""
        return np.asarray(np.logaddexp(0.0, -target * prediction))

    def slope(self, prediction: Vector, target: Vector) -> Vector:
        """As `Loss` has it."""
        return np.asarray(-target * expit(-target * prediction))

    def curvature(self, prediction: Vector, target: Vector) -> Vector:
        """As `Loss` has it."""
        return np.asarray(expit(prediction) * expit(-prediction))


@dataclass(frozen=True)
class HuberSVM(Loss):
    """The hinge loss max(0, 1 - y p), its kink at 1 rounded off within h (Chaudhuri et al. 2011).

        0 where y p > 1 + h;  (1 + h - y p)^2/(4 h) where |1 - y p| <= h;  1 - y p below

    L = 1, beta = 1/(2 h).

    Args:
        width: h, from 1e-12 to 1e12; 0.5 is usual.

    Raises:
        InputError: The width is out of range.
    """

    width: float = 0.5
    name: ClassVar[str] = "huber-svm"
    title: ClassVar[str] = "Huberised support vector machine"

    def __post_init__(self) -> None:
        if not 1e-12 <= self.width <= 1e12:
            raise InputError(f"width = {self.width}: must be from 1e-12 to 1e12; 0.5 is usual.")

    @property
    def lipschitz(self) -> float:
        """1."""
        return 1.0

    @property
    def smoothness(self) -> float:
        """1/(2 h)."""
        return 1 / (2 * self.width)

    def _below(self, prediction: Vector, target: Vector) -> Vector:
        """The distance of a margin below 1 + h, cut to the rounded part [0, 2 h]."""
        return np.asarray(np.clip(1 + self.width - target * prediction, 0.0, 2 * self.width))

    def value(self, prediction: Vector, target: Vector) -> Vector:
        """As `Loss` has it."""
        beyond = np.maximum(0.0, 1 - self.width - target * prediction)
        return np.asarray(self._below(prediction, target) ** 2 / (4 * self.width) + beyond)

    def slope(self, prediction: Vector, target: Vector) -> Vector:
        """As `Loss` has it."""
        return np.asarray(-target * self._below(prediction, target) / (2 * self.width))

    def curvature(self, prediction: Vector, target: Vector) -> Vector:
        """As `Loss` has it."""
        rounded = np.abs(1 - target * prediction) <= self.width
        return np.where(rounded, self.smoothness, 0.0)


@dataclass(frozen=True)
class Squared(Loss):
    """Huber loss: (p - y)^2/2, linear where |p - y| exceeds `limit`; L = limit, beta = 1, y in [-1, 1].

    The square alone is Lipschitz on no more than a ball. With limit = R + 1 this loss is the square for every
    theta of norm up to R (`within`), and Lipschitz outside too; so no minimum needs a constraint to be
    private. With the regulariser it is ridge regression (one lecture calls that LASSO by mistake).

    Args:
        limit: The residual from where on the loss is a line, from 1e-12 to 1e13: the Lipschitz constant.

    Raises:
        InputError: The limit is out of range.

    >>> Squared.within(3.0).lipschitz
    4.0
    """

    limit: float
    name: ClassVar[str] = "squared"
    title: ClassVar[str] = "ridge regression"
    signs: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not 1e-12 <= self.limit <= 1e13:
            raise InputError(
                f"limit = {self.limit}: must be from 1e-12 to 1e13: the squared loss is Lipschitz only "
                f"up "
                "to a residual; R + 1 leaves it as it is for all theta of norm R."
            )

    @classmethod
    def within(cls, radius: float) -> Squared:
        """The loss that is the square for every theta of norm up to `radius`."""
        return cls(radius + 1.0)

    @property
    def lipschitz(self) -> float:
        """The limit."""
        return self.limit

    @property
    def smoothness(self) -> float:
        """1."""
        return 1.0

    def value(self, prediction: Vector, target: Vector) -> Vector:
        """As `Loss` has it."""
        residual = np.abs(prediction - target)
        clipped = np.minimum(residual, self.limit)
        return np.asarray(clipped * (residual - clipped / 2))

    def slope(self, prediction: Vector, target: Vector) -> Vector:
        """As `Loss` has it."""
        return np.asarray(np.clip(prediction - target, -self.limit, self.limit))

    def curvature(self, prediction: Vector, target: Vector) -> Vector:
        """As `Loss` has it."""
        return np.where(np.abs(prediction - target) <= self.limit, 1.0, 0.0)
