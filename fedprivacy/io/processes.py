"""Processes beside this one: they are forked, so that nothing is imported or read again."""

from __future__ import annotations

import contextlib
import ctypes
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor

CAN_FORK = "fork" in multiprocessing.get_all_start_methods()
# Names and limits of glibc (malloc.h): free memory above the first returns to the system, arrays above the
# second are mapped one by one; 32 MB is the most that every version takes.
_TRIM_THRESHOLD, _MAP_THRESHOLD = -1, -3
_RETAINED, _MAPPED = 2**28, 2**25


def cores() -> int:
    """The cores that this process may use: fewer than the machine has where it was given a share of them."""
    if hasattr(os, "sched_getaffinity"):  # not on macOS
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def pool(workers: int, begin: Callable[..., object] | None = None, *given: object) -> ProcessPoolExecutor:
    """A pool of processes with one thread each.

    Args:
        workers: How many.
        begin: The function that each calls first.
        given: Its argument; where processes are forked it is not copied.
    """
    context = multiprocessing.get_context("fork" if CAN_FORK else "spawn")
    return ProcessPoolExecutor(workers, mp_context=context, initializer=settle, initargs=(begin, given))


def end_at_once(running: ProcessPoolExecutor) -> None:
    """Ends a pool at once, without waiting for its current work."""
    for process in dict(running._processes or {}).values():
        process.terminate()
    running.shutdown(wait=True, cancel_futures=True)


def settle(begin: Callable[..., object] | None, given: tuple[object, ...]) -> None:
    """Prepares a new process: it ends with its parent, ignores Ctrl-C, and computes with one thread.

    Args:
        begin: The function that it calls then.
        given: Its argument.
    """
    threading.Thread(target=_end_with_parent, daemon=True).start()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to all; the parent decides what becomes of it
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    use_one_thread()
    if begin is not None:
        begin(*given)


def use_one_thread() -> None:
    """Limits torch and the loaded BLAS and OpenMP libraries to one thread, for the rest of this process.

    Many small products gain nothing from more threads, which wait for each other: scikit-learn's logistic
    regression on 200 targets takes six times as long with two. More threads also round otherwise.
    """
    import torch
    from threadpoolctl import threadpool_limits

    torch.set_num_threads(1)
    threadpool_limits(1)


def retain_freed_memory() -> None:
    """Lets this process keep up to 256 MB of the memory that it frees, where the C library is glibc.

    By default glibc returns the large temporary arrays of each piece of work to the system, and each of
    their pages costs a fault in the next.
    """
    with contextlib.suppress(OSError, AttributeError, TypeError):  # another system or library
        library = ctypes.CDLL(None)
        library.mallopt(_TRIM_THRESHOLD, _RETAINED)
        library.mallopt(_MAP_THRESHOLD, _MAPPED)


def _end_with_parent() -> None:
    """A process whose parent was killed has nobody to work for."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
