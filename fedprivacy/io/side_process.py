"""A process beside this one that imports slow modules meanwhile, and calls functions of them for it.

A command starts it before it imports torch. On a second core the accountants and the drawing of pages are
ready by the time that the run needs them. What it computes is what this process would compute, and whatever
it cannot do this process does.
"""

from __future__ import annotations

import atexit
import multiprocessing
import os
import signal
import threading
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from multiprocessing.reduction import ForkingPickler
from typing import Any

from fedprivacy.io.processes import CAN_FORK, cores

GRACE = 5.0  # seconds in which an interrupted call may remove what it has half written
PAUSE = 0.2  # seconds in which it ends by itself where it does nothing
_SIGNALS = {signal.SIGINT, signal.SIGTERM}


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
        """Whether a call succeeded, with its result or exception; None where this process has to do it."""
        with self._lock:
            try:
                self._pipe.send((function, args))
                answer: tuple[bool, Any] | None = self._pipe.recv()
                return answer
            except (EOFError, OSError):  # killed, for want of memory for example
                return None
            except BaseException:
                self.end(GRACE)  # an answer that nobody waited for would be taken for the next one
                raise

    def end(self, patience: float = PAUSE) -> None:
        """Ends the process; after so many seconds it is killed, within an import for example."""
        self._pipe.close()
        self._process.join(patience)
        self._process.kill()
        self._process.join()


_running: _Running | None = None


@contextmanager
def started(modules: Sequence[str]) -> Iterator[None]:
    """Runs the process during the block, where processes can be forked and there is a second core.

    Args:
        modules: The modules that it imports until it is called, in this order.
    """
    global _running
    running = None if _running is not None or not CAN_FORK or cores() == 1 else _start(tuple(modules))
    if running is None:
        yield
        return
    _running = running
    try:
        yield
    finally:
        _running = None
        running.end()


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


def _start(modules: tuple[str, ...]) -> _Running | None:
    """The process; None where the system refuses one."""
    context = multiprocessing.get_context("fork")
    try:
        here, there = context.Pipe()
    except OSError:
        return None
    with there:
        process = context.Process(target=_serve, args=(here, there, modules), daemon=True)
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)  # until it has handlers of its own
        try:
            process.start()
        except OSError:
            here.close()
            return None
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return _Running(process, here)


def _serve(parents: Connection, pipe: Connection, modules: tuple[str, ...]) -> None:
    """Imports the modules while nothing is asked for, and answers until the parent is gone or ends it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to both; the parent decides
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
    atexit._clear()  # those of the parent
    parents.close()
    waiting = iter(modules)
    try:
        while True:
            if not pipe.poll():
                module = next(waiting, None)
                if module is not None:
                    with suppress(Exception):  # a call that needs it meets the error
                        import_module(module)
                    continue
            pipe.send_bytes(_answer(pipe))
    except (EOFError, OSError):
        pass
    finally:
        atexit._run_exitfuncs()  # a forked process runs none, and matplotlib removes its folder by one


def _answer(pipe: Connection) -> bytes:
    """Receives a call and does it: the answer, pickled; None where it cannot be sent."""
    request = pipe.recv_bytes()
    try:
        function, args = ForkingPickler.loads(request)
        try:
            answer = True, _function(function)(*args)
        except Exception as error:
            error.add_note("".join(traceback.format_exception(error)))
            ForkingPickler.loads(_pickled(error))  # some exceptions cannot be read again
            answer = False, error
        return _pickled(answer)
    except Exception:
        return _pickled(None)


def _pickled(answer: object) -> bytes:
    return bytes(ForkingPickler.dumps(answer))
