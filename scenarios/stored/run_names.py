"""Resolves the RUN argument of commands: a path, or the name of a run directory in the default folder."""

from __future__ import annotations

import difflib
import os
from contextlib import suppress
from pathlib import Path

from fedprivacy.errors import InputError
from fedprivacy.io.escape import on_one_line

MOST_CANDIDATES = 3


def run_directory(text: str, folder: Path) -> Path:
    """Returns the path that a RUN names; whether it holds a run is for the reader of its record.

    Args:
        text: A path, or a name as `fedprivacy list` has it.
        folder: The default folder of run directories.

    Raises:
        InputError: A name that is neither here nor in the folder.
    """
    path = Path(text)
    if len(path.parts) != 1 or os.path.lexists(path):
        return path
    if os.path.isdir(folder / path):
        return folder / path
    raise InputError(f"{on_one_line(text)}: no such run, here or in {folder}. {_remedy(path.name, folder)}")


def _remedy(name: str, folder: Path) -> str:
    names: list[str] = []
    with suppress(OSError):
        names = [run.name for run in folder.iterdir() if (run / "scenario.toml").is_file()]
    if not names:
        return "There are no runs yet: `fedprivacy run digits` makes one."
    newest = sorted(names, reverse=True)  # a name begins with the time
    near = [each for each in newest if name in each] or difflib.get_close_matches(name, newest)
    shown = [on_one_line(each) for each in near[:MOST_CANDIDATES]]
    return f"Did you mean {' or '.join(shown)}?" if shown else "Name a run: `fedprivacy list` lists them."
