"""An auditor at the server: it changes nothing, and looks at what each observer of the canaries sees."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from flwr.app import Message
from numpy.typing import NDArray

from fedprivacy.attacks.canaries import Canaries
from fedprivacy.messages.protocol import parts_of
from server.optimizers import ServerOptimizer

Vector = NDArray[np.float64]


class Auditor:
    """Listens to all replies of the clients (a `ServerAdversary`).

    Args:
        canaries: The auditor's clients.
        parameters: Of the model.

    Attributes:
        messages: The messages' component along each canary's direction, in units of C,
            from the middle between both coins, added up, shape (canaries,).
    """

    def __init__(self, canaries: Canaries, parameters: int) -> None:
        self._canaries = canaries
        self.messages = np.zeros(canaries.count)
        self._others = np.zeros(parameters)

    def act(self, request: Message) -> Message:
        """Sends what the honest server sends."""
        return request

    def observe(self, reply: Message) -> Message:
        """Looks at a reply: each message, or their sum where no more is seen."""
        if reply.has_error() or "arrays" not in reply.content:
            return reply
        arrays, _ = parts_of(reply)
        if "updates" not in arrays:
            return reply
        updates, clients = arrays["updates"], arrays["clients"]
        places = self._canaries.of(clients)
        if updates.ndim == 1:
            along = self._canaries.directions[places] @ updates / self._canaries.norm
        else:
            rows = updates[len(clients) - len(places) :]  # clients are sorted, and canaries the last
            along = np.einsum("ij,ij->i", rows, self._canaries.directions[places]) / self._canaries.norm
            self._others += updates[: len(clients) - len(places)].sum(axis=0)
        self.messages[places] += along - self._canaries.middle
        return reply

    def others(self) -> Vector:
        """The sum of the answers of all clients but the canaries since the last call."""
        totals, self._others = self._others, np.zeros_like(self._others)
        return totals


class Overheard:
    """A server optimizer that records its input: the average that a round releases.

    Args:
        inner: Moves the model.
        see: Takes each average update.
    """

    def __init__(self, inner: ServerOptimizer, see: Callable[[Vector], object]) -> None:
        self._inner, self._see = inner, see
        self.state = inner.state

    def step(self, weights: Vector, update: Vector, number: int) -> Vector:
        """As the optimizer inside."""
        self._see(update)
        return self._inner.step(weights, update, number)
