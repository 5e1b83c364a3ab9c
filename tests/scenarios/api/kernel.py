"""A notebook kernel for tests: cells in, printed text out."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

__all__ = ["CellExecutionError", "Kernel", "kernel"]


class Kernel:
    """A started kernel; cells run one after the other in the same process."""

    def __init__(self, client: NotebookClient) -> None:
        self.client = client

    def run(self, source: str) -> str:
        """Runs a cell and returns what it prints.

        Raises:
            CellExecutionError: if the cell raises.
        """
        cell = nbformat.v4.new_code_cell(source)
        self.client.nb.cells.append(cell)
        self.client.execute_cell(cell, len(self.client.nb.cells) - 1)
        return "".join(each.get("text", "") for each in cell.outputs)

    def shown(self) -> str:
        """Returns the HTML that the last cell showed."""
        outputs = self.client.nb.cells[-1].outputs
        return "".join(each["data"].get("text/html", "") for each in outputs if "data" in each)


@contextmanager
def kernel(folder: Path) -> Iterator[Kernel]:
    """Starts a kernel in a folder, and ends it."""
    client = NotebookClient(
        nbformat.v4.new_notebook(), timeout=100, resources={"metadata": {"path": str(folder)}}
    )
    with client.setup_kernel():
        yield Kernel(client)


def wait_until(condition: object, seconds: float = 60) -> None:
    """Waits for something that another process does."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.05)
