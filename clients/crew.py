"""Processes that train the pieces of a message side by side, on data and a model that they share.

They are forked from the process that has read the data, so that nothing is copied or read again. The weights
of a round and the answers travel through shared memory. Which process trains a piece changes nothing: answers
are taken in the order of the pieces.
"""

from __future__ import annotations

import mmap
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from types import TracebackType

import numpy as np
import torch
from numpy.typing import NDArray

from clients.fleet import Fleet
from clients.pieces import Part, train_piece
from fedprivacy.errors import RunError
from fedprivacy.processes import CAN_FORK, end_at_once, pool
from fedprivacy.protocol import TrainRequest

Ids = NDArray[np.int64]

_AHEAD = 2  # pieces for each worker that are begun before the first of them is taken


class Crew:
    """Workers for the clients of a fleet, to be used as a context.

    Args:
        workers: How many processes; with 1 all is done in this one. So it is on systems that cannot fork.
    """

    def __init__(self, workers: int = 1) -> None:
        self.workers = workers if CAN_FORK else 1
        self._pool: ProcessPoolExecutor | None = None
        self._shared: _Shared | None = None

    def __enter__(self) -> Crew:
        torch.set_num_threads(1)  # as in each worker: more threads round otherwise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pool is not None:
            end_at_once(self._pool) if error is not None else self._pool.shutdown()
            self._pool = None

    def train(self, fleet: Fleet, request: TrainRequest, pieces: Sequence[Ids]) -> Iterator[Part]:
        """What became of each piece, in order; an answer is to be used up before the next is taken.

        Args:
            fleet: The same each time.
            request: What the server asks for.
            pieces: The clients that answer, cut into pieces.

        Raises:
            RunError: if a process died.
        """
        if self.workers == 1 or len(pieces) == 1 or fleet.device != "cpu":
            for piece in pieces:
                yield train_piece(fleet, request, piece)
            return
        rows = max(map(len, pieces)) if request.observe == "each" else 1
        running, shared = self._begin(fleet, len(request.weights), rows)
        shared.weights[:] = request.weights
        plain, waiting = replace(request, weights=np.zeros(0, np.float32)), deque[Future[Part]]()
        try:
            for number, piece in enumerate(pieces):
                if len(waiting) == len(shared.slots):
                    yield shared.part(waiting.popleft().result(), number - len(shared.slots))
                waiting.append(running.submit(_work, plain, piece, number % len(shared.slots)))
            for number in range(len(pieces) - len(waiting), len(pieces)):
                yield shared.part(waiting.popleft().result(), number)
        except BrokenProcessPool as error:
            raise RunError(
                "a worker process died; if memory ran out, take fewer --workers or smaller models"
            ) from error
        finally:  # nobody else may write where the next message's answers will stand
            for future in waiting:
                future.cancel()
            wait(waiting)

    def _begin(self, fleet: Fleet, parameters: int, rows: int) -> tuple[ProcessPoolExecutor, _Shared]:
        shared = self._shared
        if self._pool is None or shared is None or shared.rows < rows or len(shared.weights) != parameters:
            if self._pool is not None:
                self._pool.shutdown(wait=True)
            self._shared = _Shared(parameters, rows, _AHEAD * self.workers)
            self._pool = pool(self.workers, _join, fleet, self._shared)
        assert self._shared is not None
        return self._pool, self._shared


class _Shared:
    """Memory that all processes see: the weights of a round, and slots for answers.

    Args:
        parameters: Of the model.
        rows: Updates that one answer may hold.
        slots: How many answers.
    """

    def __init__(self, parameters: int, rows: int, slots: int) -> None:
        self.rows = rows
        self.weights = np.frombuffer(mmap.mmap(-1, max(1, 4 * parameters)), np.float32, parameters)
        size = rows * parameters
        self.slots = [np.frombuffer(mmap.mmap(-1, max(1, 8 * size)), np.float64, size) for _ in range(slots)]

    def put(self, part: Part, slot: int) -> Part:
        """Leaves an answer's numbers in a slot; what is left travels as it is."""
        numbers = part.private.reshape(-1)
        self.slots[slot][: len(numbers)] = numbers
        return replace(part, private=np.empty((*part.private.shape, 0)))

    def part(self, part: Part, number: int) -> Part:
        """The answer again."""
        shape = part.private.shape[:-1]
        numbers = self.slots[number % len(self.slots)][: int(np.prod(shape))]
        return replace(part, private=numbers.reshape(shape))


_here: tuple[Fleet, _Shared] | None = None


def _join(fleet: Fleet, shared: _Shared) -> None:
    """What a process begins with."""
    global _here
    _here = fleet, shared


def _work(request: TrainRequest, piece: Ids, slot: int) -> Part:
    assert _here is not None
    fleet, shared = _here
    return shared.put(train_piece(fleet, replace(request, weights=shared.weights), piece), slot)
