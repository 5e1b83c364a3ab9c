"""Exclusive ownership of a run directory: the only way to start or resume work in one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fedprivacy.io.folder import check_tree
from fedprivacy.io.lock import alone
from fedprivacy.records.run_directory import RunDirectory


@contextmanager
def begin_run(parent: Path, name: str, scenario: str) -> Iterator[RunDirectory]:
    """A new run directory with the complete scenario in it, which this process holds alone.

    Args:
        parent: Where it goes.
        name: The scenario's label.
        scenario: Its text, complete.

    Raises:
        InputError: it cannot be made or written.
    """
    directory = RunDirectory.create(parent, name, scenario)
    with alone(directory.path):
        yield directory


@contextmanager
def take_up_run(path: Path) -> Iterator[RunDirectory]:
    """An existing run directory, which this process holds alone.

    Args:
        path: The directory.

    Raises:
        InputError: there is no run in it, or it has links in it, through which something else would be
            overwritten or removed.
        HeldError: another process works on it.
    """
    directory = RunDirectory.open(path)
    check_tree(path)
    with alone(path):
        yield directory
