"""Private scores of candidates on the clients' own records, by a mechanism that is charged for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from dp_accounting import dp_event as dp
from numpy.typing import NDArray

from fedprivacy.mechanisms.gaussian import Gaussian
from fedprivacy.mechanisms.selection import ExponentialMechanism

Vector = NDArray[np.float64]


def shares(right: NDArray[np.bool_], offsets: NDArray[np.int64]) -> Vector:
    """The share of each client's records that a model names rightly, in [0, 1], shape (clients,).

    Args:
        right: Of each record, client after client, shape (records,).
        offsets: Client c owns right[offsets[c]:offsets[c + 1]], shape (clients + 1,).
    """
    before = np.concatenate([[0], np.cumsum(right)])
    sizes = np.diff(offsets)
    # A client without records counts like one whose records are all wrong: 0/0 would spoil the whole sum.
    return np.asarray((before[offsets[1:]] - before[offsets[:-1]]) / np.maximum(sizes, 1))


@dataclass(frozen=True)
class NoisyScore:
    """The sum over clients of their share less 1/2, with Gaussian noise.

    Centred, a client's part lies within 1/2 of 0, and a client that is replaced moves the sum by 1 at most:
    one Gaussian release of clipping norm 1/2 under every adjacency.

    Args:
        noise_multiplier: Noise standard deviation over 1/2.
    """

    noise_multiplier: float
    name: ClassVar[str] = "noisy-score"
    title: ClassVar[str] = "noisy score"

    @property
    def gaussian(self) -> Gaussian:
        """The mechanism, which draws the noise and is accounted for."""
        return Gaussian(0.5, self.noise_multiplier)

    @property
    def words(self) -> str:
        """The amount of noise, in words."""
        return self.gaussian.words

    def event(self) -> dp.DpEvent:
        """The event of one score."""
        return self.gaussian.event()

    def draw(self, parts: Vector, stream: np.random.Generator) -> float:
        """The noisy sum.

        Args:
            parts: The share of each client, in [0, 1], shape (clients,).
            stream: The random stream of this release, and of no other.
        """
        # The sensitivity rests on this range, so it is enforced here, whatever computed the parts.
        centred = np.clip(parts, 0.0, 1.0) - 0.5
        return float(centred.sum() + self.gaussian.draw(1, stream)[0])


def by_clients(epsilon: float, adjacency: str) -> ExponentialMechanism:
    """The exponential mechanism on sums of shares: one client moves each by 1 at most, from 0.

    A client that comes moves none of them down; one that is replaced may move some up and some down.
    """
    return ExponentialMechanism(epsilon, 1.0, monotone=adjacency != "replace-one")
