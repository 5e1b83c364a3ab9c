"""The common part of local randomisers of pure epsilon-DP: their budget and its event."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
from dp_accounting import dp_event as dp
from numpy.typing import NDArray

from fedprivacy.accounting.optimal_composition import PureDpEvent

# Beyond, the other answer of randomised response is less likely than 1e-10: hardly private any more.
MAX_EPSILON = 25.0


@dataclass(frozen=True)
class PureMechanism(ABC):
    """A local randomiser of vectors of L2 norm at most C, epsilon-DP for any two of them.

    Args:
        clipping_norm: C, the L2 bound of one client's update.
        epsilon: The budget of one message, above 0.
    """

    clipping_norm: float
    epsilon: float
    name: ClassVar[str]
    title: ClassVar[str]

    @classmethod
    def uncalibrated(cls, clipping_norm: float, dimension: int, direction: str) -> Self:
        """As `LocalMechanism` has it; a mechanism of more fields overrides it."""
        return cls(clipping_norm, 1.0)

    def event(self) -> dp.DpEvent:
        """The event of one message, as the accountant reads it."""
        # Every such message is a function of randomised response on one bit (Kairouz, Oh and Viswanath 2015):
        # epsilon alone bounds what any number of them costs.
        return PureDpEvent(self.epsilon)

    def with_noise(self, noise: float) -> Self:
        """The same mechanism at epsilon = 1/noise, so that more noise is more private, as elsewhere."""
        return replace(self, epsilon=min(1 / noise, MAX_EPSILON))

    @abstractmethod
    def randomise(self, update: NDArray[np.float64], stream: np.random.Generator) -> NDArray[np.float64]:
        """One client's message, float64, shape (dimension,)."""

    def randomise_all(
        self, updates: NDArray[np.float64], streams: Iterable[np.random.Generator]
    ) -> NDArray[np.float64]:
        """The messages of several clients: `randomise` of each, float64, shape (clients, dimension).

        Args:
            updates: The clipped updates, shape (clients, dimension).
            streams: The random stream of each client; each is used up before the next is taken.
        """
        messages = np.empty(updates.shape)
        for message, update, stream in zip(messages, updates, streams, strict=True):
            message[:] = self.randomise(update, stream)
        return messages

    @property
    def words(self) -> str:
        """The amount of noise, in words."""
        return f"epsilon {self.epsilon:.4g} a message"
