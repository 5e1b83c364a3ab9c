"""Calls over workers that die, at every moment that chance finds: Ray's part is played by a small model of it.

Real processes die in test_ray.py. There an answer that is lost on its way is one in hundreds of runs; here it is
as likely as not.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from ray.exceptions import GetTimeoutError, RayError

from fedprivacy.io.environment import versions
from scenarios.engines import ray_worker_pool
from scenarios.engines.ray_actor import Answer
from scenarios.engines.ray_cluster import Cluster
from scenarios.engines.ray_worker_pool import DIED, LATE, Ticket, Workers

HANGS = -1
VERSIONS = versions()


@dataclass(eq=False)
class Task:
    """What an actor was asked: a call is its number and how often it kills, or hangs."""

    call: tuple[int, int] | None
    state: str = "under way"
    value: Any = None


@dataclass(eq=False)
class Process:
    """Works its tasks off one after the other; an answer leaves it some time after it was made."""

    tasks: list[Task] = field(default_factory=list)
    leaving: list[Task] = field(default_factory=list)
    dead: bool = False

    def ask(self, call: tuple[int, int] | None) -> Task:
        task = Task(call, "lost" if self.dead else "under way")
        self.tasks += [] if self.dead else [task]
        return task

    def die(self) -> None:
        self.dead = True
        for task in self.tasks + self.leaving:
            task.state = "lost"
        self.tasks, self.leaving = [], []


class Ray:
    """Actors in whose order of work and death chance decides; time passes where somebody waits."""

    def __init__(self, seed: int) -> None:
        self.chance, self.processes, self.tries = random.Random(seed), list[Process](), Counter[int]()

    def put(self, value: Any) -> Any:
        return value

    def remote(self, **_: Any) -> Callable[[Any], Any]:
        return lambda _: SimpleNamespace(remote=self.start)

    def start(self) -> Any:
        process = Process()
        self.processes.append(process)
        remotes = {"begin": lambda *_: process.ask(None), "answer": process.ask}
        named = {name: SimpleNamespace(remote=ask) for name, ask in remotes.items()}
        return SimpleNamespace(process=process, **named)

    def kill(self, handle: Any, no_restart: bool) -> None:
        handle.process.die()

    def get(self, task: Task, timeout: float | None = None) -> Any:
        if task.state == "lost":
            raise RayError
        if task.state == "under way":
            raise GetTimeoutError
        return task.value

    def wait(self, tasks: list[Task], num_returns: int, timeout: float) -> tuple[list[Task], list[Task]]:
        for _ in range(200 if timeout else 1):
            ready = [task for task in tasks if task.state != "under way"]
            if ready:
                return ready[:num_returns], []
            self.pass_time()
        return [], tasks

    def pass_time(self) -> None:
        process = self.chance.choice([one for one in self.processes if not one.dead])
        if process.leaving and (not process.tasks or self.chance.random() < 0.4):
            process.leaving.pop(0).state = "there"
        elif process.tasks and process.tasks[0].call is None:
            begun = process.tasks.pop(0)
            begun.state, begun.value = "there", {"versions": VERSIONS}
        elif process.tasks:
            number, kills = process.tasks[0].call  # type: ignore[misc]
            if kills == HANGS:
                return
            self.tries[number] += 1
            if self.tries[number] <= kills:
                process.die()
                return
            answered = process.tasks.pop(0)
            answered.value = Answer()
            process.leaving.append(answered)


@pytest.fixture
def ray_of(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], Ray]:
    monkeypatch.setattr(ray_worker_pool, "versions", lambda: VERSIONS)

    def of(seed: int) -> Ray:
        ray = Ray(seed)
        monkeypatch.setattr(ray_worker_pool, "ray", ray)
        return ray

    return of


def test_nobody_is_given_up_for_what_another_call_does(ray_of: Callable[[int], Ray]) -> None:
    """Calls that kill no worker, or one, are answered; who kills each worker is tried twice or thrice, and told."""
    lost_in_company = 0
    for seed in range(3000):
        ray = ray_of(seed)
        kills = [ray.chance.choice([0, 0, 0, 1, 99]) for _ in range(ray.chance.randint(1, 12))]
        with Workers(Cluster(ray.chance.randint(1, 3)), None) as workers:  # type: ignore[arg-type]
            under_way, left = list[Ticket](), list(enumerate(kills))
            while left or under_way:
                while left and len(under_way) < workers.ahead:
                    under_way.append(workers.submit(left.pop(0)))  # type: ignore[arg-type]
                ticket = workers.wait(under_way.pop(0))
                for actor in workers._actors:
                    assert len(actor.calls) <= 1 or not any(its.alone for _, its in actor.calls)
                number, deadly = ticket.call  # type: ignore[misc]
                assert ticket.error == (DIED if deadly == 99 else None), (seed, number)
                if deadly == 99:
                    assert 2 <= ray.tries[number] <= 3
                lost_in_company += deadly == 0 and ticket.alone
    assert lost_in_company > 1000


def test_one_that_hangs_alone_and_is_forgotten_keeps_no_worker(ray_of: Callable[[int], Ray]) -> None:
    """It is lost with a worker that another call killed; tried again, alone, it hangs, and nobody waits for it."""
    ray_of(1)
    with Workers(Cluster(1), None) as workers:  # type: ignore[arg-type]
        deadly, hanging = (workers.submit(call) for call in ((0, 1), (1, HANGS)))  # type: ignore[arg-type]
        assert workers.wait(deadly).error is None
        assert hanging.alone
        workers.forget(hanging)
        later = workers.wait(workers.submit((2, 0)), until=time.monotonic() + 5)  # type: ignore[arg-type]
        assert later.answer == Answer()


def test_one_that_hangs_alone_is_ended_when_its_time_is_over(ray_of: Callable[[int], Ray]) -> None:
    ray_of(1)
    with Workers(Cluster(1), None) as workers:  # type: ignore[arg-type]
        deadly, hanging, later = (workers.submit(call) for call in ((0, 1), (1, HANGS), (2, 0)))  # type: ignore[arg-type]
        assert workers.wait(deadly).error is None
        assert workers.wait(hanging, until=0.0).error == LATE
        assert workers.wait(later).error is None
