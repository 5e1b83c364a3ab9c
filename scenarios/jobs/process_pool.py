"""Tasks spread over processes, with results that do not depend on their number."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, as_completed
from typing import TypeVar

from fedprivacy.io.processes import end_at_once, pool

Result = TypeVar("Result")


def spread(
    work: Callable[..., Result], tasks: Sequence[tuple[object, ...]], workers: int
) -> Iterator[tuple[int, Result]]:
    """Does all tasks, `workers` at a time, and yields each one's number and result as it is done.

    Whatever breaks off the iteration ends the processes.

    Args:
        work: A function of a module; it is given one task's arguments.
        tasks: The arguments of each.
        workers: How many processes; with 1 all is done in this one, in order.
    """
    if workers == 1:
        for number, task in enumerate(tasks):
            yield number, work(*task)
        return
    running = pool(workers)
    try:
        started: dict[Future[Result], int] = {
            running.submit(work, *task): number for number, task in enumerate(tasks)
        }
        for future in as_completed(started):
            yield started[future], future.result()
    except BaseException:
        end_at_once(running)
        raise
    running.shutdown()
