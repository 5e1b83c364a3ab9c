"""Ctrl-C and SIGTERM around what must not be half done."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

_NUMBERS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def undisturbed() -> Iterator[None]:
    """Ignores them: what ends something is not ended itself."""
    with _handled(signal.SIG_IGN):
        yield


@contextmanager
def deferred() -> Iterator[None]:
    """Lets them wait until the end of the block.

    Raises:
        KeyboardInterrupt: at the end, if one came.
    """
    came: list[int] = []
    with _handled(lambda number, frame: came.append(number)):
        yield
    if came:
        raise KeyboardInterrupt


@contextmanager
def _handled(handler: Callable[[int, Any], Any] | signal.Handlers) -> Iterator[None]:
    before: dict[signal.Signals, Any] = {}
    try:
        for number in _NUMBERS:
            before[number] = signal.signal(number, handler)
    except ValueError:  # not the main thread, which no signal reaches
        pass
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)
