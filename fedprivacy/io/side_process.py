"""A process beside this one that imports slow modules meanwhile, and calls functions of them for it.

A command starts it before it imports torch. On a second core the accountants and the drawing of pages are
ready by the time that the run needs them. What it computes is what this process would compute.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

from fedprivacy.io.processes import CAN_FORK, cores


class _Running:
    """The process and the pipe to it.

    Args:
        process: The process.
        pipe: This end of the pipe.
    """

    def __init__(self, process: BaseProcess, pipe: Connection) -> None:
        self.owner = os.getpid()
        self._process, self._pipe = process, pipe
        self._lock = threading.Lock()

    def request(self, function: str, args: tuple[Any, ...]) -> tuple[bool, Any] | None:
        """Whether a call succeeded, with its result or exception; None where the process has ended."""
        with self._lock:
            try:
                self._pipe.send((function, args))
                answer: tuple[bool, Any] = self._pipe.recv()
                return answer
            except (EOFError, OSError):  # killed, for want of memory for example
                return None
            except BaseException:
                self.end()  # an answer that nobody waited for would be taken for the next one
                raise

    def end(self) -> None:
        """Ends the process at once: what it works on is no longer wanted."""
        self._process.kill()
        self._process.join()
        self._pipe.close()


_running: _Running | None = None


@contextmanager
def started(modules: Sequence[str]) -> Iterator[None]:
    """Runs the process during the block, where processes can be forked and there is a second core.

    Args:
        modules: The modules that it imports until it is called, in this order.
    """
    global _running
    if _running is not None or not CAN_FORK or cores() == 1:
        yield
        return
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe()
    process = context.Process(target=_serve, args=(here, there, tuple(modules)), daemon=True)
    process.start()
    there.close()
    _running = _Running(process, here)
    try:
        yield
    finally:
        _running.end()
        _running = None


def call(function: str, *args: Any) -> Any:
    """Calls a function, in the process beside this one if there is any.

    Args:
        function: Its module and name, as "package.module:function".
        args: Its arguments; they and the result are pickled.

    Raises:
        Exception: that of the function.
    """
    running = _running
    # A forked process shares the pipe of its parent, and must not use it.
    if running is not None and running.owner == os.getpid():
        answer = running.request(function, args)
        if answer is not None:
            succeeded, result = answer
            if succeeded:
                return result
            raise result
    return _function(function)(*args)


def _function(name: str) -> Any:
    module, _, function = name.partition(":")
    return getattr(import_module(module), function)


def _serve(parents: Connection, pipe: Connection, modules: tuple[str, ...]) -> None:
    """Imports the modules while nothing is asked for, and answers until the parent is gone."""
    parents.close()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to both; the parent decides
    waiting = iter(modules)
    with suppress(EOFError, OSError):
        while True:
            if not pipe.poll():
                module = next(waiting, None)
                if module is not None:
                    import_module(module)
                    continue
            function, args = pipe.recv()
            pipe.send(_outcome(function, args))


def _outcome(function: str, args: tuple[Any, ...]) -> tuple[bool, Any]:
    try:
        return True, _function(function)(*args)
    except Exception as error:
        return False, error
