"""A process beside this one that does one task at a time, and may die of it or be stopped in it."""

from __future__ import annotations

import contextlib
import multiprocessing
import time
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from fedprivacy.io.processes import settle

_GRACE = 5.0  # seconds for a process without a task to end by itself


class Died(Exception):
    """The process ended in the middle of its task."""


class Worker:
    """A process forked from this one.

    Args:
        work: The function that turns each task into an answer.
        begin: The function that it calls first.
        given: Its argument; nothing is copied.
    """

    def __init__(
        self, work: Callable[..., Any], begin: Callable[..., object] | None = None, *given: object
    ) -> None:
        context = multiprocessing.get_context("fork")
        self.pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(self.pipe, theirs, work, begin, given))
        self._process.start()
        theirs.close()  # its end alone is open then, so that its death ends the pipe
        self._began = 0.0

    def start(self, *task: Any) -> None:
        """Gives it a task.

        Raises:
            Died: it has died since its last.
        """
        self._began = time.monotonic()
        try:
            self.pipe.send(task)
        except OSError as error:
            raise Died from error

    @property
    def seconds(self) -> float:
        """The time since its task began."""
        return time.monotonic() - self._began

    def take(self) -> Any:
        """The answer to its task; waits for it.

        Raises:
            Died: it has died of it.
            Exception: what the task raised.
        """
        try:
            answer, error = self.pipe.recv()
        except (EOFError, OSError) as gone:
            raise Died from gone
        if error is not None:
            raise error
        return answer

    def stop(self) -> None:
        """Ends it at once, in the middle of whatever it does."""
        self._process.kill()
        self.pipe.close()
        self._process.join()
        self._process.close()

    def shutdown(self) -> None:
        """Ends it when it has no task."""
        with contextlib.suppress(OSError):
            self.pipe.send(None)  # others forked since have this end open too: closing it would end nothing
        self._process.join(_GRACE)
        self.stop()


def _serve(
    parents: Connection,
    pipe: Connection,
    work: Callable[..., Any],
    begin: Callable[..., object] | None,
    given: tuple[object, ...],
) -> None:
    parents.close()  # this process's copy: else it would never see that the parent closed it
    settle(begin, given)
    while True:
        try:
            task = pipe.recv()
        except (EOFError, OSError):
            return
        if task is None:
            return
        done: tuple[Any, Exception | None]
        try:
            done = work(*task), None
        except Exception as error:
            done = None, _sendable(error)
        try:
            pipe.send(done)
        except OSError:
            return


def _sendable(error: Exception) -> Exception:
    """An error without its frames, which hold data; its traceback is in its notes."""
    plain = RuntimeError(f"{type(error).__name__}: {error}")
    plain.add_note("".join(traceback.format_exception(error)))
    return plain
