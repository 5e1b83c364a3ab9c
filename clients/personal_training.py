"""Trains clients' personal models beside their updates, so that a failure there costs no update."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from clients.chunk_training import ChunkTrainer, Part, joined
from clients.fleet import Fleet
from clients.joint_training import JointTraining
from clients.personal_state import PersonalStates
from clients.worker_pool import WorkerPool
from fedprivacy.messages.faults import Failure
from fedprivacy.messages.protocol import TrainRequest
from fedprivacy.training.calls import train_in_call
from fedprivacy.training.personalisation import Ditto
from fedprivacy.training.task import Task
from fedprivacy.training.updates import Updates

Ids = NDArray[np.int64]


@dataclass(frozen=True)
class PersonalTrainer(ChunkTrainer):
    """Does the personal work of chunks of clients: nothing of it is an answer to the server."""

    def train(self, clients: Ids) -> Part:
        """The work of the clients of a chunk; those that raise are isolated, and are not in the result."""
        try:
            return self.personal_part(clients)
        except Exception as error:
            self._refuse_lost_device(error)
            if len(clients) == 1:
                reason = f"client {clients[0]}: {type(error).__name__}: {error}"
                return self.silent(clients, Failure("raised", reason))
        return joined([self.train(half) for half in np.array_split(clients, 2)], "each")

    @abstractmethod
    def personal_part(self, clients: Ids) -> Part:
        """The work of the clients of a chunk."""

    def without_data(self, client: int, failure: Failure) -> Part:
        """As `silent`: nobody waits for an answer."""
        return self.silent(np.array([client]), failure)

    def silent(self, clients: Ids, failure: Failure) -> Part:
        """The part of clients that failed."""
        return Part(np.zeros(0), clients[:0], 0, dict.fromkeys(clients.tolist(), failure))

    def task_beside(self, clients: Ids) -> tuple[Task, NDArray[np.float32]]:
        """The training of the clients of a call, and what they keep."""
        fleet = self.fleet
        assert fleet.personal is not None
        assert self.states is not None
        records = fleet.people.partition.records_of(clients)
        fleet.check_labels(records)
        shape = fleet.shape(int(fleet.classes(clients).max()), beside=True)
        task = replace(self._task(clients, fleet.inputs(records), fleet.y, records), shape=shape)
        return task, self.states.of(clients, fleet.personal.initial(self.request.weights))

    def beside(self, task: Task) -> tuple[Updates, Ids]:
        """Trains models of the clients of a call by plain SGD."""
        assert task.shape is not None
        places = self.fleet.places(task.clients, task.shape)
        return train_in_call(task, self.fleet.train_beside, places, secret=False)


@dataclass(frozen=True)
class CopyTrainer(PersonalTrainer):
    """Trains the copies of Ditto in a round, after the updates are formed."""

    def personal_part(self, clients: Ids) -> Part:
        """The copies of the clients of a chunk."""
        assert isinstance(self.fleet.personal, Ditto)
        task, copies = self.task_beside(clients)
        rows = self.fleet.personal.train(task, copies, self.beside)
        return Part(np.zeros(0), clients, 0, {}, personal=PersonalStates(clients, rows))


def copies_of(
    fleet: Fleet,
    request: TrainRequest,
    pieces: Sequence[Ids],
    pool: WorkerPool | JointTraining | None,
    states: PersonalStates,
) -> Iterator[Part]:
    """The copies of clients after a round; a copy that fails is in no part, so that it stays what it was.

    Args:
        fleet: The clients.
        request: The server's request.
        pieces: Those that trained, cut into calls.
        pool: Who trains them; None: this process.
        states: What they kept before.
    """
    if isinstance(pool, WorkerPool):
        return pool.train(fleet, request, pieces, states, CopyTrainer)
    return map(CopyTrainer(fleet, request, states=states).train, pieces)
