"""The actors of a run: calls spread over them, dead ones replaced, and their calls tried once more."""

from __future__ import annotations

import logging
import math
import os
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

import ray
from ray.exceptions import GetTimeoutError, RayError, RayTaskError

from fedprivacy.errors import InputError, RunError
from fedprivacy.io.environment import versions
from scenarios.engines.ray_actor import Answer, Call, Changes, MakeApp, Worker
from scenarios.engines.ray_cluster import Cluster

logger = logging.getLogger(__name__)

_TRIES = 2  # of a call, and of a worker that begins
_AT_ONCE = 2  # calls that one worker has: it begins the next while its last answer is on the way
_PATIENCE = 60.0  # seconds without any worker before a message to the user

DIED = "the worker died twice on it"
LATE = "the worker was ended, since it took longer than federation.timeout"


@dataclass(eq=False)
class Ticket:
    """A call that was handed in.

    Args:
        call: The call to answer.
        answer: Its answer, once there is one.
        error: Or why there is none.
        deaths: How many workers have died on it.
        alone: Whether a worker that has it gets no other: it was lost with a worker that died.
    """

    call: Call
    answer: Answer | None = None
    error: str | None = None
    deaths: int = 0
    alone: bool = False

    @property
    def done(self) -> bool:
        return self.answer is not None or self.error is not None


@dataclass(eq=False)
class _Actor:
    """A worker: its start, until it has finished, and its calls, in the order of their start."""

    handle: Any
    beginning: Any
    calls: list[tuple[Any, Ticket]] = field(default_factory=list)

    def takes(self, ticket: Ticket, most: int) -> bool:
        """Whether it can take one more call, up to the limit."""
        if ticket.alone or any(its.alone for _, its in self.calls):
            return not self.calls
        return len(self.calls) < most


class Workers:
    """Ray actors that answer calls, each with an app of its own; to be used as a context.

    Args:
        cluster: Where they run, and how many there may be.
        make_app: Makes the app of each.
        changes: The part of a node's state that they return, see `Worker.begin`.

    Raises:
        InputError: on entering, if no app can be made; the other errors come with the first call.
    """

    def __init__(self, cluster: Cluster, make_app: MakeApp, changes: Changes | None = None) -> None:
        self.count, self.retried = cluster.workers, 0
        options = {"num_cpus": 1, "num_gpus": cluster.gpus_per_worker, "max_restarts": 0}
        self._kind, self.changes = ray.remote(**options)(Worker), changes
        self._begin_with = (ray.put(make_app), changes, os.getcwd())
        self._waiting: deque[Ticket] = deque()
        self._actors: list[_Actor] = []
        self._began_in_vain = 0

    def __enter__(self) -> Workers:
        self._actors = [self._start() for _ in range(self.count)]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        actors, self._actors = self._actors, []
        for actor in actors:
            _kill(actor)

    @property
    def ahead(self) -> int:
        """The most calls in progress, enough to keep all workers busy."""
        return _AT_ONCE * self.count

    def submit(self, call: Call) -> Ticket:
        """Hands a call in; calls begin in the order in which they are handed in."""
        ticket = Ticket(call)
        self._waiting.append(ticket)
        self._spread()
        return ticket

    def wait(self, ticket: Ticket, until: float = math.inf) -> Ticket:
        """Waits until a call has its answer, or an error.

        Args:
            ticket: The call.
            until: When it is given up (``time.monotonic``). A worker that is at work on it is ended: nothing
                else stops one that hangs. One that nobody has begun with counts as not begun.

        Raises:
            InputError: if a worker cannot make its app, or has other versions.
            RunError: if workers die while they begin, or one fails in its own code.
        """
        while not ticket.done:
            pending = [actor.beginning for actor in self._actors if actor.beginning is not None]
            nobody = len(pending) == len(self._actors)
            pending += [reference for actor in self._actors for reference, _ in actor.calls]
            left = until - time.monotonic()
            ready, _ = ray.wait(pending, num_returns=1, timeout=max(0.0, min(left, _PATIENCE)))
            if not ready and left <= 0:
                self._give_up(ticket)
            elif not ready and nobody:
                logger.warning(
                    "No worker has begun for %.0f s: has the cluster free CPUs and GPUs?", _PATIENCE
                )
            if ready:  # all workers, so that calls go to free ones
                ready, _ = ray.wait(pending, num_returns=len(pending), timeout=0)
            for reference in ready:
                self._take(reference)
            self._spread()
        return ticket

    def forget(self, ticket: Ticket) -> None:
        """Nobody waits for this call any more; if it has begun it is finished, for nothing.

        But for one that has a worker for itself: nothing else would begin there while it hangs.
        """
        if ticket in self._waiting:
            self._waiting.remove(ticket)
        for actor in self._actors:
            if ticket.alone and ticket in [its for _, its in actor.calls]:
                self._replace(actor)
                return

    def _start(self) -> _Actor:
        handle = self._kind.remote()
        return _Actor(handle, handle.begin.remote(*self._begin_with))

    def _spread(self) -> None:
        """Gives calls that wait to the workers that have fewest.

        While one begins nobody has a second: behind a call that hangs it would wait in vain.
        """
        most = 1 if any(actor.beginning is not None for actor in self._actors) else _AT_ONCE
        while self._waiting:
            ticket = self._waiting[0]
            able = [a for a in self._actors if a.beginning is None and a.takes(ticket, most)]
            if not able:
                return
            actor = min(able, key=lambda actor_free: len(actor_free.calls))
            self._waiting.popleft()
            actor.calls.append((actor.handle.answer.remote(ticket.call), ticket))

    def _take(self, reference: Any) -> None:
        """Receives the outcome of a call, or of a worker's start."""
        for actor in self._actors:
            if actor.beginning == reference:
                self._began(actor)
                return
            for place, (its, ticket) in enumerate(actor.calls):
                if its == reference:
                    try:
                        ticket.answer = _get(reference)
                        del actor.calls[place]
                    except _Dead:
                        self._died(actor)
                    return

    def _began(self, actor: _Actor) -> None:
        try:
            start = _get(actor.beginning)
        except _Dead as death:
            self._began_in_vain += 1
            if self._began_in_vain == _TRIES:
                raise RunError(
                    f"a Ray worker died {_TRIES} times while it began ({death}); if memory ran out, take "
                    "fewer --workers"
                ) from None
            self._replace(actor)
            return
        if "error" in start:
            raise (InputError if start["input"] else RunError)(start["error"])
        if start["versions"] != versions():
            raise InputError(
                f"--ray-address: a worker has {start['versions']}, here is {versions()}. Install the same "
                "there: others give other bits."
            )
        actor.beginning, self._began_in_vain = None, 0

    def _died(self, actor: _Actor) -> None:
        """Replaces a worker. Its first call without an answer counts as the one that it died on.

        That may be wrong: an answer that was still on its way dies with it. So all that were lost are tried
        alone from now on, and none is given up before a worker has died that had nothing else.
        """
        lost = []
        for reference, ticket in actor.calls:
            try:
                ticket.answer = _get(reference, timeout=0)
            except (_Dead, GetTimeoutError):
                lost.append(ticket)
        for ticket in lost:
            ticket.alone = True
        if lost:
            lost[0].deaths += 1
            if lost[0].deaths == _TRIES:
                lost.pop(0).error = DIED
            else:
                self.retried += 1
        self._waiting.extendleft(reversed(lost))
        self._replace(actor)

    def _give_up(self, ticket: Ticket) -> None:
        """Ends the worker that has a call, whose first call it is at work on: there it hangs."""
        for actor in self._actors:
            tickets = [its for _, its in actor.calls]
            if ticket in tickets:
                tickets[0].error = LATE
                self._waiting.extendleft(its for its in reversed(tickets[1:]) if its is not ticket)
                self._replace(actor)
                break
        else:
            self.forget(ticket)
        if not ticket.done:
            ticket.answer = Answer(started=False)

    def _replace(self, actor: _Actor) -> None:
        _kill(actor)
        self._actors[self._actors.index(actor)] = self._start()


class _Dead(Exception):
    """The process that should have answered is gone, or what it answered is."""


def _get(reference: Any, timeout: float | None = None) -> Any:
    """The return value of an actor.

    Raises:
        _Dead: if it died.
        RunError: if its own code failed; that is a fault of this program.
        GetTimeoutError: if it takes longer than `timeout` seconds.
    """
    try:
        return ray.get(reference, timeout=timeout)
    except GetTimeoutError:
        raise
    except RayTaskError as error:
        raise RunError(f"a Ray worker failed: {type(error.cause).__name__}: {error.cause}") from None
    except RayError as error:
        raise _Dead(type(error).__name__) from None


def _kill(actor: _Actor) -> None:
    with suppress(RayError, ValueError):  # it is gone already, or its cluster is
        ray.kill(actor.handle, no_restart=True)
