"""Names what a command waits for, on the terminal's standard error, once a wait takes over a second."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread

from fedprivacy.io.console import Terminal

PATIENCE = 1.0  # seconds before it is named
_displays: list[Terminal] = []  # of progress that is shown now; rich prints above it


@contextmanager
def waiting(what: str, patience: float = PATIENCE) -> Iterator[None]:
    """Prints `what` on standard error if the block takes longer; nothing where that is no terminal.

    Worker processes print nothing: the terminal is that of their parent.

    Args:
        what: The work, as "loading PyTorch".
        patience: Seconds before it is printed.
    """
    console, done = _displays[-1] if _displays else Terminal(stderr=True, soft_wrap=True), Event()
    if not console.is_terminal or multiprocessing.parent_process() is not None:
        yield
        return

    def name_it() -> None:
        if not done.wait(patience):
            console.print(f"{what} ...", style="dim")

    thread = Thread(target=name_it, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


@contextmanager
def beside_progress(console: Terminal) -> Iterator[None]:
    """Prints waits within the block by the console of a progress display, whose bars they would break."""
    _displays.append(console)
    try:
        yield
    finally:
        _displays.remove(console)
