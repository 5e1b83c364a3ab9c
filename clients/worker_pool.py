"""Processes that train the pieces of a message side by side, on data and a model that they share.

They are forked from the process that has read the data, so that nothing is copied or read again. The weights
of a round and the answers travel through shared memory. Which process trains a piece changes nothing: answers
are taken in the order of the pieces.

A process that dies is replaced and its piece done again, with the same draws and so to the same bits. What
kills its process twice, or takes too long, is done client by client, so that one client's fault is its own.
"""

from __future__ import annotations

import mmap
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from multiprocessing.connection import wait
from types import TracebackType
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from clients.chunk_training import ChunkTrainer, Part, joined
from clients.fleet import Fleet
from clients.personal_state import PersonalStates
from clients.worker_process import Died, Worker
from fedprivacy.io.processes import CAN_FORK, retain_freed_memory
from fedprivacy.messages.faults import Failure
from fedprivacy.messages.protocol import TrainRequest

Ids = NDArray[np.int64]
MakeTrainer = Callable[..., ChunkTrainer]  # of the fleet, the request, the threads and the states

_LOOK = 3600.0  # seconds between checks of the clock while no worker answers
_AHEAD = 2  # pieces for each worker that are begun before the first of them is taken


class WorkerPool:
    """Workers for the clients of a fleet, to be used as a context.

    With one worker all is done in this process, where nothing stops a client that hangs and one that dies
    takes the run with it; but where the clients of the fleet have a time of their own (`client_timeout`)
    there is one process. Several stop what takes longer than that, or than the server would wait for
    (`timeout`).

    Args:
        workers: How many processes. On systems that cannot fork, and for a GPU, all is done in this one.
    """

    def __init__(self, workers: int = 1) -> None:
        self.workers = workers if CAN_FORK else 1
        self._idle: list[Worker] = []
        self._shared: _Shared | None = None
        self._fleet: Fleet | None = None

    def __enter__(self) -> WorkerPool:
        torch.set_num_threads(1)  # as in each worker: more threads round otherwise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        while self._idle:
            self._idle.pop().shutdown()

    def train(
        self,
        fleet: Fleet,
        request: TrainRequest,
        pieces: Sequence[Ids],
        states: PersonalStates | None = None,
        trainer: MakeTrainer = ChunkTrainer,
    ) -> Iterator[Part]:
        """The results of the pieces, in order; use each one before taking the next.

        Args:
            fleet: The same each time.
            request: The server's request.
            pieces: The clients that answer, cut into pieces.
            states: What clients keep for their personal models.
            trainer: Makes what does the work of a piece; sent to the workers with each.
        """
        alone = self.workers == 1 and fleet.client_timeout is None
        if alone or not CAN_FORK or fleet.device != "cpu" or not pieces:
            # Beside a GPU no worker process divides the noise among the cores.
            threads = self.workers if fleet.device == "cuda" else 1
            for piece in pieces:
                yield trainer(fleet, request, threads, states).train(piece)
            return
        rows = max(map(len, pieces)) if request.observe == "each" else 1
        shared = self._share(fleet, len(request.weights), rows)
        shared.weights[:] = request.weights
        turns = _Turns(self, fleet, shared, request, pieces, states, trainer)
        try:
            yield from turns.parts()
        finally:  # no other process may write to the slots of the next message
            for worker in turns.busy:
                worker.stop()

    def worker(self) -> Worker:
        """One without a task."""
        if self._idle:
            return self._idle.pop()
        return Worker(_work, _join, self._fleet, self._shared)

    def give_back(self, worker: Worker) -> None:
        """Has one again that did its task."""
        self._idle.append(worker)

    def _share(self, fleet: Fleet, parameters: int, rows: int) -> _Shared:
        """The shared memory; workers that were forked before it existed are ended."""
        shared = self._shared
        if shared is None or shared.rows < rows or len(shared.weights) != parameters:
            self.__exit__(None, None, None)
            length = fleet.plan.answer_length(parameters)
            shared = self._shared = _Shared(parameters, length, rows, _AHEAD * self.workers)
            self._fleet = fleet
        return shared


@dataclass
class _Job:
    """A piece under way.

    Args:
        clients: Its ids.
        slot: The place of its answers in shared memory.
        left: Those that are still to be done alone, or None while all are done at once.
        parts: The results of those done alone.
        failure: Why the client whose turn it is answers without its data.
        retried: How often a process died over all of them.
    """

    clients: Ids
    slot: int
    left: deque[int] | None = None
    parts: list[Part] = field(default_factory=list)
    failure: Failure | None = None
    retried: int = 0

    @property
    def now(self) -> Ids:
        """The next piece."""
        return self.clients if self.left is None else np.array([self.left[0]])


class _Turns:
    """Assigns a message's pieces to workers, and handles processes that die or take too long."""

    def __init__(
        self,
        pool: WorkerPool,
        fleet: Fleet,
        shared: _Shared,
        request: TrainRequest,
        pieces: Sequence[Ids],
        states: PersonalStates | None,
        trainer: MakeTrainer,
    ) -> None:
        self._pool, self._shared, self._request, self._states = pool, shared, request, states
        self._make, self._trainer = trainer, trainer(fleet, request)
        self._plain = replace(request, weights=np.zeros(0, np.float32))
        self._pieces = pieces
        self._most = fleet.client_timeout or fleet.timeout  # seconds
        self._slots = deque(range(len(shared.slots)))
        self._waiting = deque(range(len(pieces)))
        self._again: deque[tuple[int, _Job]] = deque()
        self._done: dict[int, tuple[Part, int]] = {}
        self.busy: dict[Worker, tuple[int, _Job]] = {}

    def parts(self) -> Iterator[Part]:
        """The results of the pieces, in order."""
        for number in range(len(self._pieces)):
            self._hand_out()
            while number not in self._done:
                self._wait()
                self._hand_out()
            part, slot = self._done.pop(number)
            yield part
            self._slots.append(slot)

    def _hand_out(self) -> None:
        while len(self.busy) < self._pool.workers:
            if self._again:
                number, job = self._again.popleft()
            elif self._waiting and self._slots:
                number = self._waiting.popleft()
                job = _Job(self._pieces[number], self._slots.popleft())
            else:
                return
            worker = self._pool.worker()
            self.busy[worker] = number, job
            try:
                states = None if self._states is None else self._states.only(job.now)
                worker.start(self._plain, job.now, job.slot, job.failure, states, self._make)
            except Died:
                self._lost(worker, "worker_died")

    def _wait(self) -> None:
        """Until a process has answered, died or run out of time."""
        left = self._most - max(worker.seconds for worker in self.busy)
        ready = wait([worker.pipe for worker in self.busy], max(0.0, min(left, _LOOK)))
        for worker in [worker for worker in self.busy if worker.pipe in ready]:
            try:
                part = worker.take()
            except Died:
                self._lost(worker, "worker_died")
            else:
                number, job = self.busy.pop(worker)
                self._pool.give_back(worker)
                self._answered(number, job, part)
        for worker in [worker for worker in self.busy if worker.seconds >= self._most]:
            self._lost(worker, "late")

    def _answered(self, number: int, job: _Job, part: Part) -> None:
        part = self._shared.part(part, job.slot)
        if job.left is None:
            self._done[number] = replace(part, retried=job.retried), job.slot
        else:
            self._next(number, job, replace(part, private=part.private.copy()))

    def _lost(self, worker: Worker, kind: str) -> None:
        """Replaces the work of a process that died or took too long: again, one by one, or without data."""
        number, job = self.busy.pop(worker)
        worker.stop()
        if job.failure is not None:  # not even without its data
            self._next(number, job, self._trainer.silent(job.now, job.failure))
            return
        if job.left is None and kind == "worker_died" and not job.retried:
            job.retried = 1
        elif job.left is None and len(job.clients) > 1:
            job.left = deque(job.clients.tolist())
        else:
            job.left = deque(job.now.tolist()) if job.left is None else job.left
            why = "its worker process died" if kind == "worker_died" else f"not done after {self._most:g} s"
            job.failure = Failure(kind, f"client {job.left[0]}: {why}")
        self._again.append((number, job))

    def _next(self, number: int, job: _Job, part: Part) -> None:
        """Goes on with the next client of a piece whose clients are done one by one."""
        assert job.left is not None
        job.parts.append(part)
        job.left.popleft()
        job.failure = None
        if job.left:
            self._again.append((number, job))
        else:
            whole = joined(job.parts, self._request.observe)
            self._done[number] = replace(whole, retried=job.retried), job.slot


class _Shared:
    """Memory that all processes see: the weights of a round, and slots for answers.

    Args:
        parameters: Of the model.
        length: Of an answer (`Plan.answer_length`).
        rows: Updates that one answer may hold.
        slots: How many answers.
    """

    def __init__(self, parameters: int, length: int, rows: int, slots: int) -> None:
        self.rows = rows
        self.weights = np.frombuffer(mmap.mmap(-1, max(1, 4 * parameters)), np.float32, parameters)
        size = rows * length
        self.slots = [np.frombuffer(mmap.mmap(-1, max(1, 8 * size)), np.float64, size) for _ in range(slots)]

    def put(self, part: Part, slot: int) -> Part:
        """Stores an answer's numbers in a slot; the rest is sent as it is."""
        numbers = part.private.reshape(-1)
        self._as(part, slot)[: len(numbers)] = numbers
        return replace(part, private=np.empty((*part.private.shape, 0), part.private.dtype))

    def part(self, part: Part, slot: int) -> Part:
        """The answer again."""
        shape = part.private.shape[:-1]
        numbers = self._as(part, slot)[: int(np.prod(shape))]
        return replace(part, private=numbers.reshape(shape))

    def _as(self, part: Part, slot: int) -> NDArray[Any]:
        """A slot as numbers of an answer's type, of eight bytes each."""
        return self.slots[slot].view(part.private.dtype)


_here: tuple[Fleet, _Shared] | None = None


def _join(fleet: Fleet, shared: _Shared) -> None:
    """Initialises a worker process."""
    global _here
    retain_freed_memory()  # pieces are alike, so that each takes the memory of the one before
    _here = fleet, shared


def _work(
    request: TrainRequest,
    piece: Ids,
    slot: int,
    failure: Failure | None,
    states: PersonalStates | None,
    make: MakeTrainer,
) -> Part:
    assert _here is not None
    fleet, shared = _here
    trainer = make(fleet, replace(request, weights=shared.weights), states=states)
    if failure is not None:
        return shared.put(trainer.without_data(int(piece[0]), failure), slot)
    return shared.put(trainer.train(piece), slot)
