"""Progress in a notebook: a line below the cell that is replaced while work goes on."""

from __future__ import annotations

import html
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from fedprivacy.io.percentages import percent

INTERVAL = 0.2  # seconds between two changes of the line


def in_notebook() -> bool:
    """Whether this process is a notebook kernel."""
    ipython = sys.modules.get("IPython")
    return ipython is not None and hasattr(ipython.get_ipython(), "kernel")


class Line:
    """A line of progress, as text and as HTML.

    Args:
        done: How much is done.
        total: Of how much; None where that is not known.
        label: What was done last.
    """

    def __init__(self, done: int, total: int | None, label: str) -> None:
        self.done, self.total, self.label = done, total, label

    def __repr__(self) -> str:
        """Returns the line as text."""
        whole = "" if self.total is None else f" of {self.total:,}"
        return f"{self.done:,}{whole} {self.label}".strip()

    def _repr_html_(self) -> str:
        """Shows a bar, and the line beside it."""
        bar = "" if self.total is None else f'<progress value="{self.done}" max="{self.total}"></progress> '
        return f"{bar}{html.escape(repr(self))}"


@contextmanager
def notebook_progress(total: int | None = None, metric: str = "accuracy") -> Iterator[Callable[..., None]]:
    """Shows progress in a notebook.

    Args:
        total: The number of rounds, cells or queries, where it is known before the first.
        metric: The name of a round's headline figure.

    Yields:
        A function that is called with each event: of a round or query, or a cell's label, number and total.
    """
    from IPython.display import display

    handle = display(Line(0, total, ""), display_id=True)
    count, last = 0, 0.0

    def on_event(*event: Any) -> None:
        nonlocal count, last
        count += 1
        label, done, whole = _label(event[0] if event else None, metric), count, total
        if len(event) == 3:  # of a job of many runs
            label, done, whole = str(event[0]), int(event[1]), int(event[2])
        if time.monotonic() - last >= INTERVAL or done == whole:
            last = time.monotonic()
            handle.update(Line(done, whole, label))

    yield on_event


def _label(event: Any, metric: str) -> str:
    if not isinstance(event, dict):
        return ""
    if "accuracy" in event:
        from fedprivacy.documents.headline import headline
        from fedprivacy.guarantees import so_far

        reached = headline(event)
        quality = "" if reached is None else f"{metric} {percent(reached)}"
        return ", ".join(filter(None, ["rounds", quality, so_far.message(event)]))
    return str(event.get("name", ""))
