"""Names what a command waits for, on the terminal's standard error, once a wait takes over a second."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread

from fedprivacy.io.console import Terminal

PATIENCE = 1.0  # seconds before it is named


@contextmanager
def waiting(what: str, patience: float = PATIENCE) -> Iterator[None]:
    """Prints `what` on standard error if the block takes longer; nothing where that is no terminal.

    Args:
        what: The work, as "loading PyTorch".
        patience: Seconds before it is printed.
    """
    console, done = Terminal(stderr=True, soft_wrap=True), Event()
    if not console.is_terminal:
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
