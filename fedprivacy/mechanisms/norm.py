"""The norm mechanism: noise whose density falls with its L1, L2 or L-infinity norm."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from dp_accounting import dp_event as dp
from numpy.typing import ArrayLike, NDArray

from fedprivacy.accounting.optimal_composition import PureDpEvent
from fedprivacy.errors import InputError
from fedprivacy.mechanisms.laplace import Laplace
from fedprivacy.mechanisms.ranges import check_epsilon, check_sensitivity, check_size

ORDERS = (1, 2, math.inf)


@dataclass(frozen=True)
class NormMechanism:
    """Noise of density proportional to exp(-epsilon ||z|| / sensitivity) (Hardt and Talwar 2010, K-norm).

    By the triangle inequality two neighbours' densities differ by e^epsilon at most, and somewhere by just
    that. The lectures' exp(-epsilon ||z|| / (2 sensitivity)), from the exponential mechanism, is safe but
    adds twice the noise: the normalising constant is the same for both neighbours here.

    Args:
        epsilon: The budget of one release, from 1e-6 to 1e4.
        sensitivity: The most that one record can change the vector, in the same norm, under the adjacency
            that is meant.
        dimension: The number of coordinates.
        order: Which norm: 1 (the Laplace mechanism), 2 or infinity.

    Raises:
        InputError: A value is out of range.
    """

    epsilon: float
    sensitivity: float
    dimension: int
    order: float = 2
    name: ClassVar[str] = "norm"
    title: ClassVar[str] = "norm mechanism"

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        check_sensitivity(self.sensitivity)
        check_size("dimension", self.dimension)
        if self.order not in ORDERS:
            raise InputError(f"order = {self.order}: must be 1, 2 or infinity.")

    @property
    def scale(self) -> float:
        """sensitivity / epsilon, in the units of the vector."""
        return self.sensitivity / self.epsilon

    @property
    def _laplace(self) -> Laplace | None:
        # In one dimension all norms are one.
        return Laplace(self.epsilon, self.sensitivity) if 1 in (self.order, self.dimension) else None

    def draw(self, value: ArrayLike, stream: np.random.Generator) -> NDArray[np.float64]:
        """The vectors with noise, float64, shape (..., dimension).

        The norm of the noise is Gamma(dimension) distributed. In L2 it goes in a uniform direction; for
        L-infinity a uniform point of the cube is stretched by a Gamma(dimension + 1) variable, and its norm
        is that times a Beta(dimension, 1) variable.

        Args:
            value: Finite vectors, shape (..., dimension); each is a release of its own.
            stream: The random stream of this release, and of no other.

        Raises:
            InputError: The last axis is not `dimension` long, or a value is not finite.
        """
        vectors = np.asarray(value, dtype=np.float64)
        if vectors.ndim == 0 or vectors.shape[-1] != self.dimension:
            raise InputError(
                f"value: has shape {vectors.shape}, and its last axis must have length {self.dimension}."
            )
        if laplace := self._laplace:
            return laplace.draw(vectors, stream)
        if not np.isfinite(vectors).all():
            raise InputError(
                "value: must be finite; NaN and infinity would show through any noise. Clip it before."
            )
        if self.order == 2:
            noise = stream.standard_normal(vectors.shape)
            noise /= np.linalg.norm(noise, axis=-1, keepdims=True)
            noise *= stream.standard_gamma(self.dimension, (*vectors.shape[:-1], 1))
        else:
            # Gamma(d + 1), since a uniform point of the cube has a norm below 1: Gamma(d + 1) Beta(d, 1) is
            # Gamma(d), the norm that the density prescribes.
            noise = stream.uniform(-1.0, 1.0, vectors.shape)
            noise *= stream.standard_gamma(self.dimension + 1, (*vectors.shape[:-1], 1))
        return vectors + self.scale * noise

    @property
    def expected_norm(self) -> float:
        """E ||z|| = dimension * sensitivity / epsilon, in the mechanism's own norm, whichever it is."""
        return self.dimension * self.scale

    @property
    def variance(self) -> float:
        """The variance of one coordinate's noise: 2, d + 1 or (d + 1)(d + 2)/3 times scale^2."""
        d = self.dimension
        return {1: 2.0, 2: d + 1.0, math.inf: (d + 1) * (d + 2) / 3}[self.order] * self.scale**2

    def event(self, adjacency: str) -> dp.DpEvent:
        """The event of one release; in L1 it is the Laplace mechanism.

        Raises:
            InputError: The adjacency is none of the three.
        """
        return laplace.event(adjacency) if (laplace := self._laplace) else PureDpEvent(self.epsilon)

    @property
    def words(self) -> str:
        """The amount of noise, in words."""
        norm = "L-infinity" if self.order == math.inf else f"L{self.order:g}"
        return f"noise of mean {norm} norm {self.expected_norm:.4g}"
