"""Jobs spread over processes: the results do not depend on how many there are."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from typing import TypeVar

Result = TypeVar("Result")


def spread(
    work: Callable[..., Result], jobs: Sequence[tuple[object, ...]], workers: int, preload: str
) -> Iterator[tuple[int, Result]]:
    """Does all jobs, `workers` at a time, and yields each one's number and result as it is done.

    Whatever breaks off the iteration ends the processes.

    Args:
        work: A function of a module; it is given one job's arguments.
        jobs: The arguments of each.
        workers: How many processes; with 1 all is done in this one, in order.
        preload: The module that every process needs.
    """
    if workers == 1:
        for number, job in enumerate(jobs):
            yield number, work(*job)
        return
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([preload])
    pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_ignore_interrupts)
    try:
        started: dict[Future[Result], int] = {
            pool.submit(work, *job): number for number, job in enumerate(jobs)
        }
        for future in as_completed(started):
            yield started[future], future.result()
    except BaseException:
        for process in multiprocessing.active_children():
            process.terminate()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _ignore_interrupts() -> None:
    """Ctrl-C goes to the whole process group; the parent alone decides what becomes of it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
