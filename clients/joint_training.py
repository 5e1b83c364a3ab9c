"""Trains the clients that a server addresses one by one in joint calls: a simulation's shortcut.

In an attacked run each client has a message to itself, and most of them are sent the same model. The first of
them has all of its call trained, and the others' messages find their updates there. A client's update depends
on its own data, the weights, the round and the plan alone (`fedprivacy.training.calls`), so that training it
before its message comes changes no bit. What nobody asks for is dropped: only an answered message spends a
budget.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from clients.chunk_training import ChunkTrainer, Part, Trained, client_chunks
from clients.fleet import Fleet
from clients.personal_state import PersonalStates
from fedprivacy.messages.protocol import TrainRequest

Ids = NDArray[np.int64]


class JointTraining:
    """The training of an attacked run's clients, where all of them take part in each round.

    Args:
        apart: A client that is trained by itself: the victim, which may be sent weights of its own, or an
            attacking participant.
        alone: Whether a call of one client gives it the same bits (`Fleet.alone` of the run), so that a
            client that is alone in its call, such as one of a size of its own, needs no copies in all other
            places.
    """

    def __init__(self, apart: int, alone: bool = True) -> None:
        self._apart, self._alone = apart, alone
        self._request: TrainRequest | None = None
        self._trained: dict[int, Trained] = {}
        self._fleets: tuple[Fleet, Fleet, Fleet] | None = None

    def train(
        self,
        fleet: Fleet,
        request: TrainRequest,
        pieces: Sequence[Ids],
        states: PersonalStates | None = None,
    ) -> Iterator[Part]:
        """The results of the pieces, in order; as `clients.worker_pool.WorkerPool` has it.

        There are no personal models in attacked runs.
        """
        for piece in pieces:
            if len(piece) > 1 or self._apart in piece or (self._alone and not fleet.alone):
                lone = len(piece) == 1 and self._alone
                yield ChunkTrainer(self._variants(fleet)[1] if lone else fleet, request).train(piece)
                continue
            client = int(piece[0])
            if self._request is None or not _alike(self._request, request):
                self._request, self._trained = request, {}
            if client not in self._trained:
                self._train_call(fleet, request, client)
            yield ChunkTrainer(fleet, request).privatised(piece, self._trained.pop(client))

    def _train_call(self, fleet: Fleet, request: TrainRequest, client: int) -> None:
        """Trains a client and the others of its call."""
        joint = self._variants(fleet)[0]
        others = np.flatnonzero(np.arange(fleet.plan.population) != self._apart)
        calls = client_chunks(joint, others, request.observe)
        call = next(call for call in calls if client in call)
        trained = ChunkTrainer(joint, request).trained(call)
        self._trained |= {int(member): trained.at(call, place) for place, member in enumerate(call)}

    def _variants(self, fleet: Fleet) -> tuple[Fleet, Fleet]:
        """The fleet for calls of all clients but that one, and for calls of one; each finds shapes once."""
        if self._fleets is None or self._fleets[0] is not fleet:
            joint, lone = replace(fleet, alone=False, apart=self._apart), replace(fleet, alone=True)
            self._fleets = fleet, joint, lone
        return self._fleets[1:]


def _alike(first: TrainRequest, second: TrainRequest) -> bool:
    """Whether two requests train a client in the same way."""
    same_call = (first.round, first.observe) == (second.round, second.observe)
    return same_call and np.array_equal(first.weights, second.weights)
